//===- EinsumLowering.cpp - Einsum as a batched matrix product ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/EinsumLowering.h"

#include "calls/SignatureChecker.h"
#include "support/Float16.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc {

namespace {

class EinsumLowerer {
public:
  EinsumLowerer(EinsumEquation equation, const std::array<int64_t, 26> &sizes)
      : terms(std::move(equation.terms)), sizes(sizes) {
    for (std::string &term : terms)
      std::erase_if(term, [&](char letter) { return size(letter) == 1; });
    while (mergeNeighbours()) {
    }
    for (char letter : terms[EinsumLowering::Out])
      if (contains(EinsumLowering::Lhs, letter) && contains(EinsumLowering::Rhs, letter))
        batch += letter;
  }

  EinsumLowering lower() {
    EinsumLowering result;
    for (size_t i = 0; i < 3; ++i)
      result.elements[i] = elements(terms[i]);
    result.outElements = result.elements[EinsumLowering::Out];
    for (const std::string &term : terms)
      if (elements(term) == 0)
        return result;
    std::string k = common(EinsumLowering::Lhs, EinsumLowering::Rhs);
    if (k.empty()) {
      result.kind = EinsumLowering::Kind::Product;
      result.loops = nest(terms[EinsumLowering::Out], {stridesOf(EinsumLowering::Lhs),
                                                       stridesOf(EinsumLowering::Rhs), Strides{}});
      return result;
    }
    bool dot = batch.size() == terms[EinsumLowering::Out].size();
    result.kind = dot ? EinsumLowering::Kind::Dot : EinsumLowering::Kind::Gemm;
    chooseOrders(result, dot);
    return result;
  }

private:
  /// The stride of each letter; 0 for letters that the operand does not have.
  using Strides = std::array<int64_t, 26>;

  /// The letters of the rows and columns of a matrix, in order.
  struct LetterClasses {
    std::string rows, columns;
  };
  /// The memory order of an operand, as a batch of matrices.
  struct OperandOrder {
    bool copied = false;
    MatrixStrides matrix;
    Strides strides;
  };

  static size_t index(char letter) { return static_cast<size_t>(letter - 'a'); }
  int64_t size(char letter) const { return sizes[index(letter)]; }
  bool contains(size_t term, char letter) const {
    return terms[term].find(letter) != std::string::npos;
  }
  int64_t elements(const std::string &letters) const {
    int64_t product = 1;
    for (char letter : letters)
      product *= size(letter);
    return product;
  }

  /// The letters that exactly these two terms have, in the order of the first.
  std::string common(size_t first, size_t second) const {
    std::string letters;
    for (char letter : terms[first])
      if (contains(second, letter) && !contains(3 - first - second, letter))
        letters += letter;
    return letters;
  }

  /// Makes one letter of two that are neighbours wherever one of them occurs.
  bool mergeNeighbours() {
    for (const std::string &term : terms)
      for (size_t i = 0; i + 1 < term.size(); ++i) {
        std::string pair = term.substr(i, 2);
        bool always = std::all_of(terms.begin(), terms.end(), [&](const std::string &other) {
          return other.find(pair) != std::string::npos ||
                 other.find_first_of(pair) == std::string::npos;
        });
        if (!always)
          continue;
        sizes[index(pair[1])] *= size(pair[0]);
        for (std::string &other : terms)
          std::erase(other, pair[0]);
        return true;
      }
    return false;
  }

  Strides denseStridesOf(const std::string &letters) const {
    Strides strides{};
    int64_t stride = 1;
    for (size_t i = letters.size(); i-- > 0; stride *= size(letters[i]))
      strides[index(letters[i])] = stride;
    return strides;
  }
  Strides stridesOf(size_t term) const { return denseStridesOf(terms[term]); }

  LoopNest<3> nest(const std::string &letters, const std::array<Strides, 3> &strides) const {
    std::vector<int64_t> shape;
    std::array<std::vector<int64_t>, 3> byDim;
    for (char letter : letters) {
      shape.push_back(size(letter));
      for (size_t i = 0; i < 3; ++i)
        byDim[i].push_back(strides[i][index(letter)]);
    }
    return LoopNest<3>(shape, byDim);
  }

  /// The stride from one index of a class of letters to the next, if it is the same everywhere; 1
  /// for no letters.
  std::optional<int64_t> classStride(const std::string &letters, const Strides &strides) const {
    for (size_t i = 0; i + 1 < letters.size(); ++i)
      if (strides[index(letters[i])] != strides[index(letters[i + 1])] * size(letters[i + 1]))
        return std::nullopt;
    return letters.empty() ? 1 : strides[index(letters.back())];
  }

  /// The operand as it is, or copied to batch, rows, columns.
  OperandOrder orderOf(size_t term, const LetterClasses &classes, bool dot) const {
    OperandOrder order;
    order.strides = stridesOf(term);
    std::optional<int64_t> row = classStride(classes.rows, order.strides);
    std::optional<int64_t> column = classStride(classes.columns, order.strides);
    // The loops of a dot product run over contiguous elements; a matrix is so in one direction.
    bool direct = row && column && (dot ? *row == 1 && *column == 1 : *row == 1 || *column == 1);
    if (!direct) {
      order.copied = true;
      order.strides = denseStridesOf(batch + classes.rows + classes.columns);
      row = classStride(classes.rows, order.strides);
      column = classStride(classes.columns, order.strides);
    }
    order.matrix = {*row, *column};
    return order;
  }

  void chooseOrders(EinsumLowering &result, bool dot) {
    using enum EinsumLowering::Operand;
    std::array<OperandOrder, 3> best;
    int64_t bestCost = -1;
    // The order within a class can follow either of the operands that have it.
    for (const std::string &m : {common(Out, Lhs), common(Lhs, Out)})
      for (const std::string &n : {common(Out, Rhs), common(Rhs, Out)})
        for (const std::string &k : {common(Lhs, Rhs), common(Rhs, Lhs)}) {
          std::array<OperandOrder, 3> orders = {
              orderOf(Lhs, {m, k}, dot), orderOf(Rhs, {k, n}, dot), orderOf(Out, {m, n}, false)};
          int64_t cost = 0;
          for (size_t i = 0; i < 3; ++i)
            cost += orders[i].copied ? result.elements[i] : 0;
          if (bestCost >= 0 && cost >= bestCost)
            continue;
          bestCost = cost;
          best = orders;
          result.gemm = {elements(m),      elements(n),      elements(k),
                         orders[0].matrix, orders[1].matrix, orders[2].matrix};
        }
    result.loops = nest(batch, {best[0].strides, best[1].strides, best[2].strides});
    for (size_t i = 0; i < 3; ++i)
      if (best[i].copied)
        result.copies[i] = copyOf(i, best[i].strides);
  }

  /// The loops between an operand and its copy in the workspace.
  LoopNest<2> copyOf(size_t term, const Strides &copied) const {
    std::vector<int64_t> shape, strides, copiedStrides;
    Strides dense = stridesOf(term);
    // In the order of the target, so that writes are contiguous.
    std::string letters = terms[term];
    const Strides &target = term == EinsumLowering::Out ? dense : copied;
    std::sort(letters.begin(), letters.end(),
              [&](char a, char b) { return target[index(a)] > target[index(b)]; });
    for (char letter : letters) {
      shape.push_back(size(letter));
      strides.push_back(dense[index(letter)]);
      copiedStrides.push_back(copied[index(letter)]);
    }
    if (term == EinsumLowering::Out)
      return {shape, {strides, copiedStrides}};
    return {shape, {copiedStrides, strides}};
  }

  std::array<std::string, 3> terms;
  std::array<int64_t, 26> sizes;
  std::string batch; // in the order of the result
};

} // namespace

EinsumLowering EinsumLowering::create(EinsumEquation equation,
                                      const std::array<int64_t, 26> &sizes) {
  return EinsumLowerer(std::move(equation), sizes).lower();
}

Expected<EinsumLowering> planEinsum(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &lhs = check.floatInput(0);
  const std::array<const TensorType *, 3> types = {&lhs, &check.input(1), &check.output(0)};
  check.expectInput(1, withElements(check.input(1), lhs.dtype));
  DType result = check.output(0).dtype;
  if (result != wideType(lhs.dtype))
    check.expectOutput(0, withElements(check.output(0), lhs.dtype));
  std::string text = check.stringAttribute("equation");
  std::optional<EinsumEquation> equation = EinsumEquation::parse(text);
  if (!equation)
    check.failAttribute("equation", fmt::format("\"{}\"", text),
                        "an equation such as \"bsd,df->bsf\", each letter at most once in a term "
                        "and in two terms or three");
  if (check.failed())
    return *check.finish();

  std::array<int64_t, 26> sizes;
  sizes.fill(-1);
  for (size_t i = 0; i < 3; ++i) {
    const std::string &term = equation->terms[i];
    bool matches = term.size() == types[i]->shape.size();
    for (size_t dim = 0; matches && dim < term.size(); ++dim) {
      int64_t &size = sizes[static_cast<size_t>(term[dim] - 'a')];
      matches = size < 0 || size == types[i]->shape[dim];
      size = types[i]->shape[dim];
    }
    if (!matches)
      check.fail(fmt::format("{} {} is {}, expected the sizes of \"{}\" in \"{}\"",
                             i < 2 ? "input" : "output", i < 2 ? i : 0, types[i]->str(), term,
                             text));
  }
  if (MaybeError error = check.finish())
    return *error;
  return EinsumLowering::create(std::move(*equation), sizes);
}

int64_t lengthOfDenseDot(const EinsumLowering &plan) {
  if (plan.outElements != 1 || plan.copies[EinsumLowering::Lhs] ||
      plan.copies[EinsumLowering::Rhs] || plan.copies[EinsumLowering::Out])
    return 0;
  if (plan.kind == EinsumLowering::Kind::Dot)
    return plan.gemm.k;
  return plan.kind == EinsumLowering::Kind::Product ? 1 : 0;
}

} // namespace dtc
