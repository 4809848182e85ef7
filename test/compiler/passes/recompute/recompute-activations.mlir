// RUN: dtc-opt %s --dtc-recompute-activations=mode=none 2>%t.none | FileCheck %s --check-prefix NONE
// RUN: FileCheck %s --check-prefix REMARK-NONE < %t.none
// RUN: dtc-opt %s --dtc-recompute-activations 2>/dev/null | FileCheck %s --check-prefix SELECTIVE
// RUN: dtc-opt %s --dtc-recompute-activations=mode=full 2>/dev/null | FileCheck %s --check-prefix FULL
// RUN: dtc-opt %s --dtc-recompute-activations=mode=auto 2>/dev/null | FileCheck %s --check-prefix NONE

// Two layers, each a matrix and the ops after it. A loop over one microbatch becomes its body. The results of the
// forward pass that the backward pass reads are kept, 4 of 16 KiB; its own results are not.
// REMARK-NONE: a device keeps 65536 of 65536 bytes for the backward pass and recomputes 0 ops
// NONE-LABEL: func.func @layers
// NONE-NOT: dist.microbatch_loop
// NONE-COUNT-2: dtc.einsum
// NONE: dist.stage = #dist.stage<0 backward>
// NONE-NOT: dtc.exp

// In each layer exp is kept, and tanh is recomputed from it just before its reader; recomputing both keeps no less. The
// clones belong to the backward pass, and the ops that they copy stay where they are.
// SELECTIVE-LABEL: func.func @layers
// SELECTIVE: %[[M0:.*]] = dtc.einsum {{.*}}<0 forward>
// SELECTIVE-NEXT: %[[E0:.*]] = dtc.exp %[[M0]] {dist.stage = #dist.stage<0 forward>}
// SELECTIVE-NEXT: %[[Y0:.*]] = dtc.tanh %[[E0]] {dist.stage = #dist.stage<0 forward>}
// SELECTIVE-NEXT: %[[M1:.*]] = dtc.einsum "bi,io->bo" %[[Y0]], {{.*}}<0 forward>
// SELECTIVE-NEXT: %[[E1:.*]] = dtc.exp %[[M1]] {dist.stage = #dist.stage<0 forward>}
// SELECTIVE-NEXT: %[[Y1:.*]] = dtc.tanh %[[E1]] {dist.stage = #dist.stage<0 forward>}
// SELECTIVE-NEXT: %[[Y1B:.*]] = dtc.tanh %[[E1]] {dist.stage = #dist.stage<0 backward>}
// SELECTIVE-NEXT: %[[D1:.*]] = dtc.mul %[[Y1B]], %[[E1]] {dist.stage = #dist.stage<0 backward>}
// SELECTIVE-NEXT: %[[Y0B:.*]] = dtc.tanh %[[E0]] {dist.stage = #dist.stage<0 backward>}
// SELECTIVE-NEXT: %[[D0:.*]] = dtc.mul %[[D1]], %[[Y0B]]
// SELECTIVE-NEXT: %[[D:.*]] = dtc.mul %[[D0]], %[[E0]]
// SELECTIVE-NEXT: return %[[Y1]], %[[D]]

// Only values that go from one layer to the other are kept: einsums are repeated too. Ops whose results are not needed
// are not.
// FULL-LABEL: func.func @layers
// FULL: %[[M0:.*]] = dtc.einsum {{.*}}<0 forward>
// FULL-NEXT: %[[E0:.*]] = dtc.exp %[[M0]]
// FULL-NEXT: %[[Y0:.*]] = dtc.tanh %[[E0]]
// FULL-NEXT: dtc.einsum "bi,io->bo" %[[Y0]], {{.*}}<0 forward>
// FULL: %[[M1B:.*]] = dtc.einsum "bi,io->bo" %[[Y0]], {{.*}}<0 backward>
// FULL-NEXT: %[[E1B:.*]] = dtc.exp %[[M1B]] {dist.stage = #dist.stage<0 backward>}
// FULL-NEXT: %[[Y1B:.*]] = dtc.tanh %[[E1B]]
// FULL-NEXT: %[[D1:.*]] = dtc.mul %[[Y1B]], %[[E1B]]
// FULL-NEXT: %[[D0:.*]] = dtc.mul %[[D1]], %[[Y0]]
// FULL-NEXT: %[[M0B:.*]] = dtc.einsum {{.*}}<0 backward>
// FULL-NEXT: %[[E0B:.*]] = dtc.exp %[[M0B]]
// FULL-NEXT: dtc.mul %[[D0]], %[[E0B]]
// FULL-NEXT: return
dist.mesh @mesh <"micro"=1 temporal>
func.func @layers(%x: tensor<64x64xf32> {dtc.input = "x"}, %w0: tensor<64x64xf32> {dtc.param = "w0"}, %w1: tensor<64x64xf32> {dtc.param = "w1"}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32>, tensor<64x64xf32> {
    %m0 = dtc.einsum "bi,io->bo" %x, %w0 {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.mlp")
    %e0 = dtc.exp %m0 {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %y0 = dtc.tanh %e0 {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %m1 = dtc.einsum "bi,io->bo" %y0, %w1 {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.1.mlp")
    %e1 = dtc.exp %m1 {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.1.mlp")
    %y1 = dtc.tanh %e1 {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.1.mlp")
    %d1 = dtc.mul %y1, %e1 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.1.mlp")
    %d0 = dtc.mul %d1, %y0 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    %d = dtc.mul %d0, %e0 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    dist.yield %y1, %d : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>
}
