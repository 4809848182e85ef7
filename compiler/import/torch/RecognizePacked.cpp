//===- RecognizePacked.cpp - Masks of documents that follow each other ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Transformers is told by positions where documents begin in a sample: a document ends where the
// next position is not one more. A query sees the keys of its document up to its own position, and
// with a sliding window those that are less than the window away. Shapes: B samples, S positions.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {
/// A tensor [B, S] that is repeated over queries or over keys of [B, 1, S, S].
struct Spread {
  Value source;
  bool overKeys = false; ///< it says something of queries, and is the same for all keys
};
} // namespace

/// Whether a known tensor has the shape and counts 0, 1, 2...
static bool counts(Value value, ArrayRef<int64_t> shape, const ConstantMap &constants) {
  auto known = constants.find(value);
  if (known == constants.end() || ArrayRef<int64_t>(known->second.shape) != shape)
    return false;
  std::vector<double> elements = known->second.flat();
  for (size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != double(i))
      return false;
  return true;
}

/// x[samples, positions], where both indices are as numbers of dimensions 0 and 2 or 3.
static std::optional<Spread> spreadOf(Value value, const ConstantMap &constants) {
  AtenArguments index = producerOf(value, "aten.index");
  Value x = index.op ? index.operand("self") : Value();
  SmallVector<Value> indices = index.op ? index.list("indices") : SmallVector<Value>();
  if (!x || shapeOf(x).size() != 2 || indices.size() != 2 || !indices[0] || !indices[1])
    return std::nullopt;
  int64_t samples = shapeOf(x)[0], positions = shapeOf(x)[1];
  if (!counts(indices[0], {samples, 1, 1, 1}, constants))
    return std::nullopt;
  for (bool overKeys : {true, false})
    if (counts(indices[1],
               overKeys ? ArrayRef<int64_t>{1, 1, positions, 1}
                        : ArrayRef<int64_t>{1, 1, 1, positions},
               constants))
      return Spread{x, overKeys};
  return std::nullopt;
}

/// The value before steps that change neither elements nor, but for repeats, their places.
static Value beforeCopies(Value value) {
  static constexpr StringRef names[] = {"_to_copy", "alias", "clone", "contiguous", "expand", "to"};
  while (Operation *op = value.getDefiningOp()) {
    AtenArguments step(op);
    Value x = llvm::is_contained(names, step.name()) ? step.operand("self") : Value();
    if (!x || typeOf(x).getElementType() != typeOf(value).getElementType() ||
        shapeOf(x).size() != shapeOf(value).size())
      break;
    value = x;
  }
  return value;
}

/// The positions by which segments are counted: cumsum(diff(positions, before) != 1), where the
/// first position is one more than what is before it.
static Value positionsOf(Value segments) {
  AtenArguments sum = producerOf(segments, "aten.cumsum");
  AtenArguments differs = producerOf(sum.op ? sum.operand("self") : Value(), "aten.ne");
  AtenArguments diff = producerOf(differs.op ? differs.operand("self") : Value(), "aten.diff");
  if (!diff.op || sum.dim("dim", 2) != 1 || differs.number("other") != 1 ||
      diff.dim("dim", 2) != 1 || diff.integer("n").value_or(1) != 1 || diff.operand("append"))
    return {};
  Value positions = diff.operand("self");
  AtenArguments before = producerOf(diff.operand("prepend"), "aten.sub");
  AtenArguments first = producerOf(before.op ? before.operand("self") : Value(), "aten.slice");
  bool isBefore = first.op && before.number("other") == 1 &&
                  before.number("alpha").value_or(1) == 1 && first.operand("self") == positions &&
                  first.dim("dim", 2) == 1 && first.integer("start").value_or(0) == 0 &&
                  shapeOf(first.op->getResult(0))[1] == 1;
  return isBefore ? positions : Value();
}

namespace {
/// What all conditions of a mask say.
class Conditions {
public:
  explicit Conditions(const ConstantMap &constants) : constants(constants) {}

  /// Reads a mask of truth values; false where a condition is of another form.
  bool read(Value mask);

  Value segments;  ///< that are equal for a query and its keys
  Value positions; ///< of keys that are at most those of queries
  std::optional<int64_t> window;

private:
  bool readCondition(AtenArguments op);
  static bool set(Value &to, Value value) {
    bool fits = !to || to == value;
    to = value;
    return fits;
  }

  const ConstantMap &constants;
};
} // namespace

bool Conditions::readCondition(AtenArguments op) {
  StringRef name = op.name();
  Value lhs = op.operand("self"), rhs = op.operand("other");
  if (!lhs || !rhs)
    return false;
  // query <= key and query < key as key >= query and key > query.
  if (name == "ge" || name == "lt") {
    std::swap(lhs, rhs);
    name = name == "ge" ? "le" : "gt";
  }
  if (AtenArguments sub = producerOf(rhs, "aten.sub"); name == "gt" && sub.op) {
    // key > query - window
    auto key = spreadOf(lhs, constants), query = spreadOf(sub.operand("self"), constants);
    std::optional<int64_t> size = sub.integer("other");
    if (!key || !query || key->overKeys || !query->overKeys || !size || *size < 1 || window ||
        sub.number("alpha").value_or(1) != 1)
      return false;
    window = size;
    return set(positions, beforeCopies(key->source)) && set(positions, beforeCopies(query->source));
  }
  auto first = spreadOf(lhs, constants), second = spreadOf(rhs, constants);
  if (!first || !second || first->overKeys == second->overKeys)
    return false;
  Value source = beforeCopies(first->source);
  if (source != beforeCopies(second->source))
    return false;
  if (name == "eq")
    return set(segments, source);
  return name == "le" && !first->overKeys && set(positions, source);
}

bool Conditions::read(Value mask) {
  SmallVector<Value> pending{mask};
  while (!pending.empty()) {
    Value value = beforeCopies(pending.pop_back_val());
    if (auto known = constants.find(value); known != constants.end()) {
      if (knownNumber(value, constants) != 1)
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    AtenArguments step(op);
    if (step.name() == "__and__" || step.name() == "bitwise_and" || step.name() == "logical_and") {
      if (!step.operand("self") || !step.operand("other"))
        return false;
      pending.append({step.operand("self"), step.operand("other")});
    } else if (!readCondition(step)) {
      return false;
    }
  }
  return true;
}

std::optional<PackedForm> dtc::torch::packedFormOf(Value mask, const ConstantMap &constants) {
  Conditions conditions(constants);
  if (!typeOf(mask).getElementType().isInteger(1) || !conditions.read(mask) ||
      !conditions.segments || !conditions.positions)
    return std::nullopt;
  // Within a segment positions increase by one, as the numbers of tokens do.
  Value positions = positionsOf(conditions.segments);
  if (!positions || beforeCopies(positions) != conditions.positions)
    return std::nullopt;
  return PackedForm{conditions.segments, conditions.window};
}
