// RUN: split-file %s %t
// RUN: dtc-opt %t/layers.mlir --dtc-propagate-shardings='shard=batch=dp,mlp=tp' --dtc-print-shardings -o %t/printed \
// RUN:   | FileCheck %s --match-full-lines --strict-whitespace --check-prefix=LAYERS
// RUN: dtc-opt %t/layers.mlir --dtc-propagate-shardings='shard=batch=dp,mlp=tp' -o %t/plain
// RUN: diff %t/printed %t/plain
// RUN: dtc-opt %t/layers.mlir --dtc-propagate-shardings='shard=batch=dp,mlp=tp' --dtc-insert-reshards \
// RUN:   --dtc-print-shardings -o /dev/null | FileCheck %s --match-full-lines --check-prefix=RESHARDS
// RUN: dtc-opt %t/state.mlir --dtc-print-shardings -o /dev/null | FileCheck %s --match-full-lines --check-prefix=STATE

//--- layers.mlir

// Layers 0 and 1 are alike; layer 2 is narrower: its 5 columns are padded to 6 over tp.

module {
  dist.mesh @mesh <"dp"=2, "tp"=2>
  func.func @loss(
      %emb: tensor<8xf32> {dtc.param = "emb.weight"},
      %w0: tensor<8x16xf32> {dtc.param = "h.0.mlp.weight", dtc.axes = ["", "mlp"]},
      %w1: tensor<8x16xf32> {dtc.param = "h.1.mlp.weight", dtc.axes = ["", "mlp"]},
      %w2: tensor<8x5xf32> {dtc.param = "h.2.mlp.weight", dtc.axes = ["", "mlp"]},
      %x: tensor<4x8xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %lr: tensor<f32> {dtc.scalar = "learning_rate"})
      -> tensor<4x8xf32> {
    %rows = dtc.broadcast %emb dims [1] : (tensor<8xf32>) -> tensor<4x8xf32> loc("emb")
    %in = dtc.add %x, %rows : tensor<4x8xf32> loc("emb")
    %a0 = dtc.einsum "bd,df->bf" %in, %w0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("h.0.mlp")
    %g0 = dtc.relu %a0 : tensor<4x16xf32> loc("h.0.mlp")
    %y0 = dtc.einsum "bf,df->bd" %g0, %w0 : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32> loc("h.0.mlp")
    %a1 = dtc.einsum "bd,df->bf" %y0, %w1 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc("h.1.mlp")
    %g1 = dtc.relu %a1 : tensor<4x16xf32> loc("h.1.mlp")
    %y1 = dtc.einsum "bf,df->bd" %g1, %w1 : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32> loc("h.1.mlp")
    %a2 = dtc.einsum "bd,df->bf" %y1, %w2 : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32> loc("h.2.mlp")
    %g2 = dtc.relu %a2 : tensor<4x5xf32> loc("h.2.mlp")
    %h2 = dtc.relu %g2 : tensor<4x5xf32> loc("h.2.mlp")
    %y2 = dtc.einsum "bf,df->bd" %h2, %w2 : (tensor<4x5xf32>, tensor<8x5xf32>) -> tensor<4x8xf32> loc("h.2.mlp")
    return %y2 : tensor<4x8xf32>
  }
}

//      LAYERS:@loss on mesh dp=2, tp=2: 4 devices
//LAYERS-EMPTY:
// LAYERS-NEXT:  parameter   shape     sharding      local shape  bytes  padding
// LAYERS-NEXT:outside layers
// LAYERS-NEXT:  emb.weight  8xf32     [{}]          8xf32        32
// LAYERS-NEXT:h.0 ... h.1 alike
// LAYERS-NEXT:  mlp.weight  8x16xf32  [{}, {"tp"}]  8x8xf32      256
// LAYERS-NEXT:h.2
// LAYERS-NEXT:  mlp.weight  8x5xf32   [{}, {"tp"}]  8x3xf32      96     dim 1: 5 to 6
// LAYERS-NEXT:parameters: 4 tensors, 304 elements, 640 bytes on each device
//LAYERS-EMPTY:
// LAYERS-NEXT:  input          shape    sharding      local shape  bytes  padding
// LAYERS-NEXT:  x              4x8xf32  [{"dp"}, {}]  2x8xf32      64
// LAYERS-NEXT:  learning_rate  f32      []            f32          4
//LAYERS-EMPTY:
// LAYERS-NEXT:  activation     in   shape     sharding          local shape  bytes  padding
// LAYERS-NEXT:outside layers
// LAYERS-NEXT:  dtc.broadcast  emb  4x8xf32   [{"dp"}, {}]      2x8xf32      64
// LAYERS-NEXT:  dtc.add        emb  4x8xf32   [{"dp"}, {}]      2x8xf32      64
// LAYERS-NEXT:h.0 ... h.1 alike
// LAYERS-NEXT:  dtc.einsum     mlp  4x16xf32  [{"dp"}, {"tp"}]  2x8xf32      64
// LAYERS-NEXT:  dtc.relu       mlp  4x16xf32  [{"dp"}, {"tp"}]  2x8xf32      64
// LAYERS-NEXT:  dtc.einsum     mlp  4x8xf32   [{"dp"}, {}]      2x8xf32      64
// LAYERS-NEXT:h.2
// LAYERS-NEXT:  dtc.einsum     mlp  4x5xf32   [{"dp"}, {"tp"}]  2x3xf32      24     dim 1: 5 to 6
// LAYERS-NEXT:  dtc.relu (2)   mlp  4x5xf32   [{"dp"}, {"tp"}]  2x3xf32      24     dim 1: 5 to 6
// LAYERS-NEXT:  dtc.einsum     mlp  4x8xf32   [{"dp"}, {}]      2x8xf32      64
//  LAYERS-NOT:{{.+}}

// After reshards the sums over tp are seen.
//      RESHARDS: activation in shape sharding local shape bytes padding
//      RESHARDS: h.0 ... h.1 alike
// RESHARDS-NEXT: dtc.einsum mlp 4x16xf32 [{"dp"}, {"tp"}] 2x8xf32 64
// RESHARDS-NEXT: dtc.relu mlp 4x16xf32 [{"dp"}, {"tp"}] 2x8xf32 64
// RESHARDS-NEXT: dtc.einsum mlp 4x8xf32 [{"dp"}, {}] partial sum{"tp"} 2x8xf32 64
// RESHARDS-NEXT: dist.reshard mlp 4x8xf32 [{"dp"}, {}] 2x8xf32 64
// RESHARDS-NEXT: h.2

//--- state.mlir

// The first moment is split further than its parameter, the second one is not. The local shape of the input is that of a
// microbatch. New values of states are not printed again.

module {
  dist.mesh @mesh <"dp"=2, "tp.0"=3 of "tp", "micro"=2 temporal>
  func.func @step(
      %w: tensor<7x12xf64> {dtc.param = "h.10.w", dist.sharding = #dist.sharding<@mesh, [{"tp.0"}, {}]>},
      %m: tensor<7x12xf64> {dtc.state = "exp_avg", dtc.state_of = "h.10.w",
                            dist.sharding = #dist.sharding<@mesh, [{"tp.0", "dp"}, {}]>},
      %v: tensor<7x12xf64> {dtc.state = "exp_avg_sq", dtc.state_of = "h.10.w",
                            dist.sharding = #dist.sharding<@mesh, [{"tp.0"}, {}]>},
      %x: tensor<16xi32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>},
      %mask: tensor<9xi1> {dist.sharding = #dist.sharding<@mesh, [{}]>},
      %gamma: tensor<12xf64> {dist.sharding = #dist.sharding<@mesh, [{}]>})
      -> (tensor<f64>, tensor<7x12xf64> {dtc.updates = 0}) {
    %new = dtc.add %w, %v {dist.sharding = #dist.sharding<@mesh, [{"tp.0"}, {}]>} : tensor<7x12xf64> loc("h.10.w")
    %stay = dist.reshard %new from <@mesh, [{"tp.0"}, {}]> to <@mesh, [{"tp.0"}, {}]>
        {dist.sharding = #dist.sharding<@mesh, [{"tp.0"}, {}]>} : tensor<7x12xf64> loc("h.10.w")
    %0:3 = dtc.layer_norm %w, %gamma, %gamma
        {eps = 1.0e-5, dist.sharding = [#dist.sharding<@mesh, [{"tp.0"}, {}]>, #dist.sharding<@mesh, [{}]>,
                                        #dist.sharding<@mesh, [{"tp.0"}]>]}
        : (tensor<7x12xf64>, tensor<12xf64>, tensor<12xf64>) -> (tensor<7x12xf64>, tensor<7xf64>, tensor<7xf64>)
    %loss = dtc.constant {dist.sharding = #dist.sharding<@mesh, []>} dense<1.0> : tensor<f64> loc("loss")
    return %loss, %stay : tensor<f64>, tensor<7x12xf64>
  }
}

// Axes split one after the other, each time rounded up: 7 rows are 3 over tp.0, and 2 of these over dp.
//      STATE: @step on mesh dp=2, tp.0=3 (of tp), micro=2 (temporal): 6 devices; what micro splits has the local shape of one microbatch
//      STATE: parameter shape sharding local shape bytes padding
// STATE-NEXT: h.10
// STATE-NEXT: w 7x12xf64 [{"tp.0"}, {}] 3x12xf64 288 dim 0: 7 to 9
// STATE-NEXT: parameters: 1 tensor, 84 elements, 288 bytes on each device
//      STATE: optimizer state of shape sharding local shape bytes padding
// STATE-NEXT: h.10
// STATE-NEXT: exp_avg w 7x12xf64 [{"tp.0", "dp"}, {}] 2x12xf64 192 dim 0: 7 to 12
// STATE-NEXT: optimizer state: 2 tensors, 168 elements, 480 bytes on each device
// STATE-NEXT: optimizer state: 1 of 2 with the parameter's sharding
//      STATE: x 16xi32 [{"dp", "micro"}] 4xi32 16
// STATE-NEXT: argument 4 9xi1 [{}] 9xi1 9
// STATE-NEXT: argument 5 12xf64 [{}] 12xf64 96
//      STATE: activation in shape sharding local shape bytes padding
// STATE-NEXT: dtc.layer_norm#0 line {{[0-9]+}} 7x12xf64 [{"tp.0"}, {}] 3x12xf64 288 dim 0: 7 to 9
// STATE-NEXT: dtc.layer_norm#1 line {{[0-9]+}} 7xf64 [{}] 7xf64 56
// STATE-NEXT: dtc.layer_norm#2 line {{[0-9]+}} 7xf64 [{"tp.0"}] 3xf64 24 dim 0: 7 to 9
// STATE-NEXT: dtc.constant loss f64 [] f64 8
//  STATE-NOT: {{.+}}
