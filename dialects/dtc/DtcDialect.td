//===- DtcDialect.td - The dialect, its types and attributes --*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCDIALECT_TD
#define DTC_DIALECTS_DTC_DTCDIALECT_TD

include "dialects/dtc/EnumName.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Dtc_Dialect : Dialect {
  let name = "dtc";
  let cppNamespace = "::dtc";
  let summary = "One device's view of a model: pure operations on tensors of static shape";
  let description = [{
    The operations that today's models are made of, few and orthogonal. Tensors have static shapes
    with sizes of at least 1 and elements of type `f32`, `f64`, `bf16`, `f16`, `i32` (indices) or
    `i1` (masks). Computations on 16-bit floats are done in their wide type, f32, and rounded once;
    what is a sum or a statistic of many elements has the wide type `W(F)` of their type `F`, which
    is `F` itself for f32 and f64. Passes may give a tensor 8 bits (`f8E4M3FN`, `f8E5M2`): of the
    operations, a slice, a concatenation and a reshape take those.
    Broadcasting is explicit. All operations are pure, know their factors
    (`ShardingRuleOpInterface`) and, but for gradients and optimizers, their vector-Jacobian product
    (`DifferentiableOpInterface`).

    Discardable attributes of the dialect:

    - `dtc.param = "name"` on a function argument: a float tensor that training changes.
    - `dtc.input = "name"` on a function argument: what a step is given. No argument is both.
    - `dtc.axes = ["batch", "seq", ""]` on a function argument or on an operation with one result:
      the logical name of each dimension, `""` for none.
    - `dtc.init = #dtc.normal<2.0e-2>` on a parameter: how it starts.
    - `dtc.frozen` on a parameter: no optimizer changes it. The model may compute its new value
      itself, such as that of a running mean, as a result with `dtc.updates`.
    - `dtc.cache = "name"` on a function argument: a tensor that lives across steps, is zero at first
      and is neither a parameter nor of an optimizer, such as the keys of earlier tokens.
    - `dtc.ignored_index = -100` on an input of indices: an element that stands for none.
    - `dtc.metric = "name"` on a result: a sum over samples that is reported with each step.
    - `dtc.mean` on a metric: it is a mean over samples; of several batches the mean is reported.
    - `dtc.must_be_zero` on a metric: a step in which an element is not 0 changes no parameter, and
      the run ends.

    Passes that make a step add to its signature, on arguments: `dtc.state` and `dtc.state_of` (a part
    of the optimizer's state and the parameter that it is for; the slot "master" is the parameter in
    full precision), `dtc.step_state` (the step state, which the step itself updates:
    "applied_steps", "skipped_steps", "good_steps" and "growth_interval", i32 scalars,
    "loss_scale", a scalar of f32 or f64, or "random_key", i32[2]), `dtc.scalar` ("learning_rates",
    "first_step", "batches", or "random_key" before dtc-advance-random-key), `dtc.file_shape` (a
    parameter's shape in weights files, where it differs),
    `dtc.index_limit` (an input's elements lie in [0, limit)); on results: `dtc.output = "name"` or
    `dtc.updates = n` (the new value of argument n); on both, once they are local,
    `dtc.global_shape`.

    Constraints:

    - [dtc-c1] `dtc.axes` is on a ranked tensor.
    - [dtc-c2] `dtc.axes` is an array of strings.
    - [dtc-c3] `dtc.axes` has one name for each dimension of the tensor.
    - [dtc-c4] The names of `dtc.axes` that are not empty differ.
    - [dtc-c5] No two arguments of a function have the same `dtc.param` or the same `dtc.input`.
    - [dtc-c6] What passes add to a signature has the kind of value that is meant: `dtc.file_shape`
      and `dtc.global_shape` are arrays of integers, `dtc.index_limit`, `dtc.ignored_index` and
      `dtc.updates` integers, the others strings. So do `dtc.metric`, a string, and
      `dtc.mean` and `dtc.must_be_zero`, which have no value.
    - [dtc-c7] `dtc.updates` is the number of an argument of the function.
    - [dtc-c8] `dtc.step_state` is one of the kinds that are listed above.
    - [dtc-c9] An argument with `dtc.step_state` has the type that belongs to its kind.
    - [dtc-c10] No two arguments of a function are the same step state.
    - [dtc-c11] `dtc.lora` is on a module and is a dictionary of `rank` (an i64 of at least 1),
      `alpha` (a finite float greater than 0), `dropout` (a float of at least 0 and less than 1) and
      `targets` (an array of strings).
    - [dtc-c12] An operation with `dtc.axes` has one result.
    - [dtc-c13] `dtc.agreed`, `dtc.loss_chunk`, `dtc.reads_master` and `dtc.outer_gradient`, on an operation, have no
      value.
    - [dtc-c14] `dtc.op` and `dtc.gradient_of`, on an operation, are integers.
    - [dtc-c15] An operation has no other attribute of the dialect than those of dtc-c11 to dtc-c14 and
      dtc-c26.
    - [dtc-c16] An argument with an attribute of the dialect is one of a function, and the attribute
      is one of those above.
    - [dtc-c17] `dtc.init` is `#dtc.normal`, `#dtc.uniform`, `#dtc.zeros` or `#dtc.ones`.
    - [dtc-c18] An argument with `dtc.init` has `dtc.param` as well.
    - [dtc-c19] `dtc.frozen` has no value and is on an argument with `dtc.param`.
    - [dtc-c20] `dtc.param` and `dtc.input` are strings that are not empty.
    - [dtc-c21] A parameter is a ranked tensor of f32, f64, bf16 or f16 with static sizes of at
      least 1 and at most 2^56 elements.
    - [dtc-c22] No argument has both `dtc.param` and `dtc.input`.
    - [dtc-c23] A result of a function has no other attribute of the dialect than `dtc.metric`,
      `dtc.mean`, `dtc.must_be_zero`, `dtc.output`, `dtc.updates` and `dtc.global_shape`.
    - [dtc-c24] A result with `dtc.mean` or `dtc.must_be_zero` has `dtc.metric` as well.
    - [dtc-c25] A result with `dtc.metric` is a tensor of floats.
    - [dtc-c26] `dtc.float8` is on a `dtc.einsum` and is an array of two types, each f8E4M3FN or
      f8E5M2.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The name of a parameter, on a function argument.
    static constexpr ::llvm::StringLiteral kParamAttrName = "dtc.param";
    /// The name of an input, on a function argument.
    static constexpr ::llvm::StringLiteral kInputAttrName = "dtc.input";
    /// The logical names of the dimensions, on a function argument or an operation with one result.
    static constexpr ::llvm::StringLiteral kAxesAttrName = "dtc.axes";
    /// That a parameter keeps its value, a unit attribute on a function argument.
    static constexpr ::llvm::StringLiteral kFrozenAttrName = "dtc.frozen";
    /// An element of an input of indices that stands for none, on a function argument.
    static constexpr ::llvm::StringLiteral kIgnoredIndexAttrName = "dtc.ignored_index";
    /// How a parameter is initialized, on a function argument.
    static constexpr ::llvm::StringLiteral kInitAttrName = "dtc.init";
    /// The kind of a step state, on a function argument.
    static constexpr ::llvm::StringLiteral kStepStateAttrName = "dtc.step_state";
    /// The name of a metric, on a result of a function.
    static constexpr ::llvm::StringLiteral kMetricAttrName = "dtc.metric";
    /// That a metric is a mean, a unit attribute on a result of a function.
    static constexpr ::llvm::StringLiteral kMeanAttrName = "dtc.mean";
    /// That a metric other than 0 ends the run, a unit attribute on a result of a function.
    static constexpr ::llvm::StringLiteral kMustBeZeroAttrName = "dtc.must_be_zero";
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Dtc_Tensor<string predicate, string elements>
    : Type<CPred<"::dtc::" # predicate # "($_self)">,
           "ranked tensor of " # elements # " with static sizes of at least 1",
           "::mlir::RankedTensorType">;

def Dtc_FloatTensor : Dtc_Tensor<"isFloatTensor", "f32, f64, bf16 or f16">;
def Dtc_WideTensor : Dtc_Tensor<"isWideTensor", "f32 or f64">;
def Dtc_IndexTensor : Dtc_Tensor<"isIndexTensor", "i32">;
def Dtc_MaskTensor : Dtc_Tensor<"isMaskTensor", "i1">;
def Dtc_NumericTensor : Dtc_Tensor<"isNumericTensor", "f32, f64, bf16, f16 or i32">;
def Dtc_AnyTensor : Dtc_Tensor<"isAnyTensor", "f32, f64, bf16, f16, i32 or i1">;
def Dtc_StoredTensor
    : Dtc_Tensor<"isStoredTensor", "f32, f64, bf16, f16, i32, i1, f8E4M3FN or f8E5M2">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// A 64-bit float attribute that C++ sees as a double.
def Dtc_F64Attr : FloatAttrBase<F64, "64-bit float attribute"> {
  let returnType = "double";
  let convertFromStorage = "$_self.getValueAsDouble()";
  let constBuilderCall = "$_builder.getF64FloatAttr($0)";
}

/// The elements of a constant, all present in the IR.
def Dtc_ElementsAttr
    : Attr<CPred<"::llvm::isa<::mlir::DenseIntOrFPElementsAttr>($_self)">,
           "dense elements of integers or floats"> {
  let storageType = "::mlir::DenseElementsAttr";
  let returnType = "::mlir::DenseElementsAttr";
  let convertFromStorage = "$_self";
}

class Dtc_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::dtc";
  let genSpecializedAttr = 0;
}

class Dtc_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Dtc_Dialect, info, mnemonic>;

def Dtc_ReduceKindAttr : Dtc_EnumNameAttr<Dtc_Dialect, "ReduceKind", "ReductionKind", "reduce_kind",
                                          "how the elements of a reduction are combined">;

def Dtc_ComparePredicate
    : Dtc_Enum<"ComparePredicate", "a comparison of two numbers",
               [I32EnumAttrCase<"Equal", 0, "eq">, I32EnumAttrCase<"NotEqual", 1, "ne">,
                I32EnumAttrCase<"Less", 2, "lt">, I32EnumAttrCase<"LessOrEqual", 3, "le">,
                I32EnumAttrCase<"Greater", 4, "gt">, I32EnumAttrCase<"GreaterOrEqual", 5, "ge">]>;
def Dtc_ComparePredicateAttr : Dtc_EnumAttr<Dtc_ComparePredicate, "compare_predicate">;

def Dtc_GeluApproximation
    : Dtc_Enum<"GeluApproximation", "how GELU is computed",
               [I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Tanh", 1, "tanh">]>;
def Dtc_GeluApproximationAttr : Dtc_EnumAttr<Dtc_GeluApproximation, "gelu_approximation">;

//===----------------------------------------------------------------------===//
// Initializers of parameters
//===----------------------------------------------------------------------===//

class Dtc_Attr<string name, string attrMnemonic> : AttrDef<Dtc_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Dtc_NormalAttr : Dtc_Attr<"Normal", "normal"> {
  let summary = "Initializes with normally distributed values of mean 0";
  let description = [{
    `#dtc.normal<2.0e-2>`; the standard deviation is finite and not negative.

    Constraints:

    - [normal-c1] The standard deviation is a 64-bit float, finite and not negative.
  }];
  let parameters = (ins APFloatParameter<"standard deviation">:$stddev);
  let builders = [AttrBuilder<(ins "double":$stddev), [{
    return $_get($_ctxt, ::llvm::APFloat(stddev));
  }]>];
  let assemblyFormat = "`<` custom<Double>($stddev) `>`";
  let genVerifyDecl = 1;
}

def Dtc_UniformAttr : Dtc_Attr<"Uniform", "uniform"> {
  let summary = "Initializes with values evenly distributed between -bound and bound";
  let description = [{
    `#dtc.uniform<0.1>`; the bound is finite and not negative.

    Constraints:

    - [uniform-c1] The bound is a 64-bit float, finite and not negative.
  }];
  let parameters = (ins APFloatParameter<"bound">:$bound);
  let builders = [AttrBuilder<(ins "double":$bound), [{
    return $_get($_ctxt, ::llvm::APFloat(bound));
  }]>];
  let assemblyFormat = "`<` custom<Double>($bound) `>`";
  let genVerifyDecl = 1;
}

def Dtc_ZerosAttr : Dtc_Attr<"Zeros", "zeros"> {
  let summary = "Initializes with 0";
}

def Dtc_OnesAttr : Dtc_Attr<"Ones", "ones"> {
  let summary = "Initializes with 1";
}

#endif // DTC_DIALECTS_DTC_DTCDIALECT_TD
