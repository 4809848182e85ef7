//===- DistDialect.td - Meshes, shardings, collectives ---------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTDIALECT_TD
#define DTC_DIALECTS_DIST_DISTDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::dtc::dist";
  let summary = "Where tensors live and what moves between devices";
  let description = [{
    The dist dialect says how the values of the dtc dialect are laid out on a mesh of devices, and holds the ops that
    move them.

    It is used in two views of a program. In the *global view* types have global shapes, every value has a
    `#dist.sharding`, and `dist.reshard` is the only op that changes one. In the *local view* types have the shapes of
    one device's shards, and collectives over named axes move data. `dtc-spmd-partition` goes from the first to the
    second.

    The attribute `dist.sharding` on an op with one result or on a function's argument or result gives the sharding of
    that value; an op with several results has an array of them.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::dtc::DtcDialect"];
}

def Dist_ReductionKind : I32EnumAttr<"ReductionKind", "how partial values combine", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::dtc::dist";
  let genSpecializedAttr = 0;
}
def Dist_ReductionKindAttr : EnumAttr<Dist_Dialect, Dist_ReductionKind, "reduction">;

class Dist_Attr<string name, string attrMnemonic> : AttrDef<Dist_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Dist_AxisAttr : Dist_Attr<"Axis", "axis"> {
  let summary = "A named axis of a mesh";
  let description = [{
    A spatial axis enumerates devices, a temporal one enumerates the microbatches that one device works through in a
    step.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size, "bool":$temporal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "How a tensor lies on a mesh";
  let description = [{
    For each dimension the axes that split it into equal blocks, the first axis coarsest; axes that are not named hold
    copies. `partial` names axes over which the devices' values have still to be combined: the tensor is their sum (or
    maximum, or minimum).

    ```mlir
    #dist.sharding<@mesh, [{"dp", "micro"}, {}, {"tp"} ]>
    #dist.sharding<@mesh, [{"dp"}, {} ], partial = sum{"tp"}>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, "::mlir::ArrayAttr":$dims,
                        "::dtc::dist::ReductionKind":$partialKind, "::mlir::ArrayAttr":$partialAxes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    /// The names of the axes that split dimension `dim`.
    ::mlir::ArrayAttr getDimAxes(int64_t dim) const { return ::mlir::cast<::mlir::ArrayAttr>(getDims()[dim]); }
    bool isPartial() const { return !getPartialAxes().empty(); }
  }];
}

#endif // DTC_DIALECTS_DIST_DISTDIALECT_TD
