//===- DistDialect.td - Meshes, shardings, collectives ---------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTDIALECT_TD
#define DTC_DIALECTS_DIST_DISTDIALECT_TD

include "dialects/dtc/EnumName.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::dtc::dist";
  let summary = "Where tensors live and what moves between devices";
  let description = [{
    The dist dialect says how the values of the dtc dialect are laid out on a mesh of devices, and holds the ops that
    move them.

    It is used in two views of a function. In the *global view* types have global shapes, every value has a
    `#dist.sharding`, and `dist.reshard` is the only op that changes one. In the *local view* types have the shapes of
    one device's shards, and collectives over named axes move data. `dtc-spmd-partition` goes from the first to the
    second.

    The attribute `dist.sharding` on an op with one result or on a function's argument or result gives the sharding of
    that value; an op with several results has an array of them.

    In the local view `dist.host` on an argument of a function says that the value lies in the memory of the host, and on
    an op that the host's cores compute it, from values there to values there (`dtc-offload-states`).

    Constraints:

    - [dist-c1] `dist.stage` is a `#dist.stage`.
    - [dist-c2] `dist.factors` is an array of arrays.
    - [dist-c3] An op has no other attribute of the dialect than `dist.sharding`, `dist.stage`, `dist.factors`,
      `dist.reason` and `dist.pipeline` (dictionaries), `dist.stage_starts` (an array of i64), `dist.one_batch` (a
      string) and `dist.host`, which has no value.
    - [dist-c4] `dist.sharding` of an op with another number of results than one is an array.
    - [dist-c5] An array `dist.sharding` has an entry for each result of the op.
    - [dist-c6] The entries of an array `dist.sharding` are of type `#dist.sharding`, or units where the sharding is not
      known.
    - [dist-c7] An argument or result of a function has no other attribute of the dialect than `dist.sharding`, which is
      a `#dist.sharding`, and of an argument `dist.host`, which has no value.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::dtc::DtcDialect"];
}

class Dist_EnumAttr<string enumName, string mnemonic, string summary>
    : Dtc_EnumNameAttr<Dist_Dialect, enumName, enumName, mnemonic, summary>;

def Dist_ReductionKindAttr : Dist_EnumAttr<"ReductionKind", "reduction", "how partial values combine">;
def Dist_CollectiveKindAttr : Dist_EnumAttr<"CollectiveKind", "collective_kind", "a collective">;
def Dist_PaddingValueAttr : Dist_EnumAttr<"PaddingValue", "padding", "what padding is filled with">;
def Dist_StagePassAttr : Dist_EnumAttr<"StagePass", "pass", "what a stage of a pipeline does for a microbatch">;

class Dist_Attr<string name, string attrMnemonic> : AttrDef<Dist_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Dist_AxisAttr : Dist_Attr<"Axis", "axis"> {
  let summary = "A named axis of a mesh";
  let description = [{
    A spatial axis enumerates devices, a temporal one enumerates the microbatches that one device works through in a
    step. Devices with different coordinates on the pipeline axis work on different stages of the model; it splits no
    tensor. `of` names the axis that the user knows where this one is a part of it (`dtc-split-mesh-axes`). `link` is what
    the network between neighbours on the axis does: bytes a second and seconds before the first byte, each 0 where it
    is not known.

    ```mlir
    #dist.axis<"dp"=2 link 2.5e+10 1.0e-05>
    #dist.axis<"tp.0"=2 of "tp">
    #dist.axis<"micro"=4 temporal>
    #dist.axis<"pp"=4 pipeline>
    ```

    Constraints:

    - [axis-c1] The name is not empty.
    - [axis-c2] The size is at least 1 and at most 2^20.
    - [axis-c3] The axis is not both temporal and a pipeline.
    - [axis-c4] A link has a bandwidth and a latency, each at least 0.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size, "bool":$temporal, "bool":$pipeline,
                        OptionalParameter<"::mlir::StringAttr">:$subAxisOf, OptionalParameter<"::mlir::FloatAttr">:$bandwidth,
                        OptionalParameter<"::mlir::FloatAttr">:$latency);
  let extraClassDeclaration = [{
    /// The text after the name, without brackets: `"dp"=2 temporal`.
    static ::mlir::FailureOr<AxisAttr> parseBody(::mlir::AsmParser &parser);
    void printBody(::llvm::raw_ostream &os) const;
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_StageAttr : Dist_Attr<"Stage", "stage"> {
  let summary = "Where and when in a pipeline an op runs";
  let description = [{
    The stage of the model, from 0, numbered over all devices of the pipeline, and the pass over it in which the op
    runs: forward, backward, or weight, a part of the backward pass that no other stage waits for.

    ```mlir
    #dist.stage<2 backward>
    ```

    Constraints:

    - [stage-c1] The number of the stage is at least 0.
  }];
  let parameters = (ins "int64_t":$index, Dtc_EnumNameParameter<"StagePass">:$pass);
  let assemblyFormat = "`<` $index $pass `>`";
  let genVerifyDecl = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "How a tensor lies on a mesh";
  let description = [{
    For each dimension the axes that split it into equal blocks, the first axis coarsest; axes that are not named hold
    copies. `partial` names axes over which the devices' values have still to be combined: the tensor is their sum (or
    maximum, or minimum).

    Before propagation a sharding is a request. A dimension that ends with `?` is open: propagation may append axes to it;
    others are closed. `p1` after a dimension gives its axes priority 1: they are propagated after those of priority 0,
    and give way to them.

    ```mlir
    #dist.sharding<@mesh, [{"dp", "micro"}, {}, {"tp"} ]>
    #dist.sharding<@mesh, [{"dp"}, {} ], partial = sum{"tp"}>
    #dist.sharding<@mesh, [{"dp", ?}, {?}, {"tp"}p1]>
    ```

    Constraints:

    - [sharding-c1] Each dimension is a list of names of axes, and no axis is named twice, be it in a dimension or in
      `partial`; either all dimensions have a mark whether they are open, or none has one, and so with priorities.
    - [sharding-c2] Where the sharding is used, a module around has the mesh, a `dist.mesh`.
    - [sharding-c3] The value that has the sharding is a tensor.
    - [sharding-c4] The sharding has as many dimensions as the tensor.
    - [sharding-c5] The axes are axes of the mesh.
    - [sharding-c6] No axis is the pipeline.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, "::mlir::ArrayAttr":$dims,
                        "::dtc::ReductionKind":$partialKind, "::mlir::ArrayAttr":$partialAxes,
                        ArrayRefParameter<"bool">:$open, ArrayRefParameter<"int64_t">:$priorities);
  let builders = [
    AttrBuilder<(ins "::mlir::FlatSymbolRefAttr":$mesh, "::mlir::ArrayAttr":$dims,
                     "::dtc::ReductionKind":$partialKind, "::mlir::ArrayAttr":$partialAxes), [{
      return $_get($_ctxt, mesh, dims, partialKind, partialAxes, ::llvm::ArrayRef<bool>(), ::llvm::ArrayRef<int64_t>());
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    /// The names of the axes that split dimension `dim`.
    ::mlir::ArrayAttr getDimAxes(int64_t dim) const { return ::mlir::cast<::mlir::ArrayAttr>(getDims()[dim]); }
    bool isPartial() const { return !getPartialAxes().empty(); }
    /// Whether propagation may append axes to dimension `dim`. Where no dimension is open, the list is empty.
    bool isOpen(int64_t dim) const { return !getOpen().empty() && getOpen()[dim]; }
    /// 0 is the most urgent. Where all are 0, the list is empty.
    int64_t getPriority(int64_t dim) const { return getPriorities().empty() ? 0 : getPriorities()[dim]; }
  }];
}

#endif // DTC_DIALECTS_DIST_DISTDIALECT_TD
