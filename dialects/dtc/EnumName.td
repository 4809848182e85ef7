//===- EnumName.td - Attributes of the enums of support/ ---*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_ENUMNAME_TD
#define DTC_DIALECTS_DTC_ENUMNAME_TD

include "mlir/IR/AttrTypeBase.td"

/// A parameter of an attribute: a value of an enum of support/, written as its name.
class Dtc_EnumNameParameter<string enumName> : AttrParameter<"::dtc::" # enumName, "a value of " # enumName> {
  let parser = "::dtc::parseEnumName<::dtc::" # enumName # ">($_parser)";
  let printer = "$_printer << ::dtc::name($_self)";
}

/// An attribute that is a value of an enum of support/.
class Dtc_EnumNameAttr<Dialect dialect, string attrName, string enumName, string attrMnemonic, string attrSummary>
    : AttrDef<dialect, attrName> {
  let mnemonic = attrMnemonic;
  let summary = attrSummary;
  let description = "A name of `" # enumName # "` in `support/Kinds.h`.";
  let parameters = (ins Dtc_EnumNameParameter<enumName>:$value);
  let assemblyFormat = "$value";
  let returnType = "::dtc::" # enumName;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = cppNamespace # "::" # cppClassName # "::get($_builder.getContext(), $0)";
}

#endif // DTC_DIALECTS_DTC_ENUMNAME_TD
