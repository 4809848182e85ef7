//===- DtcInterfaces.td - Interfaces of ops ----------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCINTERFACES_TD
#define DTC_DIALECTS_DTC_DTCINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dtc_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::dtc";
  let description = [{
    The op's factors: which dimensions of its operands and results are the same index, which are
    summed, which must stay whole. Propagation, partitioning, partial sums and cost follow from it.
  }];
  let methods = [
    InterfaceMethod<"The rule, for the op's present types.",
      "::dtc::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
        Builds the op that computes one shard: the same op on `operands`, which have local shapes,
        with the local `resultTypes`. Ops whose attributes hold sizes override it; a size in an
        attribute changes as the type does.
      }],
      "::mlir::Operation *", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::mlir::TypeRange":$resultTypes),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::dtc::cloneWithTypes(builder, $_op.getOperation(), operands, resultTypes);
      }]>,
    InterfaceMethod<[{
        Writes the op as simpler ones whose factors may be sharded where this op's must stay whole.
        Returns the replacements of the results, or failure if the op has no such form.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return ::mlir::failure(); }]>,
    InterfaceMethod<[{
        Floating point operations of one execution; a fused multiply-add counts as two. By default
        one for each element of the largest operand or result.
      }],
      "double", "getFlops", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::dtc::defaultFlops($_op.getOperation());
      }]>
  ];
}

def Dtc_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::dtc";
  let description = [{
    The op's vector-Jacobian product: given the gradients of a scalar by the op's results, builds
    the gradients by its operands.
  }];
  let methods = [
    InterfaceMethod<[{
        `cotangents` has one value a result, null where the scalar does not depend on that result.
        `gradients` has one entry an operand; the op fills in those that it has (integer operands
        have none) and may skip operands for which `needed` is false. At least one cotangent is not
        null. Fails with a diagnostic where a combination has no gradient.
      }],
      "::mlir::LogicalResult", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::ArrayRef<bool>":$needed, "::llvm::MutableArrayRef<::mlir::Value>":$gradients)>
  ];
}

def Dtc_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::dtc";
  let description = [{
    How the op appears in a plan: the kernel of docs/kernels.md that it calls, with which
    attributes. What the kernel may compute in place is in plan/KernelTable.h.
  }];
  let methods = [
    InterfaceMethod<"The kernel's name; by default the op's, without the dialect.",
      "::llvm::StringRef", "getKernelName", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return $_op->getName().stripDialect(); }]>,
    InterfaceMethod<[{
        The kernel's attributes, each an integer, float, string or bool, an array of integers
        (DenseI64ArrayAttr), an array of strings, or numbers that the plan holds as bytes
        (DenseF64ArrayAttr, dense elements). By default the op's own, inherent ones.
      }],
      "::mlir::DictionaryAttr", "getKernelAttributes", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::dtc::inherentAttributes($_op.getOperation());
      }]>,
    InterfaceMethod<[{
        The attribute in which the kernel takes the dimensions of operand `operand` in the result,
        so that the operand need not be broadcast before; empty where it takes no such operand.
      }],
      "::llvm::StringRef", "getBroadcastAttribute", (ins "unsigned":$operand),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return {}; }]>
  ];
}

/// Properties of ops that passes ask about and that no method answers.
class Dtc_Trait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::dtc::OpTrait";
}

/// The elements of the results are those of the first operand at other places, perhaps on other
/// devices.
def Dtc_MovesElements : Dtc_Trait<"MovesElements">;

/// The result has the elements of the operand in their order, perhaps in another shape or laid out
/// in another way.
def Dtc_SameElements : Dtc_Trait<"SameElements">;

/// The elements of the results are elements of the operands, at other places or of another type, or
/// sums of them. So a sum between devices before the op still counts in full after it.
def Dtc_CarriesSums : Dtc_Trait<"CarriesSums">;

/// Users of the result can read the operand instead: the op takes neither time nor memory.
def Dtc_IsView : Dtc_Trait<"IsView">;

/// The op is made of matrix products, which take long enough to hide a collective.
def Dtc_MatrixProducts : Dtc_Trait<"MatrixProducts">;

def Dtc_PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::dtc";
  let description = [{
    Which of an op's floats may have 16 bits in mixed precision. Every op of the dialect has it; by
    default an op follows its operands.
  }];
  let methods = [
    InterfaceMethod<"What the op does with 16-bit floats.",
      "::dtc::PrecisionClass", "getPrecisionClass", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return ::dtc::PrecisionClass::Follow; }]>,
    InterfaceMethod<"Whether operand `operand` has the wide type whatever the others have.",
      "bool", "isWideOperand", (ins "unsigned":$operand),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return false; }]>,
    InterfaceMethod<[{
        Has the op give its results in the wide type, if it can do so on 16-bit operands without
        rounding them first; some ops always do. Returns whether it can.
      }],
      "bool", "widenResults", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return false; }]>
  ];
}

def Dtc_OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::dtc";
  let description = [{
    An op that updates a parameter. Operand `p` is the parameter, `g` its gradient; other operands
    are the parts of the optimizer's state for it, and scalars. Result `new_p` is the parameter
    after the update.
  }];
  let methods = [
    InterfaceMethod<"The parameter before the update.", "::mlir::OpOperand &",
      "getParameterMutable", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return $_op.getPMutable(); }]>,
    InterfaceMethod<"The parameter after the update.", "::mlir::Value", "getNewParameter", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return $_op.getNewP(); }]>,
    InterfaceMethod<"The gradient.", "::mlir::OpOperand &", "getGradientMutable", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{ return $_op.getGMutable(); }]>
  ];
}

#endif // DTC_DIALECTS_DTC_DTCINTERFACES_TD
