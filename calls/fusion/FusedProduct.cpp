//===- FusedProduct.cpp - A product and the calls around it ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/FusedProduct.h"

#include "calls/DataMovementCalls.h"

#include <algorithm>

namespace dtc {

namespace {

using Gelu = MatmulEpilogue::Gelu;
using BiasGrad = MatmulEpilogue::BiasGrad;

class ProductMatcher {
public:
  explicit ProductMatcher(const FusedCalls &calls) : calls(calls) {}

  std::optional<FusedProduct> match() {
    if (!findProduct())
      return std::nullopt;
    for (size_t i = 0; i < calls.calls.size(); ++i)
      if (i != product && name(i) != "slice" && !matchCall(calls.calls[i]))
        return std::nullopt;
    result.c = current;
    if (!takeSlices() || !canBeComputed())
      return std::nullopt;
    return std::move(result);
  }

private:
  const std::string &name(size_t call) const { return calls.calls[call].signature.kernel; }

  bool findProduct() {
    size_t products = 0;
    for (size_t i = 0; i < calls.calls.size(); ++i)
      if (name(i) == "einsum" || name(i) == "scaled_product") {
        product = i;
        ++products;
      }
    if (products != 1)
      return false;
    const FusedCalls::Call &call = calls.calls[product];
    if (!lower(call) || result.lowering.kind != EinsumLowering::Kind::Gemm ||
        result.lowering.copies[EinsumLowering::Out])
      return false;
    equation =
        *EinsumEquation::parse(std::get<std::string>(call.signature.attributes.at("equation")));
    result.in = call.signature.inputs[0].dtype;
    result.out = call.signature.outputs[0].dtype;
    result.a.value = call.inputs[0];
    result.b.value = call.inputs[1];
    current = call.outputs[0];
    return true;
  }

  bool lower(const FusedCalls::Call &call) {
    if (call.signature.kernel == "einsum") {
      Expected<EinsumLowering> lowering = planEinsum(call.signature);
      if (lowering)
        result.lowering = std::move(*lowering);
      return static_cast<bool>(lowering);
    }
    Expected<ScaledProductCall> scaled = checkScaledProduct(call.signature);
    if (!scaled)
      return false;
    result.lowering = scaled->lowering;
    result.scaled = std::move(*scaled);
    result.scaleA = call.inputs[2];
    result.scaleB = call.inputs[3];
    return true;
  }

  bool matchCall(const FusedCalls::Call &call) {
    const std::string &kernel = call.signature.kernel;
    if (kernel == "reduce")
      return matchBiasGrad(call);
    // All others work on the result so far, and on no finished one.
    bool isFinal = result.added || result.sum || result.epilogue.gelu != Gelu::None;
    if (kernel == "add")
      return !isFinal ? matchAdd(call) : false;
    if (kernel == "gelu")
      return !isFinal && matchGelu(call);
    if (isFinal || result.epilogue.addsBias)
      return false;
    if (kernel == "gelu_grad")
      return matchGeluGrad(call);
    return kernel == "accumulate" && matchAccumulate(call);
  }

  /// Makes the call's output the result so far.
  bool advance(const FusedCalls::Call &call) {
    current = call.outputs[0];
    return true;
  }
  bool readsUnkept(const FusedCalls::Call &call, size_t input) const {
    return call.inputs[input] == current && !calls.values[current].isKept;
  }

  bool matchAdd(const FusedCalls::Call &call) {
    size_t own = call.inputs[0] == current ? 0 : 1, other = 1 - own;
    const AttributeMap &attributes = call.signature.attributes;
    const char *const dims[] = {"lhs_dims", "rhs_dims"};
    if (!readsUnkept(call, own) || call.inputs[other] == current || attributes.count(dims[own]))
      return false;
    auto given = attributes.find(dims[other]);
    if (given == attributes.end())
      result.added = FusedOperand{call.inputs[other]};
    else if (result.epilogue.addsBias || !isAlongRows(call, given->second))
      return false;
    else {
      result.epilogue.addsBias = true;
      result.bias = FusedOperand{call.inputs[other]};
    }
    return advance(call);
  }

  /// Whether an operand with these dimensions of the result has an element for each column of the
  /// product: they are the last ones, with all letters that b alone has.
  bool isAlongRows(const FusedCalls::Call &call, const AttributeValue &value) const {
    const TensorType &type = calls.calls[product].signature.outputs[0];
    const auto *dims = std::get_if<std::vector<int64_t>>(&value);
    const std::string &out = equation.terms[EinsumLowering::Out];
    if (!dims || call.signature.outputs[0].shape != type.shape || dims->size() > out.size())
      return false;
    std::string letters;
    for (size_t i = 0; i < dims->size(); ++i) {
      if ((*dims)[i] != static_cast<int64_t>(out.size() - dims->size() + i))
        return false;
      letters += out[static_cast<size_t>((*dims)[i])];
    }
    return withSizes(letters, EinsumLowering::Out) ==
           withSizes(lettersOf(EinsumLowering::Out, EinsumLowering::Rhs), EinsumLowering::Out);
  }

  bool matchGelu(const FusedCalls::Call &call) {
    const auto *kind = std::get_if<std::string>(&call.signature.attributes.at("approximate"));
    if (!kind || *kind != "tanh" || call.inputs[0] != current)
      return false;
    bool isKept = calls.values[current].isKept;
    if (isKept)
      result.geluInput = current;
    result.epilogue.gelu = isKept ? Gelu::ValueKept : Gelu::Value;
    return advance(call);
  }

  bool matchGeluGrad(const FusedCalls::Call &call) {
    const auto *kind = std::get_if<std::string>(&call.signature.attributes.at("approximate"));
    if (!kind || *kind != "tanh" || !readsUnkept(call, 1) || calls.values[call.inputs[0]].maker)
      return false;
    result.geluInput = call.inputs[0];
    result.epilogue.gelu = Gelu::Gradient;
    return advance(call);
  }

  bool matchAccumulate(const FusedCalls::Call &call) {
    Expected<AccumulateCall> sum = checkAccumulate(call.signature);
    if (!sum || !readsUnkept(call, 0))
      return false;
    result.sum = std::move(*sum);
    return advance(call);
  }

  /// The sum of an operand over the letters that the product sums.
  bool matchBiasGrad(const FusedCalls::Call &call) {
    const AttributeMap &attributes = call.signature.attributes;
    const auto *kind = std::get_if<std::string>(&attributes.at("kind"));
    const auto *dims = std::get_if<std::vector<int64_t>>(&attributes.at("dims"));
    const FusedCalls::Call &einsum = calls.calls[product];
    if (result.biasGrad || !kind || *kind != "sum" || !dims ||
        call.signature.outputs[0].dtype != result.out)
      return false;
    for (size_t operand : {EinsumLowering::Lhs, EinsumLowering::Rhs}) {
      const TensorType &type = einsum.signature.inputs[operand];
      if (call.inputs[0] != einsum.inputs[operand] ||
          call.signature.inputs[0].shape != type.shape || einsum.inputs[0] == einsum.inputs[1])
        continue;
      std::string summed, kept;
      for (size_t dim = 0; dim < type.shape.size(); ++dim)
        (std::ranges::find(*dims, static_cast<int64_t>(dim)) != dims->end() ? summed : kept) +=
            equation.terms[operand][dim];
      size_t other = 1 - operand;
      if (withSizes(summed, operand) != withSizes(lettersOf(operand, other), operand) ||
          withSizes(kept, operand) !=
              withSizes(lettersOf(EinsumLowering::Out, operand), EinsumLowering::Out))
        continue;
      result.epilogue.biasGrad = operand == EinsumLowering::Lhs ? BiasGrad::OfA : BiasGrad::OfB;
      result.biasGrad = call.outputs[0];
      return true;
    }
    return false;
  }

  /// The letters that these two terms have, in the order of the first, and the third one has not.
  std::string lettersOf(size_t term, size_t other) const {
    std::string letters;
    for (char letter : equation.terms[term])
      if (equation.terms[other].find(letter) != std::string::npos &&
          equation.terms[3 - term - other].find(letter) == std::string::npos)
        letters += letter;
    return letters;
  }

  /// Leaves out the letters of a single element, which lie anywhere.
  std::string withSizes(std::string letters, size_t term) const {
    const KernelSignature &signature = calls.calls[product].signature;
    const TensorType &type =
        term == EinsumLowering::Out ? signature.outputs[0] : signature.inputs[term];
    std::erase_if(letters,
                  [&](char letter) { return type.shape[equation.terms[term].find(letter)] == 1; });
    return letters;
  }

  /// Finds the tensors whose slices are operands of the product, or the bias.
  bool takeSlices() {
    for (size_t i = 0; i < calls.calls.size(); ++i) {
      if (name(i) != "slice")
        continue;
      const FusedCalls::Call &call = calls.calls[i];
      Expected<StridedCall> slice = checkSlice(call.signature);
      size_t value = call.outputs[0];
      if (!slice || calls.values[value].isKept || calls.values[call.inputs[0]].maker)
        return false;
      FusedOperand part{call.inputs[0], slice->offset};
      bool isTaken = false;
      if (result.bias && result.bias->value == value) {
        const auto &loops = slice->loops.dims();
        if (loops.size() != 1 || (slice->loops.elements() > 1 && loops[0].strides[1] != 1) ||
            (slice->offset * static_cast<int64_t>(byteWidth(result.out))) % 16 != 0)
          return false;
        result.bias = part;
        isTaken = true;
      }
      for (EinsumLowering::Operand which : {EinsumLowering::Lhs, EinsumLowering::Rhs}) {
        FusedOperand &operand = which == EinsumLowering::Lhs ? result.a : result.b;
        if (operand.value != value)
          continue;
        if (!stretch(which, slice->loops) ||
            (slice->offset * static_cast<int64_t>(byteWidth(result.in))) % 16 != 0)
          return false;
        operand = part;
        isTaken = true;
      }
      if (!isTaken)
        return false;
    }
    return true;
  }

  /// Lets the product read a matrix where it is a slice of something, if it lies evenly there.
  bool stretch(EinsumLowering::Operand which, const LoopNest<2> &slice) {
    if (result.scaled || result.lowering.copies[which] || result.lowering.loops.elements() != 1)
      return false;
    GemmShape &gemm = result.lowering.gemm;
    bool isA = which == EinsumLowering::Lhs;
    MatrixStrides &strides = isA ? gemm.a : gemm.b;
    return stretch(strides.row, isA ? gemm.m : gemm.k, slice) &&
           stretch(strides.column, isA ? gemm.k : gemm.n, slice) &&
           (strides.row == 1 || strides.column == 1);
  }
  static bool stretch(int64_t &stride, int64_t count, const LoopNest<2> &slice) {
    if (count == 1)
      return true;
    for (const auto &loop : slice.dims()) {
      auto [dense, inSource] = loop.strides;
      if (stride % dense == 0 && count * stride <= dense * loop.size) {
        stride = stride / dense * inSource;
        return true;
      }
    }
    return false;
  }

  bool canBeComputed() const {
    const EinsumLowering &lowering = result.lowering;
    if (calls.calls.size() < 2)
      return false;
    bool isPlain = !lowering.copies[EinsumLowering::Lhs] && !lowering.copies[EinsumLowering::Rhs] &&
                   lowering.loops.elements() == 1;
    if (!isPlain && !result.epilogue.empty())
      return false;
    if (!mayHaveEpilogue(result.epilogue, lowering.gemm, result.in, result.out))
      return false;
    // One epilogue has no bias gradient beside something else.
    if (result.biasGrad && (result.epilogue.addsBias || result.epilogue.gelu != Gelu::None))
      return false;
    for (std::optional<size_t> read :
         {std::optional(result.a.value), std::optional(result.b.value), valueOf(result.added),
          valueOf(result.bias), result.scaleA, result.scaleB,
          result.epilogue.gelu == Gelu::Gradient ? result.geluInput : std::nullopt})
      if (read && calls.values[*read].maker)
        return false;
    return std::ranges::all_of(calls.overlaps, [&](const FusedCalls::Overlap &each) {
      bool isWritten = each.made == result.c || each.made == result.biasGrad ||
                       (result.epilogue.gelu == Gelu::ValueKept && each.made == result.geluInput);
      // An element of the matrix that is added is read before the result takes its place.
      bool isAdded = result.added && result.added->value == each.before && each.made == result.c;
      bool isOperand = each.before == result.a.value || each.before == result.b.value;
      return !isWritten || (isAdded && each.isSame && !isOperand);
    });
  }

  static std::optional<size_t> valueOf(const std::optional<FusedOperand> &operand) {
    return operand ? std::optional(operand->value) : std::nullopt;
  }

  const FusedCalls &calls;
  FusedProduct result;
  EinsumEquation equation;
  size_t product = 0; // the call
  size_t current = 0; // the value of the product after the calls so far
};

} // namespace

std::optional<FusedProduct> matchProduct(const FusedCalls &calls) {
  return ProductMatcher(calls).match();
}

} // namespace dtc
