// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-propagate-shardings | FileCheck %s

// The choice, and the messages about it, are the same each time.
// RUN: dtc-opt %s --split-input-file --mlir-disable-threading --dtc-propagate-shardings > %t.1 2>&1
// RUN: dtc-opt %s --split-input-file --mlir-disable-threading --dtc-propagate-shardings > %t.2 2>&1
// RUN: cmp %t.1 %t.2
// RUN: grep -c "remark: 'dtc.* has tensors with contradicting shardings" %t.1 | grep -x 3

// A request of priority 1 gives way to one of priority 0, wherever that comes from: there is no conflict to resolve.
// CHECK-LABEL: func.func @attribute(
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.input = "x"}
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.input = "y"}
// CHECK: dtc.add {{.*}}{dist.factors = {{\[\["tp"\], \[\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
dist.mesh @mesh <"tp"=2>
func.func @attribute(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{?}, {"tp", ?}p1]>},
                     %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"tp", ?}, {?}]>}) -> tensor<8x8xf32> {
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Where nothing of priority 0 uses the axis, the request of priority 1 holds, and goes on.
// CHECK-LABEL: func.func @later(
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>, dtc.input = "x"}
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>, dtc.input = "y"}
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @later(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{?}, {"tp", ?}p1]>},
                 %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp", ?}, {?}]>}) -> tensor<8x8xf32> {
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Of two requests for one axis the more urgent one wins: 1 before 2, though 2 comes first.
// CHECK-LABEL: func.func @second(
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>, dtc.input = "x"}
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>, dtc.input = "y"}
dist.mesh @mesh <"tp"=2>
func.func @second(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp", ?}p2, {?}]>},
                  %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{?}, {"tp", ?}p1]>}) -> tensor<8x8xf32> {
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Propagation appends to open dimensions only. The op is split all the same: it takes a slice of the closed one.
// CHECK-LABEL: func.func @closed(
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>, dtc.input = "x"}
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>, dtc.input = "y"}
// CHECK: dtc.add {{.*}}{dist.factors = {{\[\["dp"\], \["tp"\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @closed(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {?}]>},
                  %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}) -> tensor<8x8xf32> {
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// An open dimension is extended after the axes that it has.
// CHECK-LABEL: func.func @extended(
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>, dtc.input = "x"}
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>, dtc.input = "y"}
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>, dtc.input = "z"}
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @extended(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", ?}, {?}]>},
                    %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>},
                    %z: tensor<8x8xf32> {dtc.input = "z", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}) -> tensor<8x8xf32> {
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  %1 = dtc.add %0, %z : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A contradiction is settled by cost, with a remark. 256 bytes of 8 x 8 elements lie on two devices, which send 1e6 bytes a
// second after 1 ms. Rows: 64 bytes of %y are exchanged. Columns: 64 bytes of %x, and 64 of the result. Each shard reads and
// writes 3 * 128 bytes at 1.5e12 bytes a second.
// CHECK-LABEL: func.func @settled(
// CHECK: dtc.add {{.*}}{dist.factors = {{\[\["tp"\], \[\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
dist.mesh @mesh <"tp"=2 link 1.0e6 1.0e-3>
func.func @settled(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                   %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> tensor<8x8xf32> {
  // expected-remark-re@+1 {{'dtc.add' has tensors with contradicting shardings; {{.*}}dimension 0 {{.*}}over {"tp"} (1.064000e+03 us) rather than dimension 1 {{.*}}over {"tp"} (2.128000e+03 us)}}
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  %1 = dist.constrain %0 to <@mesh, [{"tp"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// The same with the result in columns: the costs decide, and not the order of the operands.
// CHECK-LABEL: func.func @settled_otherwise(
// CHECK: dtc.add {{.*}}{dist.factors = {{\[\[\], \["tp"\]\]}}, dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}
dist.mesh @mesh <"tp"=2 link 1.0e6 1.0e-3>
func.func @settled_otherwise(%x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                             %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> tensor<8x8xf32> {
  // expected-remark-re@+1 {{dimension 1 {{.*}}over {"tp"} (1.064000e+03 us) rather than dimension 0 {{.*}}over {"tp"} (2.128000e+03 us)}}
  %0 = dtc.add %x, %y : tensor<8x8xf32>
  %1 = dist.constrain %0 to <@mesh, [{}, {"tp"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Elementwise ops come before contractions: the addition passes its axes on before the product's tensors contradict
// each other, so that the product follows the larger part of the program.
// CHECK-LABEL: func.func @levels(
// CHECK: dtc.einsum {{.*}}dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
// CHECK: dtc.add {{.*}}dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
dist.mesh @mesh <"tp"=2>
func.func @levels(%x: tensor<8x8xf32> {dtc.input = "x"},
                  %w: tensor<8x8xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                  %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) -> tensor<8x8xf32> {
  // expected-remark@+1 {{'dtc.einsum' has tensors with contradicting shardings}}
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = dtc.add %0, %y : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
