// RUN: dtc-opt %s --split-input-file --dtc-gather-parameters-per-use="axes=dp prefetch=0" | FileCheck %s

// Once for each visit: forward through the layers 0 and 1, backward through them, where layer 1's visits follow each other
// and are one. Both parameters of a visit share a bucket. The one that is not split stays as it is.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>, %[[W0:[^:]*]]: tensor<4xf32> {dtc.param = "w0"}, %[[B0:[^:]*]]: tensor<4xf32> {dtc.param = "b0"}, %[[W1:[^:]*]]: tensor<4xf32> {dtc.param = "w1"}, %[[C:[^:]*]]: tensor<8xf32> {dtc.param = "c"}
// CHECK-NEXT: %[[G0:.*]]:2 = dist.bucket -> tensor<8xf32>, tensor<8xf32> {
// CHECK-NEXT: dist.all_gather %[[W0]] dim 0 over @mesh ["dp"]
// CHECK-NEXT: dist.all_gather %[[B0]] dim 0 over @mesh ["dp"]
// CHECK-NEXT: dist.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[X0:.*]] = dtc.mul %[[X]], %[[G0]]#0
// CHECK-NEXT: %[[Y0:.*]] = dtc.add %[[X0]], %[[G0]]#1
// CHECK-NEXT: %[[G1:.*]] = dist.all_gather %[[W1]] dim 0 over @mesh ["dp"]
// CHECK-NEXT: %[[Y1:.*]] = dtc.mul %[[Y0]], %[[G1]]
// CHECK-NEXT: %[[Z1:.*]] = dtc.mul %[[Y1]], %[[C]]
// CHECK-NEXT: %[[D1:.*]] = dtc.mul %[[Z1]], %[[G1]]
// CHECK-NEXT: %[[G2:.*]] = dist.all_gather %[[W0]] dim 0 over @mesh ["dp"]
// CHECK-NEXT: %[[D0:.*]] = dtc.mul %[[D1]], %[[G2]]
// CHECK-NEXT: return %[[D0]]
dist.mesh @mesh <"dp"=2>
func.func @layers(%x: tensor<8xf32>, %w0: tensor<4xf32> {dtc.param = "w0"}, %b0: tensor<4xf32> {dtc.param = "b0"},
                  %w1: tensor<4xf32> {dtc.param = "w1"}, %c: tensor<8xf32> {dtc.param = "c"}) -> tensor<8xf32> {
  %gw0 = dist.all_gather %w0 dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32> loc("h.0.w")
  %gb0 = dist.all_gather %b0 dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32> loc("h.0.b")
  %gw1 = dist.all_gather %w1 dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32> loc("h.1.w")
  %x0 = dtc.mul %x, %gw0 : tensor<8xf32> loc("h.0.attn")
  %y0 = dtc.add %x0, %gb0 : tensor<8xf32> loc("h.0.mlp.c_fc")
  %y1 = dtc.mul %y0, %gw1 : tensor<8xf32> loc("h.1.attn")
  %z1 = dtc.mul %y1, %c : tensor<8xf32> loc("ln_f")
  %d1 = dtc.mul %z1, %gw1 : tensor<8xf32> loc("h.1.mlp")
  %d0 = dtc.mul %d1, %gw0 : tensor<8xf32> loc("h.0.attn")
  return %d0 : tensor<8xf32>
}

// -----

// In the loop over microbatches, where the layers are.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "w"}
// CHECK-NEXT: dist.microbatch_loop
// CHECK-NEXT: %[[S:.*]] = dist.shard_slice
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: %[[A:.*]] = dtc.mul %[[S]], %[[G]]
// CHECK-NEXT: %[[B:.*]] = dtc.exp %[[A]]
// CHECK-NEXT: dist.yield %[[B]]
// CHECK-NEXT: }
// CHECK-NEXT: return
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @loop(%x: tensor<16xf32>, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<8xf32> {
  %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32> loc("h.0.w")
  %l = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
    %s = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<16xf32>) -> tensor<8xf32> loc("x")
    %a = dtc.mul %s, %g : tensor<8xf32> loc("h.0.attn")
    %b = dtc.exp %a : tensor<8xf32> loc("h.0.mlp")
    dist.yield %b : tensor<8xf32>
  }
  return %l : tensor<8xf32>
}

// -----

// A tied parameter: the first layer and the last one use it, and each gathers it.
// CHECK-LABEL: func.func @tied
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "wte"}, %[[V:[^:]*]]: tensor<4xf32> {dtc.param = "v"}
// CHECK-NEXT: %[[G0:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: %[[A:.*]] = dtc.mul %{{.*}}, %[[G0]]
// CHECK-NEXT: %[[G1:.*]] = dist.all_gather %[[V]]
// CHECK-NEXT: %[[B:.*]] = dtc.mul %[[A]], %[[G1]]
// CHECK-NEXT: %[[G2:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: %[[C:.*]] = dtc.mul %[[B]], %[[G2]]
// CHECK-NEXT: return %[[C]]
dist.mesh @mesh <"dp"=2>
func.func @tied(%x: tensor<8xf32>, %w: tensor<4xf32> {dtc.param = "wte"}, %v: tensor<4xf32> {dtc.param = "v"}) -> tensor<8xf32> {
  %gw = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %gv = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %a = dtc.mul %x, %gw : tensor<8xf32> loc("wte")
  %b = dtc.mul %a, %gv : tensor<8xf32> loc("h.0.attn")
  %c = dtc.mul %b, %gw : tensor<8xf32> loc("lm_head")
  return %c : tensor<8xf32>
}

// -----

// Layers end with the first number: h.1 is not h.10, experts of one layer are one visit, and names without a number are
// layers of their own.
// CHECK-LABEL: func.func @names
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dtc.mul
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dtc.exp
// CHECK-NEXT: dtc.neg
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dtc.abs
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dtc.tanh
// CHECK-NEXT: return
dist.mesh @mesh <"dp"=2>
func.func @names(%w: tensor<4xf32> {dtc.param = "w"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %a = dtc.mul %g, %g : tensor<8xf32> loc("h.1.attn")
  %b = dtc.exp %g : tensor<8xf32> loc("h.10.experts.0.up")
  %c = dtc.neg %g : tensor<8xf32> loc("h.10.experts.1.up")
  %d = dtc.abs %g : tensor<8xf32> loc("ln_f")
  %e = dtc.tanh %g : tensor<8xf32> loc("lm_head")
  return %a, %b, %c, %d, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Ops without names: uses of one parameter that follow each other are a visit.
// CHECK-LABEL: func.func @nameless
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "w"}, %[[V:[^:]*]]: tensor<4xf32> {dtc.param = "v"}
// CHECK-NEXT: %[[G0:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: dtc.exp %[[G0]]
// CHECK-NEXT: dtc.neg %[[G0]]
// CHECK-NEXT: %[[G1:.*]] = dist.all_gather %[[V]]
// CHECK-NEXT: dtc.abs %[[G1]]
// CHECK-NEXT: %[[G2:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: dtc.tanh %[[G2]]
// CHECK-NEXT: return
dist.mesh @mesh <"dp"=2>
func.func @nameless(%w: tensor<4xf32> {dtc.param = "w"}, %v: tensor<4xf32> {dtc.param = "v"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %gw = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %gv = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %a = dtc.exp %gw : tensor<8xf32>
  %b = dtc.neg %gw : tensor<8xf32>
  %c = dtc.abs %gv : tensor<8xf32>
  %d = dtc.tanh %gw : tensor<8xf32>
  return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Left alone: a gather over another axis, one of an input, and one of what was computed from a parameter. One over two
// axes, if one of them is meant, is gathered again.
// CHECK-LABEL: func.func @others
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "w"}, %[[X:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[T:.*]] = dist.all_gather %[[W]] dim 0 over @mesh ["tp"]
// CHECK-NEXT: %[[I:.*]] = dist.all_gather %[[X]] dim 0 over @mesh ["dp"]
// CHECK-NEXT: %[[N:.*]] = dtc.neg %[[W]]
// CHECK-NEXT: %[[C:.*]] = dist.all_gather %[[N]] dim 0 over @mesh ["dp"]
// CHECK-NEXT: dtc.mul %[[T]], %[[T]]
// CHECK-NEXT: %[[B:.*]] = dist.all_gather %[[W]] dim 0 over @mesh ["tp", "dp"]
// CHECK-NEXT: dtc.exp %[[B]]
// CHECK-NEXT: dtc.mul %[[T]], %[[I]]
// CHECK-NEXT: dtc.mul %[[T]], %[[C]]
// CHECK-NEXT: %[[B2:.*]] = dist.all_gather %[[W]] dim 0 over @mesh ["tp", "dp"]
// CHECK-NEXT: dtc.neg %[[B2]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @others(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32>) -> (tensor<8xf32>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) {
  %t = dist.all_gather %w dim 0 over @mesh ["tp"] : (tensor<4xf32>) -> tensor<8xf32>
  %i = dist.all_gather %x dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %n = dtc.neg %w : tensor<4xf32>
  %c = dist.all_gather %n dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %b = dist.all_gather %w dim 0 over @mesh ["tp", "dp"] : (tensor<4xf32>) -> tensor<16xf32>
  %0 = dtc.mul %t, %t : tensor<8xf32> loc("h.0")
  %1 = dtc.exp %b : tensor<16xf32> loc("h.0")
  %2 = dtc.mul %t, %i : tensor<8xf32> loc("h.1")
  %3 = dtc.mul %t, %c : tensor<8xf32> loc("h.1")
  %4 = dtc.neg %b : tensor<16xf32> loc("h.2")
  return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>
}

// -----

// Ops that only move the elements of a gathered parameter are done again with it.
// CHECK-LABEL: func.func @moved
// CHECK-SAME: %[[W:[^:]*]]: tensor<2x2xf32> {dtc.param = "w"}
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: %[[S:.*]] = dtc.slice %[[G]]
// CHECK-NEXT: %[[T:.*]] = dtc.transpose %[[S]]
// CHECK-NEXT: dtc.exp %[[T]]
// CHECK-NEXT: %[[G1:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: %[[S1:.*]] = dtc.slice %[[G1]]
// CHECK-NEXT: dtc.exp %[[S1]]
// CHECK-NEXT: return
dist.mesh @mesh <"dp"=2>
func.func @moved(%w: tensor<2x2xf32> {dtc.param = "w"}) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<2x2xf32>) -> tensor<4x2xf32>
  %s = dtc.slice %g offsets [0, 0] sizes [3, 2] : (tensor<4x2xf32>) -> tensor<3x2xf32>
  %t = dtc.transpose %s permutation [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %a = dtc.exp %t : tensor<2x3xf32> loc("h.0")
  %b = dtc.exp %s : tensor<3x2xf32> loc("h.1")
  return %a, %b : tensor<2x3xf32>, tensor<3x2xf32>
}
