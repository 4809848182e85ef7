//===- Passes.td - Passes about collectives ----------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_PASSES_TD
#define DTC_COMPILER_PASSES_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def CompressGradientsPass : Pass<"dtc-compress-gradients", "::mlir::ModuleOp"> {
  let summary = "Sum gradients over an axis as integers, as their largest elements, or as factors of low rank";
  let description = [{
    A sum of a gradient over `axis` becomes a sum in a compressed form; docs/parallelism.md has the formulas. A sum over
    further axes comes before, in full. A gradient that would not get smaller stays as it is, which a remark says.

    With `method=int8` or `int4`, addends are integers with one scale for each `block` consecutive elements of the
    parameter. An all-to-all brings each device the integers of its part from all devices, which are added as floats in
    the order of the axis. The sum is made integers once more, and an all-reduce ends with an all-gather of these. So the
    result is the same for an all-reduce and a reduce-scatter. With `rounding=stochastic` integers are rounded at random,
    from the random key of the step. Where the parts of other axes are no multiples of the block, the block is the
    largest divisor of a part, which a remark says.

    With `method=topk` each device sends of each block the `share` of the elements that are largest, with their places,
    to all devices, or to the one that has this part of the sum.

    With `method=powersgd` the gradient is a matrix M. All-reduces sum P = M Q, whose columns are then made orthonormal,
    and Q = M^T P, each of `rank` columns; the sum is P Q^T. Q is a state from which the next step begins.

    With `feedback` each device adds what the others did not get of its gradient to its next one.

    In an outer step (dtc-build-outer-step) the gradients are what replicas have changed their parameters by.

    ```mlir
    // dtc-opt --dtc-compress-gradients="axis=dp block=4"
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%w: tensor<8xf32> {dtc.param = "w"}, %g: tensor<8xf32>, %rate: tensor<f32>,
                          %factor: tensor<f32>, %apply: tensor<i1>) -> tensor<8xf32> {
      %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<8xf32>
      %new_w, %m = dtc.sgd %w, %sum, %g, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<8xf32>, tensor<8xf32>)
      return %new_w : tensor<8xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%w: tensor<8xf32> {dtc.param = "w"}, %g: tensor<8xf32>, %rate: tensor<f32>,
                          %factor: tensor<f32>, %apply: tensor<i1>) -> tensor<8xf32> {
      %q = dist.quantize_blocks %g {bits = 8, block = 4, dim = 0, parts = 2} : (tensor<8xf32>) -> tensor<2x2xi32>
      %all = dist.all_to_all %q split_dim 0 dim 1 over @mesh ["dp"] : (tensor<2x2xi32>) -> tensor<1x4xi32>
      %rows = dtc.reshape %all : (tensor<1x4xi32>) -> tensor<2x2xi32>
      %addends = dist.dequantize_blocks %rows {bits = 8, block = 4, dim = 0, parts = 1}
        : (tensor<2x2xi32>) -> tensor<1x2x4xf32>
      %part = dtc.reduce sum %addends dims [1] : (tensor<1x2x4xf32>) -> tensor<1x4xf32>
      %p = dist.quantize_blocks %part {bits = 8, block = 4, dim = 0, parts = 1} : (tensor<1x4xf32>) -> tensor<1x2xi32>
      %parts = dist.all_gather %p dim 0 over @mesh ["dp"] : (tensor<1x2xi32>) -> tensor<2x2xi32>
      %sum = dist.dequantize_blocks %parts {bits = 8, block = 4, dim = 0, parts = 1} : (tensor<2x2xi32>) -> tensor<8xf32>
      %new_w, %m = dtc.sgd %w, %sum, %g, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<8xf32>, tensor<8xf32>)
      return %new_w : tensor<8xf32>
    }
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "\"dp\"", "mesh axis over which sums are compressed">,
    Option<"method", "method", "std::string", "\"int8\"", "form of the addends: int8, int4, topk or powersgd">,
    Option<"rounding", "rounding", "std::string", "\"nearest\"", "how elements become integers: nearest or stochastic">,
    Option<"block", "block", "int64_t", "0", "elements of a block; 0: 256 with one scale, or 1024 of topk">,
    Option<"share", "share", "double", "0.01", "share of the elements of a block that topk sends">,
    Option<"rank", "rank", "int64_t", "4", "columns of the factors of powersgd">,
    Option<"feedback", "feedback", "bool", "false", "each device adds what it has lost to its next gradient">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect"];
}

def GatherParametersPerUsePass : Pass<"dtc-gather-parameters-per-use", "::mlir::ModuleOp"> {
  let summary = "Gather parameters before each use by a layer, and free them after it";
  let description = [{
    A parameter that is gathered over one of `axes` is gathered again for each layer use, in the forward pass and in the
    backward pass, instead of being kept between them (ZeRO stage 3, fully sharded data parallelism). A layer use is a
    run of ops that read gathered parameters, belong to one stage, and have locations that name one layer: up to the
    first number in the name. Gathers of one layer use share buckets. They are placed before the layer use that is
    `prefetch` uses earlier, so that they overlap with its computation.

    ```mlir
    // dtc-opt --dtc-gather-parameters-per-use="axes=dp prefetch=0"
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<8xf32>, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<8xf32> {
      %w1 = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
      %0 = dtc.mul %x, %w1 : tensor<8xf32> loc("h.0")
      %1 = dtc.mul %0, %w1 : tensor<8xf32> loc("h.1")
      return %1 : tensor<8xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<8xf32>, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<8xf32> {
      %w1 = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
      %0 = dtc.mul %x, %w1 : tensor<8xf32>
      %w2 = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
      %1 = dtc.mul %0, %w2 : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    ```
  }];
  let options = [
    ListOption<"axes", "axes", "std::string", "mesh axes over which parameters are gathered for each layer use">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400", "largest sum of the gathered bytes of a bucket">,
    Option<"prefetch", "prefetch", "int64_t", "1", "the number of layer uses by which gathers start ahead">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def ChunkCollectivesPass : Pass<"dtc-chunk-collectives", "::mlir::ModuleOp"> {
  let summary = "Compute in chunks what is between collectives, so that they overlap";
  let description = [{
    A chain of a collective, matrix products with what is computed from them, and another collective, or one end of such a
    chain, is computed in `chunks` chunks along a factor that all its ops carry to their results: the rows or the samples
    of experts, samples, positions. The collective of one chunk then runs while another chunk is computed. The sharding
    rules say which factors there are. Of these, and of the chains that they lead to, the pass takes those with the
    shortest estimated time, from the rates and links of the mesh. With 0 chunks it takes the best number as well, and leaves
    a chain whole that chunks would not make faster.

    A result of a chain that other ops need is put together from its chunks; a sum over the factor in f32 or f64, such as
    the gradient of a weight, may be the sum of the chunks' sums instead, where that takes less time. Rows that the number
    of chunks does not divide make chunks that differ by one row.

    It runs on the local view, before dtc-optimize-collectives.

    ```mlir
    // dtc-opt --dtc-chunk-collectives=chunks=2
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @mlp(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %v: tensor<32x16xf32>) -> tensor<8x16xf32> {
      %0 = dtc.einsum "bd,df->bf" %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
      %1 = dist.all_reduce sum %0 over @mesh ["tp"] : tensor<8x32xf32>
      %2 = dtc.einsum "bf,fd->bd" %1, %v : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
      return %2 : tensor<8x16xf32>
    }
    // After
    dist.mesh @mesh <"tp"=2>
    func.func @mlp(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %v: tensor<32x16xf32>) -> tensor<8x16xf32> {
      %x0 = dtc.slice %x offsets [0, 0] sizes [4, 16] : (tensor<8x16xf32>) -> tensor<4x16xf32>
      %0 = dtc.einsum "bd,df->bf" %x0, %w : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
      %1 = dist.all_reduce sum %0 over @mesh ["tp"] {dist.chunk = 0 : i64} : tensor<4x32xf32>
      %x1 = dtc.slice %x offsets [4, 0] sizes [4, 16] : (tensor<8x16xf32>) -> tensor<4x16xf32>
      %2 = dtc.einsum "bd,df->bf" %x1, %w : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
      %3 = dist.all_reduce sum %2 over @mesh ["tp"] {dist.chunk = 1 : i64} : tensor<4x32xf32>
      %4 = dtc.concat %1, %3 dim 0 : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<8x32xf32>
      %5 = dtc.einsum "bf,fd->bd" %4, %v : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
      return %5 : tensor<8x16xf32>
    }
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "0", "chunks of each chain, from 2; 0: as many as make it fastest">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect"];
}

def AlignCollectivesPass : Pass<"dtc-align-collectives", "::mlir::ModuleOp"> {
  let summary = "Bring collectives that do not need each other together";
  let description = [{
    A function that goes from parameter to parameter, as an outer step does, has the collectives of a parameter between
    ops of others, so that each would be waited for by itself. Here the ops of each block that no loop holds are ordered by
    the number of collectives that they come after, one behind another, and otherwise stay in their order. So
    `dtc-optimize-collectives` can put the collectives into buckets, and a link with a long latency is waited for a few
    times instead of once for each parameter.

    Operands and results of the collectives are held together. To bound that, ops are ordered within stretches; the first
    collectives of a stretch have `bucket-bytes` together, or there is one.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @outer_train_step(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
      %1 = dtc.neg %0 : tensor<4xf32>
      %2 = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf32>
      %3 = dtc.neg %2 : tensor<4xf32>
      return %1, %3 : tensor<4xf32>, tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @outer_train_step(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
      %1 = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf32>
      %2 = dtc.neg %0 : tensor<4xf32>
      %3 = dtc.neg %1 : tensor<4xf32>
      return %2, %3 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
      "bytes of the first collectives of a stretch; 0 leaves the order as it is">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def OptimizeCollectivesPass : Pass<"dtc-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Hoist collectives and merge them into buckets";
  let description = [{
    Each collective moves to just after the op that makes its operand; one whose operand is made outside the block stays
    where it is. A gather in the backward pass of what the forward pass made moves to before the matrix product before
    it, with which it overlaps. Collectives of one kind over the same axes that are small become a `dist.bucket`, which
    is closed when it has `bucket-bytes` or when one of its results is needed.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dtc.exp %x : tensor<4xf32>
      %1 = dtc.neg %x : tensor<4xf32>
      %2 = dtc.abs %x : tensor<4xf32>
      %3 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4xf32>
      %4 = dist.all_reduce sum %1 over @mesh ["dp"] : tensor<4xf32>
      %5 = dtc.add %2, %4 : tensor<4xf32>
      return %3, %5 : tensor<4xf32>, tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dtc.exp %x : tensor<4xf32>
      %1 = dtc.neg %x : tensor<4xf32>
      %sums:2 = dist.bucket -> tensor<4xf32>, tensor<4xf32> {
        %3 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4xf32>
        %4 = dist.all_reduce sum %1 over @mesh ["dp"] : tensor<4xf32>
        dist.yield %3, %4 : tensor<4xf32>, tensor<4xf32>
      }
      %2 = dtc.abs %x : tensor<4xf32>
      %5 = dtc.add %2, %sums#1 : tensor<4xf32>
      return %sums#0, %5 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
      "bytes at which a bucket is closed, and from which a collective stays alone; 0 makes no buckets">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def HideCollectivesPass : Pass<"dtc-hide-collectives", "::mlir::ModuleOp"> {
  let summary = "Delay products to where collectives are awaited";
  let description = [{
    Where a device would wait for a collective, products that nothing needs yet move from before the collective to just
    before the first op that needs its result, with all ops that need them. The time of ops and collectives is estimated
    from the mesh. As many products move as take the time of the wait, the nearest ones first. In a backward pass these
    are the gradients of weights.

    ```mlir
    // Before
    dist.mesh @mesh <"ep"=2>
    func.func @backward(%dy: tensor<8x16xf32>, %x: tensor<8x32xf32>, %w: tensor<32x16xf32>)
        -> (tensor<16x16xf32>, tensor<32x16xf32>) {
      %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
      %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
      %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<8x32xf32>) -> tensor<16x16xf32>
      %0 = dtc.exp %rows : tensor<16x16xf32>
      return %0, %dw : tensor<16x16xf32>, tensor<32x16xf32>
    }
    // After
    dist.mesh @mesh <"ep"=2>
    func.func @backward(%dy: tensor<8x16xf32>, %x: tensor<8x32xf32>, %w: tensor<32x16xf32>)
        -> (tensor<16x16xf32>, tensor<32x16xf32>) {
      %dx = dtc.einsum "bn,kn->bk" %dy, %w : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
      %rows = dist.all_to_all %dx split_dim 1 dim 0 over @mesh ["ep"] : (tensor<8x32xf32>) -> tensor<16x16xf32>
      %dw = dtc.einsum "bk,bn->kn" %x, %dy : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
      %0 = dtc.exp %rows : tensor<16x16xf32>
      return %0, %dw : tensor<16x16xf32>, tensor<32x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

#endif // DTC_COMPILER_PASSES_COLLECTIVES_PASSES_TD
