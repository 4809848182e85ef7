//===- DistOps.td - Ops of the dist dialect --------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTOPS_TD
#define DTC_DIALECTS_DIST_DISTOPS_TD

include "dialects/dist/DistDialect.td"
include "dialects/dtc/DtcInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_Tensor : StaticShapeTensorOf<[F32, F64, I32, I1]>;
def Dist_FloatTensor : StaticShapeTensorOf<[F32, F64]>;
def Dist_AxesAttr : TypedArrayAttrBase<StrAttr, "array of axis names">;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "The devices, as named axes";
  let description = [{
    The product of the sizes of the spatial axes is the number of devices; device numbers are row-major over them in
    the order listed. At most one axis is temporal.

    ```mlir
    dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<Dist_AxisAttr, "array of axes">:$axes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Dist_ConstrainOp : Dist_Op<"constrain", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<Dtc_ShardingRuleOpInterface, ["getShardingRule"]>,
    DeclareOpInterfaceMethods<Dtc_DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Fixes the sharding of a value";
  let description = [{
    The identity. The user puts it into a model (shapes `[s] -> [s]`, global view) where a value must have the given
    sharding; propagation does not change it.

    ```mlir
    %1 = dist.constrain %0 to <@mesh, [{"dp"}, {} ]> : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$sharding);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `to` $sharding attr-dict `:` type($input)";
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Changes the sharding of a value";
  let description = [{
    The identity on the global value (shapes `[s] -> [s]`, global view): the result is laid out as `to`, the operand as
    `from`. Everything that moves between devices, and every sum of partial values, is one of these until the program
    is partitioned.
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$from, Dist_ShardingAttr:$to);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Local view
//===----------------------------------------------------------------------===//

class Dist_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Combines the values of all devices of a group, for all of them";
  let description = [{
    `[s] -> [s]`. The group is the devices that differ only in their coordinates on `axes` (spatial ones).
  }];
  let arguments = (ins Dist_ReductionKindAttr:$kind, Dist_Tensor:$input, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `over` $mesh $axes attr-dict `:` type($input)";
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather"> {
  let summary = "Concatenates the values of all devices of a group along a dimension";
  let description = [{
    `[.., n, ..] -> [.., n * group, ..]`, in rank order, row-major over `axes` as listed.
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$dim, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)";
}

def Dist_ReduceScatterOp : Dist_CollectiveOp<"reduce_scatter"> {
  let summary = "Combines the values of a group and keeps one block for each device";
  let description = [{
    `[.., n, ..] -> [.., n / group, ..]`: rank r gets block r of `dim` of the reduction.
  }];
  let arguments = (ins Dist_ReductionKindAttr:$kind, Dist_Tensor:$input, I64Attr:$dim, FlatSymbolRefAttr:$mesh,
                       Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)";
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all"> {
  let summary = "Moves a sharding from one dimension to another";
  let description = [{
    `[.., m, .., n, ..] -> [.., m / group, .., n * group, ..]`: the operand is split along `split_dim`, block r goes to
    rank r, and what arrives is concatenated along `dim` in rank order.
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$split_dim, I64Attr:$dim, FlatSymbolRefAttr:$mesh,
                       Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `split_dim` $split_dim `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)
  }];
}

def Dist_ShardSliceOp : Dist_CollectiveOp<"shard_slice",
    [DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "This device's block of a dimension";
  let description = [{
    `[.., n, ..] -> [.., n / blocks, ..]`. Blocks are counted row-major over `axes` as listed; on a temporal axis the
    coordinate is that of the running microbatch. Nothing moves between devices.
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$dim, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $mesh $axes attr-dict `:` functional-type($input, $result)";
}

def Dist_ShardOffsetOp : Dist_CollectiveOp<"shard_offset",
    [DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "Where this device's shard of a dimension starts";
  let description = [{
    A scalar: the number of this device's block, row-major over `axes`, times `size`, the block's size.
  }];
  let arguments = (ins I64Attr:$size, FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "`size` $size `over` $mesh $axes attr-dict `:` type($result)";
}

def Dist_MicrobatchLoopOp : Dist_CollectiveOp<"microbatch_loop", [SingleBlockImplicitTerminator<"YieldOp">,
    RecursiveMemoryEffects]> {
  let summary = "Runs its body once for each microbatch and adds up what it yields";
  let description = [{
    `axis` is a temporal axis; its coordinate, which `dist.shard_slice` and `dist.shard_offset` read, goes from 0 to its
    size less one. Each result is the sum over the iterations of the value yielded at its position.
  }];
  let arguments = (ins FlatSymbolRefAttr:$mesh, StrAttr:$axis);
  let results = (outs Variadic<Dist_FloatTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$mesh $axis attr-dict-with-keyword (`:` type($results)^)? $body";
  let hasRegionVerifier = 1;
}

def Dist_YieldOp : Dist_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"MicrobatchLoopOp">]> {
  let summary = "The values that an iteration adds to the results of its loop";
  let description = [{Operands have the types of the loop's results.}];
  let arguments = (ins Variadic<Dist_FloatTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* no values */ }]>];
}

#endif // DTC_DIALECTS_DIST_DISTOPS_TD
