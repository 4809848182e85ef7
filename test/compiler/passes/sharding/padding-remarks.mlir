// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-propagate-shardings="default-shard=rows=a+b,columns=c"

// Padding by the map is reported once for each dimension, with the tensor, both sizes and the axes; nothing is where
// the size divides.
dist.mesh @mesh <"a"=2, "b"=2, "c"=3>
func.func @padded(
    // expected-remark@+1 {{'x': dimension 0 ('rows') of size 7 is padded to 8 to be split over {"a", "b"}}}
    %x: tensor<7x6xf32> {dtc.input = "x", dtc.axes = ["rows", "columns"]},
    %y: tensor<8x6xf32> {dtc.input = "y", dtc.axes = ["rows", "columns"]},
    // expected-remark@+2 {{'w': dimension 0 ('columns') of size 5 is padded to 6 to be split over {"c"}}}
    // expected-remark@+1 {{'w': dimension 1 ('rows') of size 6 is padded to 8 to be split over {"a", "b"}}}
    %w: tensor<5x6xf32> {dtc.param = "w", dtc.axes = ["columns", "rows"]},
    // Halves of 2 are split no further, so they are not padded.
    %z: tensor<2x6xf32> {dtc.input = "z", dtc.axes = ["rows", "columns"]}) {
  return
}

// -----

// Nor is it said of what an op takes over.
dist.mesh @mesh <"a"=2, "b"=2, "c"=3>
func.func @once(
    // expected-remark@+1 {{'x': dimension 0 ('rows') of size 7 is padded to 8}}
    %x: tensor<7x6xf32> {dtc.input = "x", dtc.axes = ["rows", "columns"]}) -> tensor<7x6xf32> {
  %0 = dtc.exp %x : tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}
