//===- DistInterfaces.td - Interfaces of collectives -------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTINTERFACES_TD
#define DTC_DIALECTS_DIST_DISTINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dist_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::dtc::dist";
  let description = [{
    A collective of the local view: it moves one tensor, its operand, between the devices that differ only in their
    coordinates on some axes. Collectives may be in a `dist.bucket`.
  }];
  let methods = [
    InterfaceMethod<"What it does.", "::dtc::CollectiveKind", "getCollectiveKind", (ins)>,
    InterfaceMethod<"The names of the axes of the group.", "::mlir::ArrayAttr", "getAxes", (ins)>,
    InterfaceMethod<"How the values of the group combine; null where they do not.",
      "::dtc::dist::ReductionKindAttr", "getReduction", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return {}; }]>
  ];
}

#endif // DTC_DIALECTS_DIST_DISTINTERFACES_TD
