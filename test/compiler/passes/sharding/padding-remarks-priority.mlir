// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings=default-shard=rows=tp@1

dist.mesh @mesh <"tp"=2>
// expected-remark@+1 {{'x': dimension 0 ('rows') of size 5 is padded to 6 to be split over {"tp"}}}
func.func @padded(%x: tensor<5x4xf32> {dtc.input = "x", dtc.axes = ["rows", ""]}) {
  return
}
