//===- DtcElementwiseOps.td - Element by element --------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCELEMENTWISEOPS_TD
#define DTC_DIALECTS_DTC_DTCELEMENTWISEOPS_TD

include "dialects/dtc/DtcOpBase.td"

/// An op whose dimensions are all parallel. `linear` lists the sets of operands in which it is
/// linear together.
class Dtc_ElementwiseOp<string mnemonic, string linear, list<Trait> traits>
    : Dtc_Op<mnemonic, !listconcat([Dtc_Kernel<>, Dtc_Sharded<>], traits)> {
  let extraClassDefinition = [{
    ::dtc::ShardingRule $cppClass::getShardingRule() {
      ::dtc::ShardingRule rule = ::dtc::makeElementwiseRule(getOperation());
      rule.linearOperands = {}] # linear # [{};
      return rule;
    }
  }];
}

class Dtc_UnaryOp<string mnemonic, string linear = "", code precision = "">
    : Dtc_ElementwiseOp<mnemonic, linear, [SameOperandsAndResultType, Dtc_Differentiable]> {
  let arguments = (ins Dtc_FloatTensor:$operand);
  let extraClassDeclaration = precision;
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

class Dtc_BinaryOp<string mnemonic, Type type, string linear = "", list<Trait> traits = []>
    : Dtc_ElementwiseOp<mnemonic, linear,
                        [SameOperandsAndResultType, Dtc_Differentiable] # traits> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getBroadcastAttribute(unsigned operand) {
      return operand == 0 ? "lhs_dims" : "rhs_dims";
    }
  }];
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

def Dtc_NegOp : Dtc_UnaryOp<"neg", "{0}"> {
  let summary = "-x";
  let description = "`F[s] -> F[s]`. The negative of each element.";
  let hasFolder = 1;
}

def Dtc_AbsOp : Dtc_UnaryOp<"abs"> {
  let summary = "|x|";
  let description = "`F[s] -> F[s]`. The absolute value of each element. The gradient at 0 is 0.";
}

def Dtc_ExpOp : Dtc_UnaryOp<"exp", "", Dtc_WidePrecision> {
  let summary = "e^x";
  let description = "`F[s] -> F[s]`. The exponential of each element.";
}

def Dtc_LogOp : Dtc_UnaryOp<"log", "", Dtc_WidePrecision> {
  let summary = "ln x";
  let description = "`F[s] -> F[s]`. The natural logarithm of each element.";
}

def Dtc_SqrtOp : Dtc_UnaryOp<"sqrt", "", Dtc_WidePrecision> {
  let summary = "The square root";
  let description = "`F[s] -> F[s]`. The square root of each element.";
}

def Dtc_RsqrtOp : Dtc_UnaryOp<"rsqrt", "", Dtc_WidePrecision> {
  let summary = "1 / the square root";
  let description = "`F[s] -> F[s]`. The reciprocal of the square root of each element.";
}

def Dtc_TanhOp : Dtc_UnaryOp<"tanh"> {
  let summary = "The hyperbolic tangent";
  let description = "`F[s] -> F[s]`. The hyperbolic tangent of each element.";
}

def Dtc_SigmoidOp : Dtc_UnaryOp<"sigmoid"> {
  let summary = "1 / (1 + e^-x)";
  let description = "`F[s] -> F[s]`. The logistic function of each element.";
}

def Dtc_SoftplusOp : Dtc_UnaryOp<"softplus"> {
  let summary = "ln(1 + e^x)";
  let description = [{
    `F[s] -> F[s]`. The integral of the sigmoid; -softplus(-x) is the logarithm of sigmoid(x), which
    losses of preferences take. Computed as max(x, 0) + ln(1 + e^-|x|), which neither overflows nor
    loses small results.
  }];
}

def Dtc_ReluOp : Dtc_UnaryOp<"relu"> {
  let summary = "max(x, 0)";
  let description = "`F[s] -> F[s]`. Negative elements become 0. The gradient at 0 is 0.";
}

def Dtc_SiluOp : Dtc_UnaryOp<"silu"> {
  let summary = "x / (1 + e^-x)";
  let description = [{
    `F[s] -> F[s]`. The sigmoid-weighted linear unit, also known as swish.

    Source: Elfwing, Uchibe and Doya, "Sigmoid-Weighted Linear Units for Neural Network Function
    Approximation in Reinforcement Learning" (arXiv:1702.03118), section 2.
  }];
}

def Dtc_GeluOp : Dtc_UnaryOp<"gelu"> {
  let summary = "The Gaussian error linear unit";
  let description = [{
    `F[s] -> F[s]`. With `none` 0.5 x (1 + erf(x / sqrt(2))), with `tanh` the approximation 0.5 x (1
    + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (arXiv:1606.08415), section 2.

    ```mlir
    %y = dtc.gelu tanh %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Dtc_FloatTensor:$operand, Dtc_GeluApproximationAttr:$approximate);
  let assemblyFormat = "`` $approximate $operand attr-dict `:` type($result)";
}

def Dtc_ConvertOp : Dtc_Op<"convert", [
    Dtc_Kernel<>, Dtc_Sharded<>, SameOperandsAndResultShape, Dtc_Differentiable, Dtc_CarriesSums]> {
  let summary = "Changes the type of the elements";
  let description = [{
    `X[s] -> Y[s]`, between any two element types. Floats become integers by truncation; an element
    becomes true if it is not 0. Differentiable from float to float, and linear where no float is
    rounded to 16 bits.
  }];
  let arguments = (ins Dtc_AnyTensor:$operand);
  let results = (outs Dtc_AnyTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$elementType)>];
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

def Dtc_AddOp : Dtc_BinaryOp<"add", Dtc_NumericTensor, "{0, 1}", [Dtc_CarriesSums]> {
  let summary = "x + y";
  let description = "`X[s], X[s] -> X[s]`, floats or integers. The sum, element by element.";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Dtc_SubOp : Dtc_BinaryOp<"sub", Dtc_NumericTensor, "{0, 1}"> {
  let summary = "x - y";
  let description = "`X[s], X[s] -> X[s]`, floats or integers. The difference, element by element.";
  let hasFolder = 1;
}

def Dtc_MulOp : Dtc_BinaryOp<"mul", Dtc_NumericTensor, "{0}, {1}"> {
  let summary = "x * y";
  let description = "`X[s], X[s] -> X[s]`, floats or integers. The product, element by element.";
  let hasFolder = 1;
}

def Dtc_DivOp : Dtc_BinaryOp<"div", Dtc_FloatTensor, "{0}"> {
  let summary = "x / y";
  let description = "`F[s], F[s] -> F[s]`. The quotient, element by element.";
  let hasFolder = 1;
}

def Dtc_MaximumOp : Dtc_BinaryOp<"maximum", Dtc_NumericTensor> {
  let summary = "max(x, y)";
  let description = [{
    `X[s], X[s] -> X[s]`, floats or integers. The larger element. Where both are equal each gets
    half of the gradient.
  }];
}

def Dtc_MinimumOp : Dtc_BinaryOp<"minimum", Dtc_NumericTensor> {
  let summary = "min(x, y)";
  let description = [{
    `X[s], X[s] -> X[s]`, floats or integers. The smaller element. Where both are equal each gets
    half of the gradient.
  }];
}

def Dtc_CompareOp : Dtc_ElementwiseOp<"compare", "", [
    SameTypeOperands,
    TypesMatchWith<"the result is i1 of the operands' shape", "lhs", "result",
                   "::dtc::getMaskType($_self)">]> {
  let summary = "Compares two tensors";
  let description = [{
    `X[s], X[s] -> i1[s]`, floats or integers, element by element. Only `ne` is true of a NaN.

    ```mlir
    %m = dtc.compare lt %a, %b : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Dtc_NumericTensor:$lhs, Dtc_NumericTensor:$rhs,
                       Dtc_ComparePredicateAttr:$predicate);
  let results = (outs Dtc_MaskTensor:$result);
  let assemblyFormat = "`` $predicate $lhs `,` $rhs attr-dict `:` type($lhs)";
}

//===----------------------------------------------------------------------===//
// Three operands, gradients
//===----------------------------------------------------------------------===//

def Dtc_SelectOp : Dtc_ElementwiseOp<"select", "{1, 2}", [
    AllTypesMatch<["onTrue", "onFalse", "result"]>,
    TypesMatchWith<"the condition is i1 of the result's shape", "result", "condition",
                   "::dtc::getMaskType($_self)">,
    Dtc_Differentiable]> {
  let summary = "Chooses between two tensors";
  let description = [{
    `i1[s], F[s], F[s] -> F[s]`. The element of the second operand where the condition is true, else
    that of the third.

    ```mlir
    %y = dtc.select %condition, %a, %b : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Dtc_MaskTensor:$condition, Dtc_FloatTensor:$onTrue,
                       Dtc_FloatTensor:$onFalse);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$condition `,` $onTrue `,` $onFalse attr-dict `:` type($result)";
}

class Dtc_ActivationGradOp<string mnemonic>
    : Dtc_ElementwiseOp<mnemonic, "{1}", [SameOperandsAndResultType]> {
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$dy);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$x `,` $dy attr-dict `:` type($result)";
}

def Dtc_SiluGradOp : Dtc_ActivationGradOp<"silu_grad"> {
  let summary = "The gradient of silu";
  let description = "`x F[s], dy F[s] -> dx F[s]`. dx = dy s (1 + x (1 - s)), s = sigmoid(x).";
}

def Dtc_GeluGradOp : Dtc_ActivationGradOp<"gelu_grad"> {
  let summary = "The gradient of gelu";
  let description = [{
    `x F[s], dy F[s] -> dx F[s]`. dx = dy gelu'(x), for the form of `gelu` with the same
    `approximate`.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$dy,
                       Dtc_GeluApproximationAttr:$approximate);
  let assemblyFormat = "`` $approximate $x `,` $dy attr-dict `:` type($result)";
}

#endif // DTC_DIALECTS_DTC_DTCELEMENTWISEOPS_TD
