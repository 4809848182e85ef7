//===- DistOps.td - Ops of the dist dialect --------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTOPS_TD
#define DTC_DIALECTS_DIST_DISTOPS_TD

include "dialects/dist/DistDialect.td"
include "dialects/dist/DistInterfaces.td"
include "dialects/dtc/DtcInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_Tensor : StaticShapeTensorOf<[F32, F64, BF16, F16, I32, I1, F8E4M3FN, F8E5M2]>;
def Dist_FloatTensor : StaticShapeTensorOf<[F32, F64]>;
def Dist_AxesAttr : TypedArrayAttrBase<StrAttr, "array of axis names">;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "The devices, as named axes";
  let description = [{
    The product of the sizes of the spatial axes is the number of devices; device numbers are row-major over them in
    the order listed. At most one axis is temporal, and at most one is a pipeline. `device_flops` (floating point
    operations a second) and `device_bandwidth` (of the memory, bytes a second) are what a device is taken to do, for
    estimates.

    ```mlir
    dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>
    ```

    Constraints:

    - [mesh-c1] The axes have different names.
    - [mesh-c2] There are at most 2^20 devices.
    - [mesh-c3] `device_flops` and `device_bandwidth` are greater than 0.
    - [mesh-c4] At most one axis is a pipeline.
    - [mesh-c5] At most one axis is temporal.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<Dist_AxisAttr, "array of axes">:$axes,
                       OptionalAttr<F64Attr>:$device_flops, OptionalAttr<F64Attr>:$device_bandwidth);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Dist_ConstrainOp : Dist_Op<"constrain", [Pure, AllTypesMatch<["input", "result"]>, Dtc_SameElements, Dtc_CarriesSums,
    DeclareOpInterfaceMethods<Dtc_ShardingRuleOpInterface, ["getShardingRule"]>,
    DeclareOpInterfaceMethods<Dtc_DifferentiableOpInterface>, Dtc_PrecisionOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Fixes the sharding of a value";
  let description = [{
    The identity. The user puts it into a model (shapes `[s] -> [s]`, global view) where a value must have the given
    sharding; propagation does not change it.

    ```mlir
    %1 = dist.constrain %0 to <@mesh, [{"dp"}, {} ]> : tensor<4x8xf32>
    ```

    Constraints:

    - [constrain-c1] The sharding is not partial.
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$sharding);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `to` $sharding attr-dict `:` type($input)";
}

def Dist_SumBatchesOp : Dist_Op<"sum_batches", [Pure, AllTypesMatch<["input", "result"]>, Dtc_CarriesSums,
    DeclareOpInterfaceMethods<Dtc_ShardingRuleOpInterface, ["getShardingRule"]>, Dtc_PrecisionOpInterface]> {
  let summary = "The sum of a value over all batches of the step";
  let description = [{
    With gradient accumulation over several batches (`dtc-run --accumulate`), what leads to the operand runs once
    for each batch and what follows from the result once. With one batch it is the identity (shapes `[s] -> [s]`, global
    view). It lies as its operand does, be that a partial sum.

    With `over_samples` the operand has to be a sum over samples: a summand that each batch would add once, whatever
    samples it has, is an error of `dtc-spmd-partition`.

    ```mlir
    %1 = dist.sum_batches %0 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Dist_FloatTensor:$input, UnitAttr:$over_samples);
  let results = (outs Dist_FloatTensor:$result);
  let assemblyFormat = "$input (`over_samples` $over_samples^)? attr-dict `:` type($input)";
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure, AllTypesMatch<["input", "result"]>, Dtc_SameElements, Dtc_CarriesSums,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Changes the sharding of a value";
  let description = [{
    The identity on the global value (shapes `[s] -> [s]`, global view): the result is laid out as `to`, the operand as
    `from`. Everything that moves between devices, and every sum of partial values, is one of these until the function
    is partitioned.

    Constraints:

    - [reshard-c1] Both shardings are on the same mesh.
    - [reshard-c2] Each axis over which the result is partial is one over which the operand is partial.
    - [reshard-c3] A result that is partial combines as the operand does: as a sum, a maximum or a minimum.
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$from, Dist_ShardingAttr:$to);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Local view
//===----------------------------------------------------------------------===//

/// An op over axes of a mesh that it names.
class Dist_MeshUserOp<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

/// `kind` is a case of CollectiveKind.
class Dist_CollectiveOp<string mnemonic, string kind, list<Trait> traits = []>
    : Dist_MeshUserOp<mnemonic, traits # [Dist_CollectiveOpInterface, Dtc_CarriesSums]> {
  code kindDeclaration = [{
    static ::dtc::CollectiveKind getCollectiveKind() {
      return ::dtc::CollectiveKind::}] # kind # [{;
    }
  }];
  let extraClassDeclaration = kindDeclaration;
}

/// A collective that combines values, as its attribute `kind` says.
class Dist_ReducingOp<string mnemonic, string kind, list<Trait> traits = []>
    : Dist_CollectiveOp<mnemonic, kind, traits> {
  let extraClassDeclaration = kindDeclaration # [{
    ::dtc::dist::ReductionKindAttr getReduction() { return getKindAttr(); }
  }];
}

def Dist_AllReduceOp : Dist_ReducingOp<"all_reduce", "AllReduce", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Combines the values of all devices of a group, for all of them";
  let description = [{
    `[s] -> [s]`. The group is the devices that differ only in their coordinates on `axes` (spatial ones).

    Constraints:

    - [all_reduce-c1] `mesh` is the name of a `dist.mesh`.
    - [all_reduce-c2] `axes` are different spatial axes of the mesh.
  }];
  let arguments = (ins Dist_ReductionKindAttr:$kind, Dist_Tensor:$input, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `over` $mesh $axes attr-dict `:` type($input)";
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather", "AllGather", [Dtc_MovesElements]> {
  let summary = "Concatenates the values of all devices of a group along a dimension";
  let description = [{
    `[.., n, ..] -> [.., n * group, ..]`, in rank order, row-major over `axes` as listed.

    Constraints:

    - [all_gather-c1] `mesh` is the name of a `dist.mesh`.
    - [all_gather-c2] `axes` are different spatial axes of the mesh.
    - [all_gather-c3] `dim` is a dimension of the operand.
    - [all_gather-c4] The result has the type of the operand, with dimension `dim` as many times larger as the group has
      members.
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$dim, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)";
}

def Dist_ReduceScatterOp : Dist_ReducingOp<"reduce_scatter", "ReduceScatter"> {
  let summary = "Combines the values of a group and keeps one block for each device";
  let description = [{
    `[.., n, ..] -> [.., n / group, ..]`: rank r gets block r of `dim` of the reduction.

    Constraints:

    - [reduce_scatter-c1] `mesh` is the name of a `dist.mesh`.
    - [reduce_scatter-c2] `axes` are different spatial axes of the mesh.
    - [reduce_scatter-c3] `dim` is a dimension of the operand.
    - [reduce_scatter-c4] The number of members of the group divides the size of dimension `dim`.
    - [reduce_scatter-c5] The result has the type of the operand, with dimension `dim` as many times smaller as the
      group has members.
  }];
  let arguments = (ins Dist_ReductionKindAttr:$kind, Dist_Tensor:$input, I64Attr:$dim, FlatSymbolRefAttr:$mesh,
                       Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)";
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all", "AllToAll", [Dtc_MovesElements]> {
  let summary = "Moves a sharding from one dimension to another";
  let description = [{
    `[.., m, .., n, ..] -> [.., m / group, .., n * group, ..]`: the operand is split along `split_dim`, block r goes to
    rank r, and what arrives is concatenated along `dim` in rank order.

    Constraints:

    - [all_to_all-c1] `mesh` is the name of a `dist.mesh`.
    - [all_to_all-c2] `axes` are different spatial axes of the mesh.
    - [all_to_all-c3] `split_dim` and `dim` are dimensions of the operand.
    - [all_to_all-c4] The number of members of the group divides the size of dimension `split_dim`.
    - [all_to_all-c5] The result has the type of the operand, with dimension `split_dim` as many times smaller and
      dimension `dim` as many times larger as the group has members.
    - [all_to_all-c6] `split_dim` and `dim` differ.
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$split_dim, I64Attr:$dim, FlatSymbolRefAttr:$mesh,
                       Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `split_dim` $split_dim `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)
  }];
}

def Dist_PermuteOp : Dist_CollectiveOp<"permute", "Permute", [
    AllTypesMatch<["input", "result"]>, Dtc_MovesElements]> {
  let summary = "Hands each device the whole value of another one of its group";
  let description = [{
    `[s] -> [s]`. A device gets the value of the member whose rank, row-major over `axes`, is this device's block number,
    row-major over `source_axes`, which are the same axes in another order. A shard `[a, b]` of a dimension becomes
    the shard `[b, a]` with `axes` = a, b and `source_axes` = b, a.

    With a `shift` the rank is that number less `shift`, modulo the size of the group: values go round a ring.

    Constraints:

    - [permute-c1] `mesh` is the name of a `dist.mesh`.
    - [permute-c2] `axes` are different spatial axes of the mesh.
    - [permute-c3] `source_axes` has the axes of `axes`, in any order.
    - [permute-c4] `shift` is at least 0.
  }];
  let arguments = (ins Dist_Tensor:$input, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes, Dist_AxesAttr:$source_axes,
                       DefaultValuedAttr<I64Attr, "0">:$shift);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` $mesh $axes `from` $source_axes attr-dict `:` type($input)";
}

def Dist_BucketOp : Dist_Op<"bucket", [Pure, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A bucket of collectives";
  let description = [{
    Holds collectives of one kind over the same axes, none of which needs the result of another. They run as one, which
    costs the latency of one. Results are those of the collectives, in their order.

    ```mlir
    %0:2 = dist.bucket -> tensor<4xf32>, tensor<8xf32> {
      %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
      %b = dist.all_reduce sum %y over @mesh ["dp"] : tensor<8xf32>
      dist.yield %a, %b : tensor<4xf32>, tensor<8xf32>
    }
    ```

    Constraints:

    - [bucket-c1] The region holds collectives only.
    - [bucket-c2] The collectives have one kind, reduction, element type and stage, and are over the same axes of one
      mesh.
    - [bucket-c3] No collective reads a result of another one.
    - [bucket-c4] The results are those of the collectives, all of them, in their order.
  }];
  let results = (outs Variadic<Dist_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword (`->` type($results)^)? $body";
  let hasRegionVerifier = 1;
}

def Dist_MaskPaddingOp : Dist_MeshUserOp<"mask_padding", [AllTypesMatch<["input", "result"]>, Dtc_CarriesSums,
    DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "Fills the padding of a shard with a neutral element";
  let description = [{
    `[s] -> [s]`. Dimension `dim` is this device's block of `size` elements over `axes`, each of which splits the block
    that the axes before it leave into parts of equal size, rounded up. Elements after those that exist become the
    neutral element of the reduction to come: zero, the lowest or the highest value of the type.

    Constraints:

    - [mask_padding-c1] `mesh` is the name of a `dist.mesh`.
    - [mask_padding-c2] `axes` are different axes of the mesh.
    - [mask_padding-c3] `dim` is a dimension of the operand.
    - [mask_padding-c4] Dimension `dim` has as many elements as a block of `size` elements over `axes`: `size` divided
      by the number of blocks, rounded up.
  }];
  let arguments = (ins Dist_PaddingValueAttr:$padding, Dist_Tensor:$input, I64Attr:$dim, I64Attr:$size,
                       FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $padding $input `dim` $dim `of` $size `over` $mesh $axes attr-dict `:` type($input)";
}

def Dist_ShardSliceOp : Dist_MeshUserOp<"shard_slice",
    [Dtc_MovesElements, Dtc_CarriesSums, DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "This device's block of a dimension";
  let description = [{
    `[.., n, ..] -> [.., ceil(n / blocks), ..]`. Each axis splits the block that the axes before it leave into parts of
    equal size, rounded up; on a temporal axis the coordinate is that of the running microbatch. Elements after the
    operand's end are zero. Nothing moves between devices.

    Constraints:

    - [shard_slice-c1] `mesh` is the name of a `dist.mesh`.
    - [shard_slice-c2] `axes` are different axes of the mesh.
    - [shard_slice-c3] `dim` is a dimension of the operand.
    - [shard_slice-c4] The result has the element type and, but for dimension `dim`, the shape of the operand.
    - [shard_slice-c5] Dimension `dim` of the result has the size of that of the operand, divided by the number of
      blocks and rounded up.
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$dim, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)";
}

def Dist_CopyOp : Dist_Op<"copy", [Pure, AllTypesMatch<["input", "result"]>, Dtc_SameElements,
    DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "Copies a value to the memory of the host, or back";
  let description = [{
    `[s] -> [s]`, local view. The result lies in the memory of the device's host where the operand lies in that of the
    device, and the other way round.

    Constraints:

    - [copy-c1] `to` is "host" or "device".
  }];
  let arguments = (ins Dist_Tensor:$input, StrAttr:$to);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `to` $to attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Dist_ShardOffsetOp : Dist_MeshUserOp<"shard_offset",
    [DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "Where this device's shard of a dimension starts";
  let description = [{
    A scalar: the index of the first element of this device's block of a dimension of `size` elements over `axes`.

    Constraints:

    - [shard_offset-c1] `mesh` is the name of a `dist.mesh`.
    - [shard_offset-c2] `axes` are different axes of the mesh.
    - [shard_offset-c3] `size` is at least 1.
  }];
  let arguments = (ins I64Attr:$size, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "`size` $size `over` $mesh $axes attr-dict `:` type($result)";
}

def Dist_MicrobatchLoopOp : Dist_MeshUserOp<"microbatch_loop", [SingleBlockImplicitTerminator<"YieldOp">,
    RecursiveMemoryEffects]> {
  let summary = "Runs its body once for each microbatch and adds up what it yields";
  let description = [{
    `axis` is a temporal axis; its coordinate, which `dist.shard_slice` and `dist.shard_offset` read, goes from 0 to its
    size less one. Each result is the sum over the iterations of the value yielded at its position. Of a loop of one
    iteration that is the value itself, which then may have any type.

    In a pipeline the body of a device's loop holds `dist.fragment`, `dist.send` and `dist.receive` only, and `schedule`
    says in which order they run: pairs of the number of an op of the body and a microbatch. Of a send it says when it
    must be over (it starts after the fragment before it), of a receive when it starts.

    Constraints:

    - [microbatch_loop-c1] `mesh` is the name of a `dist.mesh`.
    - [microbatch_loop-c2] `axis` is a temporal axis of the mesh.
    - [microbatch_loop-c3] The results of a loop of several iterations have elements of type f32 or f64.
    - [microbatch_loop-c4] `schedule` has an even number of entries.
    - [microbatch_loop-c5] Each pair of `schedule` is the number of an op of the body and a microbatch, both from 0.
    - [microbatch_loop-c6] The body of a loop with a `schedule` holds fragments, sends and receives only.
    - [microbatch_loop-c7] The yielded values have the types of the results.
  }];
  let arguments = (ins FlatSymbolRefAttr:$mesh, StrAttr:$axis, OptionalAttr<DenseI64ArrayAttr>:$schedule);
  let results = (outs Variadic<Dist_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$mesh $axis attr-dict-with-keyword (`:` type($results)^)? $body";
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

def Dist_FragmentOp : Dist_Op<"fragment", [HasParent<"MicrobatchLoopOp">, SingleBlockImplicitTerminator<"YieldOp">,
    RecursiveMemoryEffects]> {
  let summary = "A forward, backward or weight pass over one stage";
  let description = [{
    A device runs it from its first op to its last before it does anything else. Results are the values that other
    fragments of the device, sends, or the loop's sums use.

    ```mlir
    %0 = dist.fragment forward 3 -> tensor<4x8xf32> { .. dist.yield %x : tensor<4x8xf32> }
    ```

    Constraints:

    - [fragment-c1] `stage` is at least 0.
    - [fragment-c2] The yielded values have the types of the results.
  }];
  let arguments = (ins Dist_StagePassAttr:$pass, I64Attr:$stage);
  let results = (outs Variadic<Dist_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`` $pass $stage attr-dict-with-keyword (`->` type($results)^)? $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dist_SendOp : Dist_Op<"send"> {
  let summary = "Sends values to a device of another stage";
  let description = [{
    The device is the one whose coordinate on the mesh's pipeline axis is `peer` and that has this device's other
    coordinates; it has a `dist.receive` with the same `channel` for values of the same types.

    `numbers` identify the values across devices: `dtc-schedule-pipeline` gives each value of the whole program that is
    sent a number. Both ends have the same numbers in the same order, which is checked of the plan.

    Constraints:

    - [send-c1] At least one value is sent.
    - [send-c2] `peer` and `channel` are at least 0.
    - [send-c3] `numbers`, if there are any, has an entry of at least 0 for each value.
  }];
  let arguments = (ins Variadic<Dist_Tensor>:$values, I64Attr:$peer, I64Attr:$channel,
                       OptionalAttr<DenseI64ArrayAttr>:$numbers);
  let assemblyFormat = "$values `to` $peer `channel` $channel attr-dict `:` type($values) (`as` $numbers^)?";
  let hasVerifier = 1;
}

def Dist_ReceiveOp : Dist_Op<"receive"> {
  let summary = "Receives values from a device of another stage";
  let description = [{
    The other end of `dist.send`, with the same `numbers`.

    Constraints:

    - [receive-c1] At least one value is received.
    - [receive-c2] `peer` and `channel` are at least 0.
    - [receive-c3] `numbers`, if there are any, has an entry of at least 0 for each value.
  }];
  let arguments = (ins I64Attr:$peer, I64Attr:$channel, OptionalAttr<DenseI64ArrayAttr>:$numbers);
  let results = (outs Variadic<Dist_Tensor>:$results);
  let assemblyFormat = "`from` $peer `channel` $channel attr-dict `:` type($results) (`as` $numbers^)?";
  let hasVerifier = 1;
}

def Dist_YieldOp : Dist_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["MicrobatchLoopOp", "BucketOp", "FragmentOp"]>]> {
  let summary = "The values of a loop's iteration, of a fragment or of a bucket";
  let description = [{
    Operands have the types of the results of the op around it. A loop adds them up, the others return them.
  }];
  let arguments = (ins Variadic<Dist_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* no values */ }]>];
}

#endif // DTC_DIALECTS_DIST_DISTOPS_TD
