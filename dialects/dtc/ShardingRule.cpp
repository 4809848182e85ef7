//===- ShardingRule.cpp - Relations between dimensions of an op -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/ShardingRule.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cctype>
#include <map>
#include <numeric>

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

ShardingRule dtc::makeElementwiseRule(Operation *op) {
  ShardingRule rule;
  TensorFactors dims;
  auto add = [&](Type type, SmallVectorImpl<TensorFactors> &tensors) {
    auto shape = cast<RankedTensorType>(type).getShape();
    if (dims.empty())
      for (int64_t size : shape)
        dims.push_back({rule.addFactor(size)});
    tensors.push_back(shape.empty() ? TensorFactors() : dims);
  };
  // The first tensor that is no scalar names the factors.
  for (Type type : op->getOperandTypes())
    add(type, rule.operands);
  for (Type type : op->getResultTypes())
    add(type, rule.results);
  return rule;
}

//===----------------------------------------------------------------------===//
// Equations
//===----------------------------------------------------------------------===//

namespace {

/// Makes a rule of an equation. A factor's symbol is its letter, or kEllipsis + i for dimension i
/// of "...".
class EquationReader {
public:
  EquationReader(Operation *op, StringRef equation) : op(op), equation(equation) {}

  ShardingRule read() {
    auto [operandTerms, resultTerms] = equation.split("->");
    readTerms(operandTerms, op->getOperandTypes(), rule.operands);
    readTerms(resultTerms, op->getResultTypes(), rule.results);
    sizeFactors(op->getOperandTypes(), rule.operands);
    sizeFactors(op->getResultTypes(), rule.results);
    findReductions();
    return std::move(rule);
  }

private:
  static constexpr int kEllipsis = 256;

  unsigned getFactor(int symbol) {
    auto [it, isNew] = factorOf.try_emplace(symbol, rule.factors.size());
    if (isNew) {
      rule.addFactor(/*size=*/0);
      rule.factors.back().whole = symbol < kEllipsis && std::isupper(symbol);
    }
    return it->second;
  }

  TensorFactors readTerm(StringRef term, unsigned rank) {
    // The number of dimensions that the term names.
    unsigned numNamed = 0;
    bool inGroup = false;
    for (char c : term) {
      inGroup = (inGroup || c == '(') && c != ')';
      numNamed += c == ')' || (std::isalpha(c) && !inGroup);
    }
    TensorFactors dims;
    while (!term.empty()) {
      if (term.consume_front("...")) {
        for (unsigned i = 0; i + numNamed < rank; ++i)
          dims.push_back({getFactor(kEllipsis + i)});
      } else if (term.consume_front("(")) {
        auto &group = dims.emplace_back();
        for (; !term.consume_front(")"); term = term.drop_front())
          group.push_back(getFactor(term.front()));
      } else {
        dims.push_back({getFactor(term.front())});
        term = term.drop_front();
      }
    }
    assert(dims.size() == rank && "the equation does not fit the op's types");
    return dims;
  }

  void readTerms(StringRef terms, TypeRange types, SmallVectorImpl<TensorFactors> &tensors) {
    for (Type type : types) {
      StringRef term;
      std::tie(term, terms) = terms.split(',');
      tensors.push_back(readTerm(term, cast<RankedTensorType>(type).getRank()));
    }
  }

  /// The factors of single dimensions have their size. At most one factor of a group occurs in no
  /// such dimension.
  void sizeFactors(TypeRange types, ArrayRef<TensorFactors> tensors) {
    for (bool groups : {false, true})
      for (auto [type, dims] : llvm::zip_equal(types, tensors))
        for (auto [size, group] : llvm::zip_equal(cast<RankedTensorType>(type).getShape(), dims)) {
          if ((group.size() > 1) != groups)
            continue;
          int64_t rest = size;
          Factor *unknown = nullptr;
          for (unsigned factor : group) {
            if (rule.factors[factor].size == 0)
              unknown = &rule.factors[factor];
            else
              rest /= rule.factors[factor].size;
          }
          if (unknown)
            unknown->size = rest;
        }
  }

  /// A factor of an operand that some result lacks is summed in it.
  void findReductions() {
    auto has = [](const TensorFactors &dims, unsigned factor) {
      return llvm::any_of(dims, [&](auto &group) { return llvm::is_contained(group, factor); });
    };
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      unsigned i = index;
      if (!factor.whole && llvm::any_of(rule.operands, [&](auto &dims) { return has(dims, i); }) &&
          !llvm::all_of(rule.results, [&](auto &dims) { return has(dims, i); }))
        factor.reduction = ReductionKind::Sum;
    }
  }

  Operation *op;
  StringRef equation;
  ShardingRule rule;
  std::map<int, unsigned> factorOf;
};

} // namespace

ShardingRule dtc::makeEquationRule(Operation *op, StringRef equation) {
  return EquationReader(op, equation).read();
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

ShardingRule dtc::makeReshapeRule(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  ShardingRule rule;
  TensorFactors fromDims(from.size()), toDims(to.size());

  // Walks both shapes from the slowest dimension. The blocks that the walk has split off so far are
  // the same on both sides; `fromRest` and `toRest` are the rests of the dimensions `i` and `j`. A
  // common divisor of the two splits off a common factor. Dimensions of size 1 between the same
  // blocks are matched in their order, as far as both sides have them.
  size_t i = 0, j = 0;
  int64_t fromRest = 1, toRest = 1;
  while (true) {
    while (fromRest == 1 && toRest == 1 && i < from.size() && j < to.size() && from[i] == 1 &&
           to[j] == 1) {
      unsigned factor = rule.addFactor(1);
      fromDims[i++].push_back(factor);
      toDims[j++].push_back(factor);
    }
    while (fromRest == 1 && i < from.size())
      fromRest = from[i++];
    while (toRest == 1 && j < to.size())
      toRest = to[j++];
    if (fromRest == 1 || toRest == 1)
      break;
    int64_t common = std::gcd(fromRest, toRest);
    if (common > 1) {
      unsigned factor = rule.addFactor(common);
      fromDims[i - 1].push_back(factor);
      toDims[j - 1].push_back(factor);
      fromRest /= common;
      toRest /= common;
      continue;
    }
    // Without one, everything up to the next common boundary stays whole.
    auto addWhole = [&](SmallVector<unsigned, 1> &dim, int64_t size) {
      if (size > 1)
        dim.push_back(rule.addWholeFactor(size));
    };
    int64_t fromSize = fromRest, toSize = toRest;
    addWhole(fromDims[i - 1], fromRest);
    addWhole(toDims[j - 1], toRest);
    while (fromSize != toSize) {
      if (fromSize < toSize) {
        fromSize *= from[i];
        addWhole(fromDims[i], from[i]);
        ++i;
      } else {
        toSize *= to[j];
        addWhole(toDims[j], to[j]);
        ++j;
      }
    }
    fromRest = toRest = 1;
  }
  rule.operands.push_back(std::move(fromDims));
  rule.results.push_back(std::move(toDims));
  rule.linearOperands = {{0}};
  return rule;
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

namespace {

/// Checks a rule against its op.
/// No constraint: a rule is no part of the IR; a wrong rule is a defect of its op.
class RuleChecker {
public:
  RuleChecker(Operation *op, const ShardingRule &rule, function_ref<InFlightDiagnostic()> emitError)
      : op(op), rule(rule), emitError(emitError) {}

  LogicalResult check() {
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      if (factor.size < 1)
        return emitError() << "factor " << index << " has size " << factor.size
                           << ", expected at least 1";
      if (factor.whole && factor.reduction)
        return emitError() << "factor " << index
                           << " must stay whole and has a reduction, expected one of the two";
    }
    if (failed(checkTensors("operand", op->getOperandTypes(), rule.operands, inOperands)) ||
        failed(checkTensors("result", op->getResultTypes(), rule.results, inResults)) ||
        failed(checkReductions()) || failed(checkLinearOperands()))
      return failure();
    return checkIndexedFactors();
  }

private:
  LogicalResult checkTensors(StringRef kind, TypeRange types, ArrayRef<TensorFactors> tensors,
                             SmallVectorImpl<llvm::SmallBitVector> &occurs) {
    if (types.size() != tensors.size())
      return emitError() << "the rule has " << tensors.size() << " " << kind
                         << "s, expected the op's " << types.size();
    for (auto [index, type, dims] : llvm::enumerate(types, tensors)) {
      std::string tensor = kind.str() + " " + std::to_string(index);
      auto &has = occurs.emplace_back(rule.factors.size());
      auto tensorType = dyn_cast<RankedTensorType>(type);
      if (!tensorType)
        return emitError() << tensor << " is no ranked tensor";
      if (static_cast<int64_t>(dims.size()) != tensorType.getRank())
        return emitError() << "the rule has " << dims.size() << " dimensions for " << tensor
                           << ", expected " << tensorType.getRank();
      for (auto [dim, group] : llvm::enumerate(dims)) {
        int64_t size = 1;
        for (unsigned factor : group) {
          if (factor >= rule.factors.size())
            return emitError() << tensor << " has factor " << factor << ", expected less than "
                               << rule.factors.size();
          if (has.test(factor))
            return emitError() << tensor << " has factor " << factor << " twice";
          has.set(factor);
          size *= rule.factors[factor].size;
        }
        if (size != tensorType.getDimSize(dim))
          return emitError() << "the factors of dimension " << dim << " of " << tensor
                             << " multiply to " << size << ", expected "
                             << tensorType.getDimSize(dim);
      }
    }
    return success();
  }

  LogicalResult checkReductions() {
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      auto has = [i = index](const llvm::SmallBitVector &factors) { return factors.test(i); };
      bool inOperand = llvm::any_of(inOperands, has);
      bool inResult = llvm::any_of(inResults, has);
      bool inAllResults = llvm::all_of(inResults, has);
      std::string name = "factor " + std::to_string(index);
      if (!inOperand && !inResult)
        return emitError() << name << " is in no operand and no result";
      if (!factor.reduction) {
        if (inOperand && !inAllResults && !factor.whole)
          return emitError() << "a result lacks " << name << ", which has no reduction";
      } else if (!inOperand || inAllResults) {
        return emitError() << name
                           << " has a reduction, expected an operand with it and a result without";
      }
    }
    return success();
  }

  LogicalResult checkLinearOperands() {
    for (auto &set : rule.linearOperands) {
      llvm::SmallBitVector seen(op->getNumOperands());
      if (set.empty())
        return emitError() << "a set of linear operands is empty";
      for (unsigned operand : set) {
        if (operand >= op->getNumOperands())
          return emitError() << "linear operand " << operand << ", expected less than "
                             << op->getNumOperands();
        if (seen.test(operand))
          return emitError() << "linear operand " << operand << " twice in a set";
        seen.set(operand);
      }
    }
    return success();
  }

  LogicalResult checkIndexedFactors() {
    for (auto [operand, factor] : rule.indexedFactors) {
      if (operand >= op->getNumOperands())
        return emitError() << "indices in operand " << operand << ", expected less than "
                           << op->getNumOperands();
      if (factor >= rule.factors.size())
        return emitError() << "indices into factor " << factor << ", expected less than "
                           << rule.factors.size();
      if (!cast<RankedTensorType>(op->getOperand(operand).getType()).getElementType().isInteger(32))
        return emitError() << "operand " << operand << " holds indices, expected elements of i32";
      if (inOperands[operand].test(factor))
        return emitError() << "operand " << operand << " holds indices into its own factor "
                           << factor;
    }
    return success();
  }

  Operation *op;
  const ShardingRule &rule;
  function_ref<InFlightDiagnostic()> emitError;
  /// For each operand and result the factors that it has.
  SmallVector<llvm::SmallBitVector> inOperands, inResults;
};

} // namespace

LogicalResult dtc::checkShardingRule(Operation *op, const ShardingRule &rule,
                                     function_ref<InFlightDiagnostic()> emitError) {
  return RuleChecker(op, rule, emitError).check();
}
