//===- Passes.td - Passes about shardings ------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_PASSES_TD
#define DTC_COMPILER_PASSES_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def NameDimensionsPass : Pass<"dtc-name-dimensions", "::mlir::ModuleOp"> {
  let summary = "Give logical axes to dimensions that the axis map names by argument";
  let description = [{
    The logical axis of an axis-map entry may be a dimension of an argument: `layers.0.weight#1=tp` is about dimension 1
    of the parameter or input "layers.0.weight", in the shape that weights files have; a component `*` of the name
    matches any number. It becomes the logical axis (`dtc.axes`) of the dimension and replaces the one that it may
    have. From then on the entry is like any other.

    It runs after `dtc-fold-parameter-reshapes`. A name that matches no argument, a dimension that does not exist, and
    two entries for one dimension are errors.

    ```mlir
    // dtc-opt --dtc-name-dimensions="shard=h.*.w#1=tp"
    // Before
    func.func @loss(%w0: tensor<8x4xf32> {dtc.param = "h.0.w"},
                    %w1: tensor<8x4xf32> {dtc.param = "h.1.w", dtc.axes = ["embed", "mlp"]}) {
      return
    }
    // After
    func.func @loss(%w0: tensor<8x4xf32> {dtc.param = "h.0.w", dtc.axes = ["", "h.*.w#1"]},
                    %w1: tensor<8x4xf32> {dtc.param = "h.1.w", dtc.axes = ["embed", "h.*.w#1"]}) {
      return
    }
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string",
      "as for dtc-propagate-shardings; entries for logical axes are left alone">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def SplitMeshAxesPass : Pass<"dtc-split-mesh-axes", "::mlir::ModuleOp"> {
  let summary = "Split mesh axes into sub-axes where a dimension is smaller than the axis, or ZeRO pads less";
  let description = [{
    Two key-value heads cannot be split by an axis `tp=4`, only by a part of it, and are replicated over the rest. `tp`
    becomes `tp.0=2` and `tp.1=2`: key-value heads are split by the first sub-axis, query heads by both. Shardings in
    the module and axis-map entries that name `tp` then mean both.

    An axis that ZeRO splits over is split in two if its parts, on different dimensions of the parameters, leave a
    device at least 1 % less of them: 14 devices do not divide 4x7 elements evenly along one dimension, 2 and 7 do
    along two.

    ```mlir
    // dtc-opt --dtc-split-mesh-axes="shard=heads=tp,kv_heads=tp"
    // Before
    dist.mesh @mesh <"tp"=4>
    func.func @loss(%q: tensor<4x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                    %k: tensor<2x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
                    %x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"} ]>}) {
      return
    }
    // After
    dist.mesh @mesh <"tp.0"=2 of "tp", "tp.1"=2 of "tp">
    func.func @loss(%q: tensor<4x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                    %k: tensor<2x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
                    %x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp.0", "tp.1"} ]>}) {
      return
    }
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"defaultShard", "default-shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"whole", "whole", "std::string",
      "logical axes that are of no use replicated, such as batch: no mesh axis is split for them, nor for first "
      "dimensions of inputs that the axis map names by argument">,
    ListOption<"zeroAxes", "zero-axes", "std::string", "the mesh axes that ZeRO splits over, if it does">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def ParallelizeContextPass : Pass<"dtc-parallelize-context", "::mlir::ModuleOp"> {
  let summary = "Prepare attention for sequences that an axis splits";
  let description = [{
    Outside of attention, an op on a part of a sequence gives a part of the result. Attention takes one of these
    forms (`exchange`):

    - `all-gather`: a device has the queries of its part, and the keys and values of all. Where attention is causal, the
      function is put into zigzag order (see `dtc.zigzag`), in which all devices see as many keys: arguments and other
      values that positions come from pass a `dtc.zigzag`, and `dtc.attention` and `dtc.rotary` know the order. Where an
      op needs positions in their order, or results have them, the order stays, with a remark.
    - `all-to-all`: heads are split over the axis, instead of the sequence, by a `dist.constrain` before and after.
    - `ring`: keys and values lie as queries do (`key_shift` of `dtc.attention`), in the same zigzag order, and go round:
      see `dtc-expand-ring-attention`.
    - `auto`: for each op the one for which a device is estimated to wait least.

    With `head-devices`, attention is nested: groups of that many neighbours split heads, by a `dist.constrain` before
    and after, and do the same as `all-gather` or `ring` between the groups. The axis then has sub-axes, of which the
    last ones are a group's.

    Attention whose queries no logical axis splits over the axis is left alone. It runs before `dtc-split-mesh-axes` and before gradients are made, which inherit all of it.

    ```mlir
    // dtc-opt --dtc-parallelize-context="default-shard=seq=cp"
    // Before
    dist.mesh @mesh <"cp"=2>
    func.func @loss(%q: tensor<1x8x2x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]},
                    %k: tensor<1x8x1x4xf32> {dtc.input = "k"}) -> tensor<f32> {
      %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 1.0}
        : (tensor<1x8x2x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
      %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x2x4xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    // After
    dist.mesh @mesh <"cp"=2>
    func.func @loss(%q: tensor<1x8x2x4xf32> {dtc.input = "q", dtc.axes = ["", "", "", ""]},
                    %k: tensor<1x8x1x4xf32> {dtc.input = "k"}) -> tensor<f32> {
      %zq = dtc.zigzag %q {dtc.axes = ["", "seq", "", ""], dim = 1, inverse = false, parts = 2} : tensor<1x8x2x4xf32>
      %out, %lse = dtc.attention %zq, %k, %k {causal = true, scale = 1.0, zigzag = 2}
        : (tensor<1x8x2x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
      %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x2x4xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "\"cp\"", "the axis of the mesh that splits sequences">,
    Option<"exchange", "exchange", "std::string", "\"auto\"", "all-gather, all-to-all, ring or auto">,
    Option<"headDevices", "head-devices", "int64_t", "1", "the devices of a group that split heads; 1: no groups">,
    Option<"zigzag", "zigzag", "bool", "true", "put causal sequences into zigzag order">,
    ListOption<"batchAxes", "batch-axes", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"shard", "shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"defaultShard", "default-shard", "std::string", "as for dtc-propagate-shardings">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect", "::dtc::DtcDialect"];
}

def CloneConstantsPerUsePass : Pass<"dtc-clone-constants-per-use", "::mlir::ModuleOp"> {
  let summary = "Give each use of a constant or broadcast an op of its own";
  let description = [{
    Clones, for each use, ops whose results have dimensions that come from no data and no parameter: constants, ops on
    constants alone, broadcasts of parameters, rows of a table at constant ids. Propagation then gives each use its own
    sharding, as if the model had an op for each. So a constant that a microbatch needs a part of may be needed as a
    whole by another op, although nothing is gathered over microbatches.

    It runs after the CSE that makes equal ops one, and before `dtc-propagate-shardings`; the CSE after that merges the
    clones that have equal shardings. Scalars are left alone, and so are expressions of more than 64 ops.

    ```mlir
    // Before
    func.func @loss(%x: tensor<4x4xf32> {dtc.input = "x"},
                    %w: tensor<4x4xf32> {dtc.param = "w"}) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
      %c = dtc.constant dense<0.5> : tensor<4x4xf32>
      %0 = dtc.add %x, %c : tensor<4x4xf32>
      %1 = dtc.mul %w, %c : tensor<4x4xf32>
      return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
    }
    // After
    func.func @loss(%x: tensor<4x4xf32> {dtc.input = "x"},
                    %w: tensor<4x4xf32> {dtc.param = "w"}) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
      %c = dtc.constant dense<5.000000e-01> : tensor<4x4xf32>
      %own = dtc.constant dense<5.000000e-01> : tensor<4x4xf32>
      %0 = dtc.add %x, %own : tensor<4x4xf32>
      %1 = dtc.mul %w, %c : tensor<4x4xf32>
      return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
    }
    ```
  }];
}

def PropagateShardingsPass : Pass<"dtc-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Derive the sharding of every value, and the mesh axes of every op's factors";
  let description = [{
    Starts from the shardings that are written in the IR (`dist.sharding` on arguments, results and ops, and
    `dist.constrain`), whose closed dimensions are never changed, and from the axis map, which gives mesh axes to
    logical axes (`dtc.axes`). Follows the factors of each op, forwards and backwards, in nested propagation levels,
    each to a fixpoint: requests of priority 0, then of priority 1, and so on; within one priority, first ops that pass
    dimensions through, then those that reduce some, and last ops whose tensors are in conflict. A conflict is resolved
    by estimated time, with a remark.

    The mesh axes that split each op's factors are left in `dist.factors` for `dtc-insert-reshards`.

    An op that needs all of a sharded dimension on one device is replaced by simpler ops (its `decompose`) where it can
    be. Dimensions that the axes do not divide are padded, with a remark. A mesh axis that splits nothing in the end is
    a warning.

    With a `zero-stage` the optimizer state (1), the gradients (2) and the parameters (3) are sharded over `zero-axes`
    as well (Rajbhandari et al. 2020).

    ```mlir
    // dtc-opt --dtc-propagate-shardings="shard=mlp=tp"
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x"},
                    %w: tensor<8x6xf32> {dtc.param = "w", dtc.axes = ["", "mlp"]}) -> tensor<4x6xf32> {
      %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }
    // After
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {} ]>},
                    %w: tensor<8x6xf32> {dtc.param = "w", dtc.axes = ["", "mlp"],
                                         dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>}) -> tensor<4x6xf32> {
      %0 = dtc.einsum "bi,io->bo" %x, %w {dist.factors = [[], [], ["tp"]],
                                          dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>}
        : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string",
      "logical axis = mesh axes, such as batch=dp+micro, or residual_seq=tp@1 for priority 1; a dimension that is not "
      "split at all is an error, and so is an axis that the model does not have">,
    ListOption<"defaultShard", "default-shard", "std::string",
      "as shard, for logical axes that it does not name; dimensions that are too small are not split">,
    ListOption<"mustSplit", "must-split", "std::string",
      "logical axes of default-shard for which a dimension that is too small is an error">,
    ListOption<"batchAxes", "batch-axes", "std::string",
      "mesh axes of microbatches: they split the batch as well, after the axes that shard names for it">,
    Option<"zeroStage", "zero-stage", "int64_t", "0", "0 to 3">,
    ListOption<"zeroAxes", "zero-axes", "std::string", "the mesh axes over which ZeRO shards">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def InsertReshardsPass : Pass<"dtc-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "Make every change of layout an op";
  let description = [{
    Chooses for each op the mesh axes that split its factors, and inserts a `dist.reshard` where an operand has another
    layout. After it, the shardings of an op's operands and results follow from one assignment of axes to its factors; a
    factor that is summed leaves its axes as partial axes of the results. Partial values flow through ops that are
    linear in them and do not make them larger, or whose results are added to other partial values, and are reduced once
    where that ends.

    `dist.reason` says why a reshard is there and what would remove it; `dtc-plan explain` shows it.

    ```mlir
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %0 = dtc.reduce sum %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{} ]>}
        : (tensor<4x8xf32>) -> tensor<4xf32>
      %1 = dtc.exp %0 {dist.sharding = #dist.sharding<@mesh, [{} ]>} : tensor<4xf32> loc("act")
      return %1 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %0 = dtc.reduce sum %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{} ], partial = sum{"tp"}>}
        : (tensor<4x8xf32>) -> tensor<4xf32>
      %1 = dist.reshard %0 from <@mesh, [{} ], partial = sum{"tp"}> to <@mesh, [{} ]> {
        dist.reason = {consumer = "dtc.exp in act", from = "[{} ] partial sum{\22tp\22}",
          remedy = "it is a sum over {\22tp\22}, which split a dimension that was reduced; keep that dimension whole",
          to = "[{} ]", value = "result of dtc.reduce"},
        dist.sharding = #dist.sharding<@mesh, [{} ]>} : tensor<4xf32>
      %2 = dtc.exp %1 {dist.sharding = #dist.sharding<@mesh, [{} ]>} : tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def PrintShardingsPass : Pass<"dtc-print-shardings", "::mlir::ModuleOp"> {
  let summary = "Print the shardings of a function as a table";
  let description = [{
    Prints, on the standard output, the layout of the values of the global view: for each parameter the global shape,
    the sharding, the shape and the bytes of a device's shard and what is padded; the optimizer state where it differs
    from its parameter; the inputs; and the results of ops. Rows are grouped by layer, the name of a location up to its
    first number; a number in parentheses counts equal rows; successive layers that are alike are printed once.

    It runs after `dtc-propagate-shardings`, or after `dtc-insert-reshards`, where partial sums are shown as well. The
    function does not change; `-o` writes it to a file, so that the standard output has only the table.

    ```mlir
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%w: tensor<8x6xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>})
        -> (tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>}) {
      %0 = dtc.exp %w {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>} : tensor<8x6xf32> loc("h.0")
      return %0 : tensor<8x6xf32>
    }
    // Prints
    // @loss on mesh tp=2: 2 devices
    //
    //   parameter  shape    sharding      local shape  bytes  padding
    //   w          8x6xf32  [{}, {"tp"} ]  8x3xf32      96
    // parameters: 1 tensor, 48 elements, 96 bytes on each device
    //
    //   activation  in  shape    sharding      local shape  bytes  padding
    // h.0
    //   dtc.exp         8x6xf32  [{}, {"tp"} ]  8x3xf32      96
    ```
  }];
}

#endif // DTC_COMPILER_PASSES_SHARDING_PASSES_TD
