//===- DtcOpBase.td - Base classes of ops ------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCOPBASE_TD
#define DTC_DIALECTS_DTC_DTCOPBASE_TD

include "dialects/dtc/DtcDialect.td"
include "dialects/dtc/DtcInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// The op declares its rule; `overrides` names the other methods of the interface that it declares.
class Dtc_Sharded<list<string> overrides = []>
    : DeclareOpInterfaceMethods<Dtc_ShardingRuleOpInterface, overrides>;

/// The op calls the kernel of its name; `overrides` names the methods that it declares.
class Dtc_Kernel<list<string> overrides = []>
    : DeclareOpInterfaceMethods<Dtc_KernelOpInterface, overrides>;

/// The op has a vector-Jacobian product.
def Dtc_Differentiable : DeclareOpInterfaceMethods<Dtc_DifferentiableOpInterface>;

def Dtc_HasInferredTypes : NativeOpTrait<"HasInferredTypes", /*traits=*/[],
  /*extraOpDeclaration=*/[{
    static ::llvm::LogicalResult
    inferReturnTypes(::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
                     Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types);
  }],
  /*extraOpDefinition=*/[{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes,
        ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferReturnTypes(context, location,
                              Adaptor(operands, attributes, properties, regions), types);
    }
    ::llvm::LogicalResult $cppClass::refineReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location>, ::mlir::ValueRange,
        ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &) {
      // HasInferredTypes verifies them.
      return ::mlir::success();
    }
  }]> {
  let cppNamespace = "::dtc::OpTrait";
}

/// The op implements `inferReturnTypes` on its adaptor, as with InferTypeOpAdaptor: builders need
/// no result types, and the result types are verified. Unlike there the errors of the inference are
/// the only ones.
def Dtc_InferType : TraitList<[
  DeclareOpInterfaceMethods<InferTypeOpInterface, ["refineReturnTypes"]>, Dtc_HasInferredTypes
]>;

/// Every op of the dialect. `traits` include Dtc_Sharded and, where there is a kernel, Dtc_Kernel.
class Dtc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dtc_Dialect, mnemonic, !listconcat([Pure, Dtc_PrecisionOpInterface], traits)>;

/// Declarations of an op that computes on 16-bit floats. The operands numbered in `wide` (a C++
/// condition on `operand`) are wide all the same.
class Dtc_LowPrecision<string wide = "false"> {
  code declaration = [{
    ::dtc::PrecisionClass getPrecisionClass() { return ::dtc::PrecisionClass::Low; }
    bool isWideOperand(unsigned operand) { return }] # wide # [{; }
  }];
}

/// Declarations of an op that computes on wide operands.
defvar Dtc_WidePrecision = [{
    ::dtc::PrecisionClass getPrecisionClass() { return ::dtc::PrecisionClass::Wide; }
}];

#endif // DTC_DIALECTS_DTC_DTCOPBASE_TD
