// RUN: dtc-opt %s --split-input-file --dtc-chunk-collectives=chunks=2 | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-chunk-collectives=chunks=3 | FileCheck %s --check-prefix THREE
// RUN: dtc-opt %s --split-input-file --dtc-chunk-collectives | FileCheck %s --check-prefix AUTO

// Experts, in chunks of the rows. The rows of the second chunk travel while the products of the first are computed, and those of the
// first travel back while the products of the second are. The ops that bring rows to experts are computed in chunks as
// well.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @experts
// CHECK: %[[IDS0:.*]] = dtc.slice %{{.*}} offsets [0, 0, 0] sizes [4, 1, 5]
// CHECK-NEXT: %[[X0:.*]] = dtc.embedding %{{.*}}, %[[IDS0]]
// CHECK-NEXT: %[[ROWS0:.*]] = dist.all_to_all %[[X0]] split_dim 0 dim 1 over @mesh ["ep"] {dist.chunk = 0 : i64} : (tensor<4x1x5x16xf32>) -> tensor<2x2x5x16xf32>
// CHECK: %[[IDS1:.*]] = dtc.slice %{{.*}} offsets [0, 0, 5] sizes [4, 1, 5]
// CHECK-NEXT: %[[X1:.*]] = dtc.embedding %{{.*}}, %[[IDS1]]
// CHECK-NEXT: %[[ROWS1:.*]] = dist.all_to_all %[[X1]] {{.*}} {dist.chunk = 1 : i64}
// CHECK: dtc.slice %{{.*}} offsets [0, 0, 0] sizes [2, 2, 5]
// CHECK-NEXT: dtc.grouped_product "xbcd,xdf->xbcf" %[[ROWS0]]
// CHECK-NEXT: dtc.silu
// CHECK-NEXT: %[[Y0:.*]] = dtc.grouped_product "xbcf,xfd->xbcd"
// CHECK-NEXT: %[[BACK0:.*]] = dist.all_to_all %[[Y0]] split_dim 1 dim 0 {{.*}} {dist.chunk = 0 : i64}
// CHECK: dtc.grouped_product "xbcd,xdf->xbcf" %[[ROWS1]]
// CHECK: %[[BACK1:.*]] = dist.all_to_all %{{.*}} split_dim 1 dim 0 {{.*}} {dist.chunk = 1 : i64}
// CHECK: %[[BACK:.*]] = dtc.concat %[[BACK0]], %[[BACK1]] dim 2 : (tensor<4x1x5x16xf32>, tensor<4x1x5x16xf32>) -> tensor<4x1x10x16xf32>
// CHECK-NEXT: dtc.einsum "xbcd,de->xbce" %[[BACK]]

// Ten rows in three chunks.
// THREE-LABEL: func @experts
// THREE: dtc.slice %{{.*}} offsets [0, 0, 0] sizes [4, 1, 4]
// THREE: dtc.slice %{{.*}} offsets [0, 0, 4] sizes [4, 1, 3]
// THREE: dtc.slice %{{.*}} offsets [0, 0, 7] sizes [4, 1, 3]
// THREE: dtc.concat %{{.*}}, %{{.*}}, %{{.*}} dim 2 : (tensor<4x1x4x16xf32>, tensor<4x1x3x16xf32>, tensor<4x1x3x16xf32>) -> tensor<4x1x10x16xf32>
func.func @experts(%y: tensor<1x32x16xf32>, %w0: tensor<16x16xf32>, %ids: tensor<4x1x10xi32>, %rows: tensor<2x2x10xi32>,
                   %w1: tensor<2x16x64xf32>, %w2: tensor<2x64x16xf32>) -> tensor<4x1x10x16xf32> {
  %0 = dtc.einsum "bsd,de->bse" %y, %w0 : (tensor<1x32x16xf32>, tensor<16x16xf32>) -> tensor<1x32x16xf32>
  %1 = dtc.embedding %0, %ids : (tensor<1x32x16xf32>, tensor<4x1x10xi32>) -> tensor<4x1x10x16xf32>
  %2 = dist.all_to_all %1 split_dim 0 dim 1 over @mesh ["ep"] : (tensor<4x1x10x16xf32>) -> tensor<2x2x10x16xf32>
  %3 = dtc.grouped_product "xbcd,xdf->xbcf" %2, %w1 rows %rows : (tensor<2x2x10x16xf32>, tensor<2x16x64xf32>, tensor<2x2x10xi32>) -> tensor<2x2x10x64xf32>
  %4 = dtc.silu %3 : tensor<2x2x10x64xf32>
  %5 = dtc.grouped_product "xbcf,xfd->xbcd" %4, %w2 rows %rows : (tensor<2x2x10x64xf32>, tensor<2x64x16xf32>, tensor<2x2x10xi32>) -> tensor<2x2x10x16xf32>
  %6 = dist.all_to_all %5 split_dim 1 dim 0 over @mesh ["ep"] : (tensor<2x2x10x16xf32>) -> tensor<4x1x10x16xf32>
  %7 = dtc.einsum "xbcd,de->xbce" %6, %w0 : (tensor<4x1x10x16xf32>, tensor<16x16xf32>) -> tensor<4x1x10x16xf32>
  return %7 : tensor<4x1x10x16xf32>
}

// -----

// One sequence on each device: positions are cut. The gathered tensor has a block of each device, so the chunks of the
// result are joined block by block. Positions that attention needs all together end the chain.
dist.mesh @mesh <"tp"=2>
// CHECK-LABEL: func @positions
// CHECK-NEXT: %[[X0:.*]] = dtc.slice %{{.*}} offsets [0, 0, 0] sizes [1, 4, 16]
// CHECK-NEXT: %[[Y0:.*]] = dtc.einsum "bsd,de->bse" %[[X0]]
// CHECK-NEXT: %[[G0:.*]] = dist.all_gather %[[Y0]] dim 1 {{.*}} {dist.chunk = 0 : i64} : (tensor<1x4x16xf32>) -> tensor<1x8x16xf32>
// CHECK-NEXT: %[[X1:.*]] = dtc.slice %{{.*}} offsets [0, 4, 0] sizes [1, 4, 16]
// CHECK-NEXT: %[[Y1:.*]] = dtc.einsum "bsd,de->bse" %[[X1]]
// CHECK-NEXT: %[[G1:.*]] = dist.all_gather %[[Y1]] dim 1 {{.*}} {dist.chunk = 1 : i64}
// CHECK-NEXT: %[[Z0:.*]] = dtc.einsum "bsd,dhe->bshe" %[[G0]]
// CHECK-NEXT: %[[Z1:.*]] = dtc.einsum "bsd,dhe->bshe" %[[G1]]
// CHECK-DAG: %[[B0:.*]] = dtc.reshape %[[Z0]] : (tensor<1x8x4x4xf32>) -> tensor<1x2x4x4x4xf32>
// CHECK-DAG: %[[B1:.*]] = dtc.reshape %[[Z1]] : (tensor<1x8x4x4xf32>) -> tensor<1x2x4x4x4xf32>
// CHECK-NEXT: %[[B:.*]] = dtc.concat %[[B0]], %[[B1]] dim 2
// CHECK-NEXT: %[[Z:.*]] = dtc.reshape %[[B]] : (tensor<1x2x8x4x4xf32>) -> tensor<1x16x4x4xf32>
// CHECK-NEXT: dtc.attention %[[Z]]
func.func @positions(%x: tensor<1x8x16xf32>, %w0: tensor<16x16xf32>, %w1: tensor<16x4x4xf32>) -> tensor<1x16x4x4xf32> {
  %0 = dtc.einsum "bsd,de->bse" %x, %w0 : (tensor<1x8x16xf32>, tensor<16x16xf32>) -> tensor<1x8x16xf32>
  %1 = dist.all_gather %0 dim 1 over @mesh ["tp"] : (tensor<1x8x16xf32>) -> tensor<1x16x16xf32>
  %2 = dtc.einsum "bsd,dhe->bshe" %1, %w1 : (tensor<1x16x16xf32>, tensor<16x4x4xf32>) -> tensor<1x16x4x4xf32>
  %3, %lse = dtc.attention %2, %2, %2 {causal = true, scale = 0.5 : f64} : (tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>) -> (tensor<1x16x4x4xf32>, tensor<1x4x16xf32>)
  return %3 : tensor<1x16x4x4xf32>
}

// -----

// A scattered tensor has a block for each device. The chain ends with the collective: a softmax and a product need its
// result in one piece.
dist.mesh @mesh <"tp"=2>
// CHECK-LABEL: func @scattered
// CHECK: %[[SLICE0:.*]] = dtc.slice %{{.*}} offsets [0, 0, 0, 0] sizes [1, 2, 4, 32]
// CHECK-NEXT: %[[H0:.*]] = dtc.reshape %[[SLICE0]] : (tensor<1x2x4x32xf32>) -> tensor<1x8x32xf32>
// CHECK-NEXT: %[[Y0:.*]] = dtc.einsum "bsf,fd->bsd" %[[H0]]
// CHECK-NEXT: %[[S0:.*]] = dist.reduce_scatter sum %[[Y0]] dim 1 {{.*}} {dist.chunk = 0 : i64} : (tensor<1x8x64xf32>) -> tensor<1x4x64xf32>
// CHECK: dtc.slice %{{.*}} offsets [0, 0, 4, 0] sizes [1, 2, 4, 32]
// CHECK: %[[S1:.*]] = dist.reduce_scatter sum %{{.*}} dim 1 {{.*}} {dist.chunk = 1 : i64}
// CHECK-NEXT: %[[S:.*]] = dtc.concat %[[S0]], %[[S1]] dim 1 : (tensor<1x4x64xf32>, tensor<1x4x64xf32>) -> tensor<1x8x64xf32>
// CHECK-NEXT: dtc.softmax %[[S]]
func.func @scattered(%h: tensor<1x16x32xf32>, %w: tensor<32x64xf32>, %m: tensor<1x8x8xf32>) -> tensor<1x8x64xf32> {
  %0 = dtc.einsum "bsf,fd->bsd" %h, %w : (tensor<1x16x32xf32>, tensor<32x64xf32>) -> tensor<1x16x64xf32>
  %1 = dist.reduce_scatter sum %0 dim 1 over @mesh ["tp"] : (tensor<1x16x64xf32>) -> tensor<1x8x64xf32>
  %2 = dtc.softmax %1 : tensor<1x8x64xf32>
  %3 = dtc.einsum "bts,bsd->btd" %m, %2 : (tensor<1x8x8xf32>, tensor<1x8x64xf32>) -> tensor<1x8x64xf32>
  return %3 : tensor<1x8x64xf32>
}

// -----

// The backward pass uses the chunks of the forward pass: nothing joins them. The gradient of the weight is the sum of those of the
// chunks, as it is smaller than what would have to be joined.
dist.mesh @mesh <"tp"=2>
// CHECK-LABEL: func @gradient
// CHECK: %[[A0:.*]] = dist.all_gather %{{.*}} {dist.chunk = 0 : i64}
// CHECK: %[[A1:.*]] = dist.all_gather %{{.*}} {dist.chunk = 1 : i64}
// CHECK-NOT: dtc.concat %[[A0]]
// CHECK: %[[D0:.*]] = dist.all_gather %{{.*}} {dist.chunk = 0 : i64}
// CHECK: %[[D1:.*]] = dist.all_gather %{{.*}} {dist.chunk = 1 : i64}
// CHECK-NOT: dtc.concat
// CHECK: %[[DW0:.*]] = dtc.einsum "bsd,bsf->df" %[[A0]], %[[D0]]
// CHECK: %[[DW1:.*]] = dtc.einsum "bsd,bsf->df" %[[A1]], %[[D1]]
// CHECK-NEXT: %[[DW:.*]] = dtc.add %[[DW0]], %[[DW1]] : tensor<1024x512xf32>
// CHECK: return %{{.*}}, %[[DW]]
func.func @gradient(%x: tensor<4x512x1024xf32>, %w0: tensor<1024x1024xf32>, %w: tensor<1024x512xf32>, %dy: tensor<4x512x512xf32>, %w1: tensor<512x512xf32>)
    -> (tensor<4x512x1024xf32>, tensor<1024x512xf32>) {
  %0 = dtc.einsum "bsd,de->bse" %x, %w0 : (tensor<4x512x1024xf32>, tensor<1024x1024xf32>) -> tensor<4x512x1024xf32>
  %1 = dist.all_gather %0 dim 1 over @mesh ["tp"] : (tensor<4x512x1024xf32>) -> tensor<4x1024x1024xf32>
  %2 = dtc.einsum "bsd,df->bsf" %1, %w : (tensor<4x1024x1024xf32>, tensor<1024x512xf32>) -> tensor<4x1024x512xf32>
  %3 = dist.reduce_scatter sum %2 dim 1 over @mesh ["tp"] : (tensor<4x1024x512xf32>) -> tensor<4x512x512xf32>
  %4 = dtc.mul %3, %dy : tensor<4x512x512xf32>
  %5 = dtc.einsum "bsf,fg->bsg" %4, %w1 : (tensor<4x512x512xf32>, tensor<512x512xf32>) -> tensor<4x512x512xf32>
  %6 = dist.all_gather %5 dim 1 over @mesh ["tp"] : (tensor<4x512x512xf32>) -> tensor<4x1024x512xf32>
  %7 = dtc.einsum "bsf,df->bsd" %6, %w : (tensor<4x1024x512xf32>, tensor<1024x512xf32>) -> tensor<4x1024x1024xf32>
  %8 = dtc.einsum "bsd,bsf->df" %1, %6 : (tensor<4x1024x1024xf32>, tensor<4x1024x512xf32>) -> tensor<1024x512xf32>
  %9 = dist.reduce_scatter sum %7 dim 1 over @mesh ["tp"] : (tensor<4x1024x1024xf32>) -> tensor<4x512x1024xf32>
  %10 = dtc.einsum "bsd,de->bse" %9, %w0 : (tensor<4x512x1024xf32>, tensor<1024x1024xf32>) -> tensor<4x512x1024xf32>
  return %10, %8 : tensor<4x512x1024xf32>, tensor<1024x512xf32>
}

// -----

// These stay whole: the gather of a parameter, which can start early; the sum of the gradient of a weight, for which
// nothing waits but a norm and the optimizer; a collective without products; the steps of a ring.
dist.mesh @mesh <"dp"=2>
// CHECK-LABEL: func @whole
// CHECK-NOT: dist.chunk
// CHECK: return
func.func @whole(%x: tensor<4x8x16xf32>, %shard: tensor<8x16xf32>, %y: tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>, tensor<f32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>) {
  %0 = dist.all_gather %shard dim 0 over @mesh ["dp"] : (tensor<8x16xf32>) -> tensor<16x16xf32>
  %1 = dtc.einsum "bsd,de->bse" %x, %0 : (tensor<4x8x16xf32>, tensor<16x16xf32>) -> tensor<4x8x16xf32>
  %2 = dtc.einsum "bsd,bse->de" %x, %1 : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<16x16xf32>
  %3 = dist.all_reduce sum %2 over @mesh ["dp"] : tensor<16x16xf32>
  %4 = dtc.mul %1, %y : tensor<4x8x16xf32>
  %5 = dist.all_reduce sum %4 over @mesh ["dp"] : tensor<4x8x16xf32>
  %6 = dtc.exp %5 : tensor<4x8x16xf32>
  %7 = dist.permute %1 over @mesh ["dp"] from ["dp"] {shift = 1 : i64} : tensor<4x8x16xf32>
  %8 = dtc.exp %7 : tensor<4x8x16xf32>
  %9 = dtc.einsum "de,de->" %3, %3 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<f32>
  return %1, %9, %6, %8 : tensor<4x8x16xf32>, tensor<f32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>
}

// -----

// A softmax over the only dimension of more than one element needs it in one piece.
dist.mesh @mesh <"tp"=2>
// CHECK-LABEL: func @no_factor
// CHECK-NOT: dist.chunk
// CHECK: return
func.func @no_factor(%x: tensor<1x16xf32>, %w: tensor<16x16xf32>) -> tensor<1x16xf32> {
  %0 = dtc.einsum "bd,de->be" %x, %w : (tensor<1x16xf32>, tensor<16x16xf32>) -> tensor<1x16xf32>
  %1 = dtc.softmax %0 : tensor<1x16xf32>
  %2 = dist.all_reduce sum %1 over @mesh ["tp"] : tensor<1x16xf32>
  %3 = dtc.softmax %2 : tensor<1x16xf32>
  %4 = dtc.einsum "bd,de->be" %3, %w : (tensor<1x16xf32>, tensor<16x16xf32>) -> tensor<1x16xf32>
  return %4 : tensor<1x16xf32>
}

// -----

// By the estimates: chunks where products are long, none where a message takes no longer than its latency.
dist.mesh @mesh <"tp"=8 link 1.0e11 5.0e-6> {device_flops = 1.0e14, device_bandwidth = 2.0e12}
// AUTO-LABEL: func @long
// AUTO: dist.reduce_scatter {{.*}} {dist.chunk = 0 : i64}
// AUTO: dist.reduce_scatter {{.*}} {dist.chunk = 1 : i64}
func.func @long(%x: tensor<8x512x4096xf32>, %w0: tensor<4096x4096xf32>, %w1: tensor<4096x2048xf32>, %w2: tensor<2048x4096xf32>) -> tensor<8x512x4096xf32> {
  %0 = dtc.einsum "bsd,de->bse" %x, %w0 : (tensor<8x512x4096xf32>, tensor<4096x4096xf32>) -> tensor<8x512x4096xf32>
  %1 = dist.all_gather %0 dim 1 over @mesh ["tp"] : (tensor<8x512x4096xf32>) -> tensor<8x4096x4096xf32>
  %2 = dtc.einsum "bsd,df->bsf" %1, %w1 : (tensor<8x4096x4096xf32>, tensor<4096x2048xf32>) -> tensor<8x4096x2048xf32>
  %3 = dtc.einsum "bsf,fd->bsd" %2, %w2 : (tensor<8x4096x2048xf32>, tensor<2048x4096xf32>) -> tensor<8x4096x4096xf32>
  %4 = dist.reduce_scatter sum %3 dim 1 over @mesh ["tp"] : (tensor<8x4096x4096xf32>) -> tensor<8x512x4096xf32>
  %5 = dtc.einsum "bsd,de->bse" %4, %w0 : (tensor<8x512x4096xf32>, tensor<4096x4096xf32>) -> tensor<8x512x4096xf32>
  return %5 : tensor<8x512x4096xf32>
}
// AUTO-LABEL: func @short
// AUTO-NOT: dist.chunk
// AUTO: return
func.func @short(%x: tensor<8x2x16xf32>, %w0: tensor<16x16xf32>, %w1: tensor<16x32xf32>, %w2: tensor<32x16xf32>) -> tensor<8x2x16xf32> {
  %0 = dtc.einsum "bsd,de->bse" %x, %w0 : (tensor<8x2x16xf32>, tensor<16x16xf32>) -> tensor<8x2x16xf32>
  %1 = dist.all_gather %0 dim 1 over @mesh ["tp"] : (tensor<8x2x16xf32>) -> tensor<8x16x16xf32>
  %2 = dtc.einsum "bsd,df->bsf" %1, %w1 : (tensor<8x16x16xf32>, tensor<16x32xf32>) -> tensor<8x16x32xf32>
  %3 = dtc.einsum "bsf,fd->bsd" %2, %w2 : (tensor<8x16x32xf32>, tensor<32x16xf32>) -> tensor<8x16x16xf32>
  %4 = dist.reduce_scatter sum %3 dim 1 over @mesh ["tp"] : (tensor<8x16x16xf32>) -> tensor<8x2x16xf32>
  %5 = dtc.einsum "bsd,de->bse" %4, %w0 : (tensor<8x2x16xf32>, tensor<16x16xf32>) -> tensor<8x2x16xf32>
  return %5 : tensor<8x2x16xf32>
}

