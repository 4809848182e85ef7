// RUN: dtc-opt %s --split-input-file --dtc-hide-collectives | FileCheck %s

// The gradient of a weight waits until rows of a later all-to-all are on their way.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @weight_gradient
func.func @weight_gradient(%dy: tensor<64x128xf32>, %x: tensor<64x256xf32>, %w: tensor<256x128xf32>)
    -> (tensor<128x128xf32>, tensor<256x128xf32>) {
  // CHECK-NEXT: %[[DX:.*]] = dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: %[[ROWS:.*]] = dist.all_to_all %[[DX]]
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dtc.exp %[[ROWS]]
  %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<64x128xf32>, tensor<256x128xf32>) -> tensor<64x256xf32>
  %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x256xf32>) -> tensor<128x128xf32>
  %0 = dtc.exp %rows : tensor<128x128xf32>
  return %0, %dw : tensor<128x128xf32>, tensor<256x128xf32>
}

// -----

// The users of the product go with it, in their order: here a negation, and the bucket of a reduction over other
// devices, which later work still hides.
dist.mesh @mesh <"dp"=2, "ep"=2>
// CHECK-LABEL: func @users
func.func @users(%dy: tensor<64x128xf32>, %x: tensor<64x256xf32>, %w: tensor<256x128xf32>, %other: tensor<8xf32>, %large: tensor<4096x4096xf32>)
    -> (tensor<128x128xf32>, tensor<256x128xf32>, tensor<8xf32>, tensor<4096x4096xf32>) {
  // CHECK-NEXT: dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: %[[DW:.*]] = dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: %[[NEGATED:.*]] = dtc.neg %[[DW]]
  // CHECK-NEXT: dist.bucket
  // CHECK-NEXT: dist.all_reduce sum %[[NEGATED]]
  // CHECK: dtc.exp
  // CHECK: dtc.einsum "ij,jk->ik"
  %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<64x128xf32>, tensor<256x128xf32>) -> tensor<64x256xf32>
  %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %negated = dtc.neg %dw : tensor<256x128xf32>
  %sums:2 = dist.bucket -> tensor<256x128xf32>, tensor<8xf32> {
    %1 = dist.all_reduce sum %negated over @mesh ["dp"] : tensor<256x128xf32>
    %2 = dist.all_reduce sum %other over @mesh ["dp"] : tensor<8xf32>
    dist.yield %1, %2 : tensor<256x128xf32>, tensor<8xf32>
  }
  %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x256xf32>) -> tensor<128x128xf32>
  %0 = dtc.exp %rows : tensor<128x128xf32>
  %late = dtc.einsum "ij,jk->ik" %large, %large : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0, %sums#0, %sums#1, %late : tensor<128x128xf32>, tensor<256x128xf32>, tensor<8xf32>, tensor<4096x4096xf32>
}

// -----

// A product stays where its reduction, if it started later, would be waited for instead.
dist.mesh @mesh <"dp"=2, "ep"=2>
// CHECK-LABEL: func @reduction_is_awaited
func.func @reduction_is_awaited(%dy: tensor<64x128xf32>, %x: tensor<64x256xf32>, %w: tensor<256x128xf32>)
    -> (tensor<128x128xf32>, tensor<256x128xf32>) {
  // CHECK-NEXT: dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.exp
  %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<64x128xf32>, tensor<256x128xf32>) -> tensor<64x256xf32>
  %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %sum = dist.all_reduce sum %dw over @mesh ["dp"] : tensor<256x128xf32>
  %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x256xf32>) -> tensor<128x128xf32>
  %0 = dtc.exp %rows : tensor<128x128xf32>
  %1 = dtc.neg %sum : tensor<256x128xf32>
  return %0, %1 : tensor<128x128xf32>, tensor<256x128xf32>
}

// -----

// A product stays if the collective, or an op before the first use of its result, depends on it.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @needed
func.func @needed(%dy: tensor<64x128xf32>, %x: tensor<64x256xf32>, %w: tensor<256x128xf32>)
    -> (tensor<128x128xf32>, tensor<256x128xf32>) {
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.neg
  // CHECK-NEXT: dtc.exp
  %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<64x128xf32>, tensor<256x128xf32>) -> tensor<64x256xf32>
  %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x256xf32>) -> tensor<128x128xf32>
  %negated = dtc.neg %dw : tensor<256x128xf32>
  %0 = dtc.exp %rows : tensor<128x128xf32>
  return %0, %negated : tensor<128x128xf32>, tensor<256x128xf32>
}

// -----

// Only as many products move as the wait takes, and the nearest ones: of two gradients the first
// stays.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @enough
func.func @enough(%dy: tensor<4096x4096xf32>, %x: tensor<4096x4096xf32>, %dz: tensor<256x4096xf32>)
    -> (tensor<512x2048xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>) {
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.einsum "bk,bn->nk"
  // CHECK-NEXT: dtc.exp
  %first = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %second = dtc.einsum "bk,bn->nk" %x, %dy : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %dx = dtc.einsum "bn,kn->bk" %dz, %x : (tensor<256x4096xf32>, tensor<4096x4096xf32>) -> tensor<256x4096xf32>
  %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<256x4096xf32>) -> tensor<512x2048xf32>
  %0 = dtc.exp %rows : tensor<512x2048xf32>
  return %0, %first, %second : tensor<512x2048xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>
}

// -----

// A collective that other work hides already delays nothing.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @hidden
func.func @hidden(%dy: tensor<4096x4096xf32>, %x: tensor<4096x4096xf32>, %small: tensor<4x4xf32>)
    -> (tensor<8x2xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>) {
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.einsum "bk,bn->nk"
  // CHECK-NEXT: dtc.exp
  %first = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %rows = dist.all_to_all %small split_dim 1 dim 0 over @mesh ["ep"] : (tensor<4x4xf32>) -> tensor<8x2xf32>
  %second = dtc.einsum "bk,bn->nk" %x, %dy : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %0 = dtc.exp %rows : tensor<8x2xf32>
  return %0, %first, %second : tensor<8x2xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>
}

// -----

// A collective that takes no time stays before the op that needs its result, and so does the product.
dist.mesh @mesh <"one"=1, "ep"=2>
// CHECK-LABEL: func @no_time
func.func @no_time(%dy: tensor<64x128xf32>, %x: tensor<64x256xf32>, %w: tensor<256x128xf32>)
    -> (tensor<128x128xf32>, tensor<256x128xf32>) {
  // CHECK-NEXT: dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.exp
  %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<64x128xf32>, tensor<256x128xf32>) -> tensor<64x256xf32>
  %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %sum = dist.all_reduce sum %dw over @mesh ["one"] : tensor<256x128xf32>
  %again = dist.all_reduce sum %sum over @mesh ["ep"] : tensor<256x128xf32>
  %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x256xf32>) -> tensor<128x128xf32>
  %0 = dtc.exp %rows : tensor<128x128xf32>
  %1 = dtc.neg %again : tensor<256x128xf32>
  return %0, %1 : tensor<128x128xf32>, tensor<256x128xf32>
}

// -----

// In a loop, an operand from outside may have users there.
dist.mesh @mesh <"ep"=2, "micro"=2 temporal>
// CHECK-LABEL: func @loop
func.func @loop(%dy: tensor<64x128xf32>, %x: tensor<64x256xf32>, %w: tensor<256x128xf32>)
    -> (tensor<128x128xf32>, tensor<256x128xf32>, tensor<64x256xf32>) {
  // CHECK: dist.microbatch_loop
  // CHECK-NEXT: dtc.einsum "bn,kn->bk"
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.einsum "bk,bn->kn"
  // CHECK-NEXT: dtc.exp
  %r:2 = dist.microbatch_loop @mesh "micro" : tensor<128x128xf32>, tensor<256x128xf32> {
    %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<64x128xf32>, tensor<256x128xf32>) -> tensor<64x256xf32>
    %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
    %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x256xf32>) -> tensor<128x128xf32>
    %0 = dtc.exp %rows : tensor<128x128xf32>
    dist.yield %0, %dw : tensor<128x128xf32>, tensor<256x128xf32>
  }
  %u = dtc.neg %x : tensor<64x256xf32>
  return %r#0, %r#1, %u : tensor<128x128xf32>, tensor<256x128xf32>, tensor<64x256xf32>
}

// -----

// A product that hides one collective does not leave it for a later one.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @hides_another
func.func @hides_another(%a: tensor<64x512xf32>, %x: tensor<64x512xf32>, %dy: tensor<64x512xf32>)
    -> (tensor<64x512xf32>, tensor<512x512xf32>) {
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.einsum
  // CHECK-NEXT: dtc.exp
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.exp
  %first = dist.all_to_all %a split_dim 1 dim 0 over @mesh ["ep"] : (tensor<64x512xf32>) -> tensor<128x256xf32>
  %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<64x512xf32>, tensor<64x512xf32>) -> tensor<512x512xf32>
  %p0 = dtc.exp %first : tensor<128x256xf32>
  %second = dist.all_to_all %p0 split_dim 0 dim 1 over @mesh ["ep"] : (tensor<128x256xf32>) -> tensor<64x512xf32>
  %p1 = dtc.exp %second : tensor<64x512xf32>
  return %p1, %dw : tensor<64x512xf32>, tensor<512x512xf32>
}

// -----

// A product stays where its operands, which would be free before, take more than twice what is exchanged.
dist.mesh @mesh <"ep"=2>
// CHECK-LABEL: func @holds_too_much
func.func @holds_too_much(%x: tensor<64x256xf32>, %dy: tensor<64x128xf32>, %small: tensor<4x4xf32>)
    -> (tensor<8x2xf32>, tensor<256x128xf32>) {
  // CHECK-NEXT: dtc.exp
  // CHECK-NEXT: dtc.einsum
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dtc.exp
  %saved = dtc.exp %x : tensor<64x256xf32>
  %dw = dtc.einsum "bk,bn->kn" %saved, %dy : (tensor<64x256xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %rows = dist.all_to_all %small split_dim 1 dim 0 over @mesh ["ep"] : (tensor<4x4xf32>) -> tensor<8x2xf32>
  %0 = dtc.exp %rows : tensor<8x2xf32>
  return %0, %dw : tensor<8x2xf32>, tensor<256x128xf32>
}

// -----

// Where nothing can be delayed, what comes later and needs no result of the collective comes before the wait, with the
// ops that it needs: the gradients of the queries' projection while those of the keys travel home.
dist.mesh @mesh <"cp"=2>
// CHECK-LABEL: func @comes_earlier
func.func @comes_earlier(%given: tensor<64x256xf32>, %dq: tensor<64x256xf32>, %x: tensor<64x32xf32>)
    -> (tensor<32x256xf32>, tensor<32x256xf32>) {
  // CHECK-NEXT: dtc.tanh
  // CHECK-NEXT: %[[HOME:.*]] = dist.all_reduce
  // CHECK-NEXT: %[[TURNED:.*]] = dtc.neg %{{.*}} : tensor<64x256xf32>
  // CHECK-NEXT: dtc.einsum "bd,be->de" %{{.*}}, %[[TURNED]]
  // CHECK-NEXT: dtc.exp %[[HOME]]
  // CHECK-NEXT: dtc.einsum
  %dk = dtc.tanh %given : tensor<64x256xf32>
  %home = dist.all_reduce sum %dk over @mesh ["cp"] : tensor<64x256xf32>
  %keys = dtc.exp %home : tensor<64x256xf32>
  %dwk = dtc.einsum "bd,be->de" %x, %keys : (tensor<64x32xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
  %queries = dtc.neg %dq : tensor<64x256xf32>
  %dwq = dtc.einsum "bd,be->de" %x, %queries : (tensor<64x32xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
  return %dwk, %dwq : tensor<32x256xf32>, tensor<32x256xf32>
}

// -----

// What stands behind the next collective hides that one, and stays.
dist.mesh @mesh <"cp"=2>
// CHECK-LABEL: func @hides_the_next
func.func @hides_the_next(%given: tensor<64x256xf32>, %dq: tensor<64x256xf32>, %x: tensor<64x128xf32>)
    -> (tensor<64x256xf32>, tensor<128x256xf32>) {
  // CHECK-NEXT: dtc.tanh
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: dtc.exp
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: dtc.einsum
  // CHECK-NEXT: dtc.exp
  %dk = dtc.tanh %given : tensor<64x256xf32>
  %home = dist.all_reduce sum %dk over @mesh ["cp"] : tensor<64x256xf32>
  %keys = dtc.exp %home : tensor<64x256xf32>
  %next = dist.all_reduce sum %keys over @mesh ["cp"] : tensor<64x256xf32>
  %dwq = dtc.einsum "bd,be->de" %x, %dq : (tensor<64x128xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %last = dtc.exp %next : tensor<64x256xf32>
  return %last, %dwq : tensor<64x256xf32>, tensor<128x256xf32>
}

// -----

// A product stays behind the wait if its result would take more than twice what is exchanged, or if it needs another
// collective, which nothing has awaited yet.
dist.mesh @mesh <"cp"=2>
// CHECK-LABEL: func @stays_behind
func.func @stays_behind(%given: tensor<4x4xf32>, %dq: tensor<64x256xf32>, %x: tensor<64x128xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<128x256xf32>) {
  // CHECK-NEXT: dtc.tanh
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: %[[OTHER:.*]] = dist.all_reduce
  // CHECK-NEXT: dtc.exp
  // CHECK-NEXT: dtc.einsum "ab,bc->ac" %[[OTHER]]
  // CHECK-NEXT: dtc.einsum "bd,be->de"
  %small = dtc.tanh %given : tensor<4x4xf32>
  %home = dist.all_reduce sum %small over @mesh ["cp"] : tensor<4x4xf32>
  %other = dist.all_reduce sum %small over @mesh ["cp"] : tensor<4x4xf32>
  %keys = dtc.exp %home : tensor<4x4xf32>
  %product = dtc.einsum "ab,bc->ac" %other, %small : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dwq = dtc.einsum "bd,be->de" %x, %dq : (tensor<64x128xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  return %keys, %product, %dwq : tensor<4x4xf32>, tensor<4x4xf32>, tensor<128x256xf32>
}

// -----

// Nothing comes before the wait for a parameter, which can be gathered as early as wanted.
dist.mesh @mesh <"cp"=2>
// CHECK-LABEL: func @moves_a_parameter
func.func @moves_a_parameter(%weight: tensor<64x256xf32>, %dq: tensor<64x256xf32>, %x: tensor<64x32xf32>)
    -> (tensor<64x256xbf16>, tensor<32x256xf32>) {
  // CHECK-NEXT: dtc.convert
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: dtc.exp
  // CHECK-NEXT: dtc.einsum
  %cast = dtc.convert %weight : (tensor<64x256xf32>) -> tensor<64x256xbf16>
  %whole = dist.all_reduce sum %cast over @mesh ["cp"] : tensor<64x256xbf16>
  %used = dtc.exp %whole : tensor<64x256xbf16>
  %dwq = dtc.einsum "bd,be->de" %x, %dq : (tensor<64x32xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
  return %used, %dwq : tensor<64x256xbf16>, tensor<32x256xf32>
}
