// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings --dtc-insert-reshards | FileCheck %s

// A partial sum flows through linear ops and is completed before the first that is not linear.
// CHECK-LABEL: func.func @partial_flows(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<8x4xf32>
// CHECK-SAME: %[[ARG2:[^:]*]]: tensor<4x4xf32>
// CHECK-SAME: -> (tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.einsum "bi,io->bo" %[[ARG0]], %[[ARG1]] {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dtc.neg %[[V0]] {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.mul %[[V1]], %[[ARG2]] {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.transpose %[[V2]] permutation [1, 0] {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V4:[^ :]*]] = dist.reshard %[[V3]] from <@mesh, [{}, {}], partial = sum{"tp"}> to <@mesh, [{}, {}]>
// CHECK-SAME: {dist.reason = {consumer = "dtc.exp in {{[^"]*}}", from = "[{}, {}] partial sum{\22tp\22}", remedy = "it is a sum over {\22tp\22}, which split a dimension that was reduced; keep that dimension whole", to = "[{}, {}]", value = "result of dtc.transpose"}, dist.sharding = #dist.sharding<@mesh, [{}, {}]>}
// CHECK-NEXT: %[[V5:[^ :]*]] = dtc.exp %[[V4]] {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}
// CHECK-NEXT: return %[[V5]]
dist.mesh @mesh <"tp"=2>
func.func @partial_flows(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                         %w: tensor<8x4xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                         %s: tensor<4x4xf32> {dtc.input = "s"}) -> tensor<4x4xf32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = dtc.neg %0 : tensor<4x4xf32>
  %2 = dtc.mul %1, %s : tensor<4x4xf32>
  %3 = dtc.transpose %2 permutation [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = dtc.exp %3 : tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// Two partial sums are added and completed once. A partial sum plus a complete value is not linear.
// CHECK-LABEL: func.func @add(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: %[[ARG2:[^:]*]]: tensor<4xf32>
// CHECK-SAME: -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dtc.reduce sum %[[ARG1]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.add %[[V0]], %[[V1]] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V4:[^ :]*]] = dist.reshard %[[V3]] from <@mesh, [{}], partial = sum{"tp"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V5:[^ :]*]] = dtc.add %[[V4]], %[[ARG2]] {dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V6:[^ :]*]] = dist.reshard %[[V2]] from <@mesh, [{}], partial = sum{"tp"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: return %[[V6]], %[[V5]]
dist.mesh @mesh <"tp"=2>
func.func @add(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
               %y: tensor<4x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
               %c: tensor<4xf32> {dtc.input = "c"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dtc.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = dtc.reduce sum %y dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = dtc.add %0, %1 : tensor<4xf32>
  %3 = dtc.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %4 = dtc.add %3, %c : tensor<4xf32>
  return %2, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// An op that makes a partial sum larger is worth it where its result is added to another one, as a low-rank adapter's is to
// what its layer gives: both are completed at once.
// CHECK-LABEL: func.func @joins_a_sum(
// CHECK: %[[Y:[^ :]*]] = dtc.einsum "bi,oi->bo" {{.*}} {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[DOWN:[^ :]*]] = dtc.einsum "bi,ri->br" {{.*}} {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[UP:[^ :]*]] = dtc.einsum "br,or->bo" %[[DOWN]], {{.*}} {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[SUM:[^ :]*]] = dtc.add %[[Y]], %[[UP]] {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[FULL:[^ :]*]] = dist.reshard %[[SUM]] from <@mesh, [{}, {}], partial = sum{"tp"}> to <@mesh, [{}, {}]>
// CHECK-NEXT: return %[[FULL]]
dist.mesh @mesh <"tp"=2>
func.func @joins_a_sum(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                       %w: tensor<6x8xf32> {dtc.input = "w", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                       %a: tensor<2x8xf32> {dtc.input = "a", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                       %b: tensor<6x2xf32> {dtc.input = "b"}) -> tensor<4x6xf32> {
  %0 = dtc.einsum "bi,oi->bo" %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %1 = dtc.einsum "bi,ri->br" %x, %a : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
  %2 = dtc.einsum "br,or->bo" %1, %b : (tensor<4x2xf32>, tensor<6x2xf32>) -> tensor<4x6xf32>
  %3 = dtc.add %0, %2 : tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// -----

// An op that makes a partial sum larger is not worth it; one whose other user needs the sum gets the sum as well, and
// there is one reshard for both.
// CHECK-LABEL: func.func @not_worth_it(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: -> (tensor<2x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.reshard %[[V0]] from <@mesh, [{}], partial = sum{"tp"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.broadcast %[[V1]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V4:[^ :]*]] = dist.reshard %[[V3]] from <@mesh, [{}], partial = sum{"tp"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V5:[^ :]*]] = dtc.neg %[[V4]] {dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V6:[^ :]*]] = dtc.exp %[[V4]] {dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: return %[[V2]], %[[V5]], %[[V6]]
dist.mesh @mesh <"tp"=2>
func.func @not_worth_it(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = dtc.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = dtc.broadcast %0 dims [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %2 = dtc.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %3 = dtc.neg %2 : tensor<4xf32>
  %4 = dtc.exp %2 : tensor<4xf32>
  return %1, %3, %4 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A maximum is completed as one, at once: negation is no maximum's friend.
// CHECK-LABEL: func.func @maximum(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce max %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = max{"tp"}>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.reshard %[[V0]] from <@mesh, [{}], partial = max{"tp"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.neg %[[V1]] {dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.reduce min %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = min{"tp"}>}
// CHECK-NEXT: %[[V4:[^ :]*]] = dist.reshard %[[V3]] from <@mesh, [{}], partial = min{"tp"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: return %[[V2]], %[[V4]]
dist.mesh @mesh <"tp"=2>
func.func @maximum(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dtc.reduce max %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = dtc.neg %0 : tensor<4xf32>
  %2 = dtc.reduce min %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A partial sum goes into the sharding of its user at once, as a reduce_scatter does.
// CHECK-LABEL: func.func @into_user(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<4x16xf32>
// CHECK-SAME: -> (tensor<4x16xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.reshard %[[V0]] from <@mesh, [{}], partial = sum{"tp"}> to <@mesh, [{"tp"}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.exp %[[V1]] {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.broadcast %[[V2]] dims [0] {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
// CHECK-NEXT: %[[V4:[^ :]*]] = dtc.add %[[V3]], %[[ARG1]] {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
// CHECK-NEXT: return %[[V4]]
dist.mesh @mesh <"tp"=2>
func.func @into_user(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                     %y: tensor<4x16xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) -> tensor<4x16xf32> {
  %0 = dtc.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = dtc.exp %0 : tensor<4xf32>
  %2 = dtc.broadcast %1 dims [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %3 = dtc.add %2, %y : tensor<4x16xf32>
  return %3 : tensor<4x16xf32>
}

// -----

// Constraints are where values change places. Results are complete and nothing outlives a step in microbatches; a state
// goes back to where it was, and a result to where it is asked.
// CHECK-LABEL: func.func @boundaries(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<8xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<8x8xf32>
// CHECK-SAME: -> (tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.updates = 0 : i64}, tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.output = "sum"}, tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.output = "asked"})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.reshard %[[ARG0]] from <@mesh, [{"dp"}]> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.constrain %[[V0]] to <@mesh, [{}]> {dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.exp %[[V1]] {dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.reduce sum %[[ARG1]] dims [0] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"dp", "micro"}>}
// CHECK-NEXT: %[[V4:[^ :]*]] = dist.reshard %[[V2]] from <@mesh, [{}]> to <@mesh, [{"dp"}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}
// CHECK-NEXT: %[[V5:[^ :]*]] = dist.reshard %[[V3]] from <@mesh, [{}], partial = sum{"dp", "micro"}> to <@mesh, [{}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}]>}
// CHECK-NEXT: %[[V6:[^ :]*]] = dist.reshard %[[V3]] from <@mesh, [{}], partial = sum{"dp", "micro"}> to <@mesh, [{"dp"}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}
// CHECK-NEXT: return %[[V4]], %[[V5]], %[[V6]]
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @boundaries(%w: tensor<8xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"dp"}]>},
                      %x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>})
    -> (tensor<8xf32> {dtc.updates = 0}, tensor<8xf32> {dtc.output = "sum"}, tensor<8xf32> {dtc.output = "asked", dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}) {
  %0 = dist.constrain %w to <@mesh, [{}]> : tensor<8xf32>
  %1 = dtc.exp %0 : tensor<8xf32>
  %2 = dtc.reduce sum %x dims [0] : (tensor<8x8xf32>) -> tensor<8xf32>
  return %1, %2, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A minor part of a dimension can be split only under completely split major ones: the reshape gathers.
// CHECK-LABEL: func.func @reshape(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x2x3xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<2x2x3xf32>
// CHECK-SAME: -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}, tensor<4x3xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.reshard %[[ARG0]] from <@mesh, [{"dp"}, {"tp"}, {}]> to <@mesh, [{"dp"}, {}, {}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {}]>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dtc.reshape %[[V0]] {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.reshape %[[ARG1]] {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>}
// CHECK-NEXT: return %[[V1]], %[[V2]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @reshape(%x: tensor<4x2x3xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}, {}]>},
                   %y: tensor<2x2x3xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}, {}]>}) -> (tensor<8x3xf32>, tensor<4x3xf32>) {
  %0 = dtc.reshape %x : (tensor<4x2x3xf32>) -> tensor<8x3xf32>
  %1 = dtc.reshape %y : (tensor<2x2x3xf32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<8x3xf32>, tensor<4x3xf32>
}

// -----

// A dimension that must be whole is gathered.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<2x4x2x4xf32>
// CHECK-SAME: -> (tensor<2x4x2x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}, {}, {}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.reshard %[[ARG0]] from <@mesh, [{}, {}, {}, {"tp"}]> to <@mesh, [{}, {}, {}, {}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}, {}, {}, {}]>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dtc.rotary %[[V0]] {dist.sharding = #dist.sharding<@mesh, [{}, {}, {}, {}]>, inverse = false, theta = 1.000000e+04 : f64}
// CHECK-NEXT: return %[[V1]]
dist.mesh @mesh <"tp"=2>
func.func @whole(%x: tensor<2x4x2x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {}, {}, {"tp"}]>}) -> tensor<2x4x2x4xf32> {
  %0 = dtc.rotary %x {inverse = false, theta = 1.0e4} : tensor<2x4x2x4xf32>
  return %0 : tensor<2x4x2x4xf32>
}

// -----

// One reshard serves all users that want the same.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: -> (tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}, tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.reshard %[[ARG0]] from <@mesh, [{"tp"}, {}]> to <@mesh, [{}, {"tp"}]> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.constrain %[[V0]] to <@mesh, [{}, {"tp"}]> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}
// CHECK-NEXT: %[[V2:[^ :]*]] = dist.constrain %[[V0]] to <@mesh, [{}, {"tp"}]> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}
// CHECK-NEXT: return %[[V1]], %[[V2]]
dist.mesh @mesh <"tp"=2>
func.func @shared(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = dist.constrain %x to <@mesh, [{}, {"tp"}]> : tensor<4x8xf32>
  %1 = dist.constrain %x to <@mesh, [{}, {"tp"}]> : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Sums that are added are completed once, though the result is split by the axis of the sum: as a whole, in one
// reduce_scatter.
// CHECK-LABEL: func.func @added(
// CHECK-NEXT: %[[V0:.*]] = dtc.reduce sum %arg0 dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V1:.*]] = dtc.reduce sum %arg1 dims [1] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V2:.*]] = dtc.add %[[V0]], %[[V1]] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"tp"}>}
// CHECK-NEXT: dist.reshard %[[V2]] from <@mesh, [{}], partial = sum{"tp"}> to <@mesh, [{"tp"}]>
// CHECK-NOT: = dist.reshard
dist.mesh @mesh <"tp"=2>
func.func @added(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                 %y: tensor<8x4xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> tensor<8xf32> {
  %0 = dtc.reduce sum %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %1 = dtc.reduce sum %y dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %2 = dtc.add %0, %1 : tensor<8xf32>
  %3 = dist.constrain %2 to <@mesh, [{"tp"}]> : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// So are sums that are joined, with a reshape on the way.
// CHECK-LABEL: func.func @joined(
// CHECK: %[[V2:.*]] = dtc.reshape {{.*}} {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V3:.*]] = dtc.reshape {{.*}} {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: %[[V4:.*]] = dtc.concat %[[V2]], %[[V3]] dim 0 {dist.sharding = #dist.sharding<@mesh, [{}, {}], partial = sum{"tp"}>}
// CHECK-NEXT: dist.reshard %[[V4]] from <@mesh, [{}, {}], partial = sum{"tp"}> to <@mesh, [{}, {"tp"}]>
// CHECK-NOT: = dist.reshard
dist.mesh @mesh <"tp"=2>
func.func @joined(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                  %y: tensor<8x4xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> tensor<2x8xf32> {
  %0 = dtc.reduce sum %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %1 = dtc.reduce sum %y dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %2 = dtc.reshape %0 : (tensor<8xf32>) -> tensor<1x8xf32>
  %3 = dtc.reshape %1 : (tensor<8xf32>) -> tensor<1x8xf32>
  %4 = dtc.concat %2, %3 dim 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  %5 = dist.constrain %4 to <@mesh, [{}, {"tp"}]> : tensor<2x8xf32>
  return %5 : tensor<2x8xf32>
}

// -----

// A sum whose users need it in two layouts is completed once, and goes from one to the other: half of a shard is less than
// half of the sum.
// CHECK-LABEL: func.func @completed_once(
// CHECK: %[[SUM:.*]] = dtc.reduce sum %arg0
// CHECK: %[[FIRST:[^ ]*]] = dist.reshard %[[SUM]] from <@mesh, [{}, {}], partial = sum{"tp"}> to <@mesh, [{{({}, {"tp"}|{"tp"}, {})}}]>
// CHECK-NOT: = dist.reshard %[[SUM]]
// CHECK: dist.reshard %[[FIRST]] from <@mesh, [{{({}, {"tp"}|{"tp"}, {})}}]> to <@mesh, [{{({}, {"tp"}|{"tp"}, {})}}]>
// CHECK-NOT: = dist.reshard
dist.mesh @mesh <"tp"=2>
func.func @completed_once(%x: tensor<64x64x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tp"}]>},
                          %b: tensor<64x64xf32> {dtc.input = "b", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = dtc.reduce sum %x dims [2] : (tensor<64x64x4xf32>) -> tensor<64x64xf32>
  %2 = dist.constrain %0 to <@mesh, [{"tp"}, {}]> : tensor<64x64xf32>
  %3 = dtc.add %0, %b : tensor<64x64xf32>
  %4 = dist.constrain %3 to <@mesh, [{}, {"tp"}]> : tensor<64x64xf32>
  return %2, %4 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A constraint says how a value lies on devices: the sum over microbatches goes on through it, the one over devices does not.
// CHECK-LABEL: func.func @constrained_sum(
// CHECK: dist.reshard {{.*}} from <@mesh, [{}], partial = sum{"dp", "micro"}> to <@mesh, [{"dp"}], partial = sum{"micro"}>
// CHECK-NEXT: dist.constrain {{.*}} to <@mesh, [{"dp"}]> {dist.sharding = #dist.sharding<@mesh, [{"dp"}], partial = sum{"micro"}>}
// CHECK-NEXT: dtc.neg {{.*}} {dist.sharding = #dist.sharding<@mesh, [{"dp"}], partial = sum{"micro"}>}
// CHECK-NEXT: dist.reshard {{.*}} from <@mesh, [{"dp"}], partial = sum{"micro"}> to <@mesh, [{"dp"}]>
// CHECK-NEXT: return
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @constrained_sum(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>}) -> tensor<4xf32> {
  %0 = dtc.reduce sum %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %1 = dist.constrain %0 to <@mesh, [{"dp"}]> : tensor<4xf32>
  %2 = dtc.neg %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A copied value is identical on all devices but those of other stages: it is completed as a maximum of its copies,
// once for all of its users. A sum is completed before the op whose result is made identical, although neg is linear.
// CHECK-LABEL: func.func @agreed(
// CHECK: %[[V0:[^ :]*]] = dtc.reduce sum %{{.*}} partial = sum{"tp"}>
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.reshard %[[V0]] from <@mesh, [], partial = sum{"tp"}> to <@mesh, []>
// CHECK: %[[V2:[^ :]*]] = dtc.neg %[[V1]] {dist.sharding = #dist.sharding<@mesh, [], partial = max{"dp", "tp"}>, dtc.agreed}
// CHECK-NEXT: %[[V3:[^ :]*]] = dist.reshard %[[V2]] from <@mesh, [], partial = max{"dp", "tp"}> to <@mesh, []>
// CHECK-SAME: remedy = "", to = "[]", value = "result of dtc.neg, on which all devices agree"}
// CHECK-NEXT: dtc.exp %[[V3]]
// CHECK-NEXT: dtc.tanh %[[V3]]
// CHECK-NOT: dist.reshard
dist.mesh @mesh <"dp"=2, "pp"=2 pipeline, "one"=1, "tp"=2, "micro"=2 temporal>
func.func @agreed(%x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}) -> (tensor<f32>, tensor<f32>) {
  %0 = dtc.reduce sum %x dims [0] : (tensor<8xf32>) -> tensor<f32>
  %1 = dtc.neg %0 {dtc.agreed} : tensor<f32>
  %2 = dtc.exp %1 : tensor<f32>
  %3 = dtc.tanh %1 : tensor<f32>
  return %2, %3 : tensor<f32>, tensor<f32>
}

// -----

// CHECK: func.func private @no_body(tensor<8xf32>)
dist.mesh @mesh <>
func.func private @no_body(tensor<8xf32>)
