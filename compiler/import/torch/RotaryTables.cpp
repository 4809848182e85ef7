//===- RotaryTables.cpp - Tables of rotary positions ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Rotary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

Operation *dtc::torch::tableOp(Value value) {
  static constexpr StringRef steps[] = {"_to_copy", "alias", "clone", "contiguous", "expand", "mul",
                                        "reshape",  "slice", "to",    "unsqueeze",  "view"};
  while (Operation *op = value ? value.getDefiningOp() : nullptr) {
    AtenArguments step(op);
    if (step.name() == "cos" || step.name() == "sin")
      return op;
    if (!llvm::is_contained(steps, step.name()) || step.operand("other"))
      break;
    value = step.operand("self");
  }
  return nullptr;
}

/// The table [S, E] of a constant that is repeated over samples and heads of x, and the dimension
/// of positions.
static std::optional<std::pair<ConstantTensor, int64_t>> tableOf(const ConstantTensor &constant,
                                                                 ArrayRef<int64_t> shape) {
  auto wide = constant.broadcast(shape);
  if (!wide || shape.size() != 4)
    return std::nullopt;
  wide = wide->compressed();
  for (int64_t dim : {2, 1}) {
    ConstantTensor rows = wide->sliced(0, 0, 1).sliced(dim == 2 ? 1 : 2, 0, 1);
    if (rows.distinct() == wide->distinct() && shape[dim] > 1)
      return std::pair(rows.reshaped({shape[dim], shape[3]}), dim);
  }
  return std::nullopt;
}

/// The angles that a table is the cosine of, [S, at least half of E]: those before rounding to
/// cosines lose digits.
static std::optional<ConstantTensor> anglesOf(Value cosine, ArrayRef<int64_t> shape, int64_t half,
                                              const ConstantMap &constants) {
  Operation *op = tableOp(cosine);
  Value angles = op ? AtenArguments(op).operand("self") : Value();
  auto found = angles ? constants.find(angles) : constants.end();
  if (found == constants.end() || found->second.shape.empty())
    return std::nullopt;
  int64_t width = found->second.shape.back();
  if (width < half || found->second.size() != shape[0] * width)
    return std::nullopt;
  return found->second.reshaped({shape[0], width});
}

/// How far cosines of an angle may be from those that PyTorch computes: it rounds angles, and then
/// cosines, to the type of the table or to f32.
static double toleranceOf(const ConstantTensor &angles, double angle) {
  return angles.element.isF64() ? 1e-13 * (1 + angle) : 1e-6 + 2.5e-7 * angle;
}

static bool areFrequencies(const RotaryForm &form) {
  return form.factor > 0 && std::isfinite(form.factor) &&
         llvm::all_of(form.frequencies,
                      [](double each) { return std::isfinite(each) && each >= 0; });
}

/// The form of known tables of the shape.
static std::optional<RotaryForm> formOf(const RotaryParts &parts, ArrayRef<int64_t> shape,
                                        const ConstantMap &constants) {
  auto cosine = tableOf(constants.at(parts.cosine), shape);
  auto sine = tableOf(constants.at(parts.sine), shape);
  if (!cosine || !sine || cosine->second != sine->second)
    return std::nullopt;
  const ConstantTensor &table = cosine->first;
  int64_t half = table.shape[1] / (parts.first ? 1 : 2);
  auto angles = anglesOf(parts.cosine, table.shape, half, constants);
  if (!angles)
    return std::nullopt;
  RotaryForm form;
  form.positionDim = cosine->second;
  form.factor = table.at({0, 0});
  for (int64_t i = 0; i < half; ++i)
    form.frequencies.push_back(angles->at({1, i}));
  if (!areFrequencies(form))
    return std::nullopt;
  for (int64_t s = 0; s < table.shape[0]; ++s)
    for (int64_t i = 0; i < table.shape[1]; ++i) {
      double angle = double(s) * form.frequencies[size_t(i % half)];
      double tolerance = form.factor * toleranceOf(*angles, angle);
      if (!(std::abs(table.at({s, i}) - form.factor * std::cos(angle)) <= tolerance) ||
          !(std::abs(sine->first.at({s, i}) - form.factor * std::sin(angle)) <= tolerance))
        return std::nullopt;
    }
  return form;
}

namespace {
/// The ops by which tables follow from positions that the batch gives, in the order of the block.
struct TableOps {
  Value positions; ///< integers [samples or 1, positions]
  SmallVector<Operation *> ops;
};
} // namespace

/// The ops between positions and two tables: those that keep elements or multiply them by known
/// numbers, and the cosine and the sine.
static std::optional<TableOps> tableOpsOf(const RotaryParts &parts, const ConstantMap &constants) {
  static constexpr StringRef names[] = {
      "_to_copy", "_unsafe_view", "alias",   "bmm", "cat",    "clone",     "contiguous",
      "cos",      "expand",       "flatten", "t",   "matmul", "mul",       "permute",
      "reshape",  "sin",          "slice",   "to",  "view",   "transpose", "unsqueeze"};
  TableOps found;
  llvm::SetVector<Operation *> ops;
  SmallVector<Value> pending{parts.cosine, parts.sine};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (constants.contains(value))
      continue;
    if (isa<IntegerType>(typeOf(value).getElementType()) && shapeOf(value).size() == 2) {
      if (found.positions && found.positions != value)
        return std::nullopt;
      found.positions = value;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op || !llvm::is_contained(names, AtenArguments(op).name()))
      return std::nullopt;
    if (ops.insert(op))
      pending.append(op->operand_begin(), op->operand_end());
  }
  if (!found.positions)
    return std::nullopt;
  found.ops = ops.takeVector();
  llvm::sort(found.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return found;
}

/// Computes the ops for positions that are known; false where one of them has no rule.
static bool evaluateAt(const TableOps &tables, function_ref<double(int64_t)> position,
                       ConstantMap &known) {
  RankedTensorType type = typeOf(tables.positions);
  std::vector<double> values;
  for (int64_t place = 0; place < type.getNumElements(); ++place)
    values.push_back(position(place));
  known.erase(tables.positions);
  known.try_emplace(tables.positions,
                    ConstantTensor(type.getElementType(), type.getShape(), std::move(values)));
  for (Operation *op : tables.ops) {
    known.erase(op->getResult(0));
    std::optional<ConstantTensor> value = evaluate(op, known);
    if (!value)
      return false;
    known.try_emplace(op->getResult(0), std::move(*value));
  }
  return true;
}

/// Whether the tables in `known` are those of positions in `known` by the form, in the shape of x.
static bool areOfForm(const RotaryParts &parts, const RotaryForm &form, ArrayRef<int64_t> shape,
                      const ConstantMap &known) {
  auto cosine = known.at(parts.cosine).broadcast(shape);
  auto sine = known.at(parts.sine).broadcast(shape);
  auto positions = known.at(form.positions).broadcast({shape[0], shape[form.positionDim]});
  const ConstantTensor &angles = known.at(AtenArguments(tableOp(parts.cosine)).operand("self"));
  if (!cosine || !sine || !positions)
    return false;
  return allIndices(shape, [&](ArrayRef<int64_t> index) {
    double frequency = form.frequencies[size_t(index[3]) % form.frequencies.size()];
    double angle = positions->at({index[0], index[form.positionDim]}) * frequency;
    double tolerance = form.factor * toleranceOf(angles, angle);
    return std::abs(cosine->at(index) - form.factor * std::cos(angle)) <= tolerance &&
           std::abs(sine->at(index) - form.factor * std::sin(angle)) <= tolerance;
  });
}

/// The form of tables of positions that the batch gives. Angles are linear in them, by the ops:
/// positions of 1 tell the frequencies, and others, which differ by their places, that each angle
/// is that of its own position.
static std::optional<RotaryForm> formOfPositions(const RotaryParts &parts, ArrayRef<int64_t> shape,
                                                 const ConstantMap &constants) {
  std::optional<TableOps> tables = tableOpsOf(parts, constants);
  Operation *cosine = tableOp(parts.cosine);
  if (!tables || !cosine || !tableOp(parts.sine) || shape.size() != 4)
    return std::nullopt;
  Value angles = AtenArguments(cosine).operand("self");
  ConstantMap known = constants;
  RotaryForm form;
  form.positions = tables->positions;
  int64_t half = shape[3] / (parts.first ? 1 : 2);
  if (!angles || shapeOf(angles).empty() || shapeOf(angles).back() < half ||
      !evaluateAt(
          *tables, [](int64_t) { return 0; }, known))
    return std::nullopt;
  form.factor = known.at(parts.cosine).flat().front();
  if (!evaluateAt(
          *tables, [](int64_t) { return 1; }, known))
    return std::nullopt;
  SmallVector<int64_t> place(shapeOf(angles).size(), 0);
  for (; place.back() < half; ++place.back())
    form.frequencies.push_back(known.at(angles).at(place));
  // Multiples of a prime, up to the positions of long samples.
  auto spread = [](int64_t number) { return double((number + 1) * 7919 % 131071); };
  if (!areFrequencies(form) || !evaluateAt(*tables, spread, known))
    return std::nullopt;
  for (int64_t dim : {2, 1}) {
    form.positionDim = dim;
    ArrayRef<int64_t> given = shapeOf(form.positions);
    if ((given[0] == shape[0] || given[0] == 1) && given[1] == shape[dim] &&
        areOfForm(parts, form, shape, known))
      return form;
  }
  return std::nullopt;
}

std::optional<RotaryForm> dtc::torch::findRotaryForm(const RotaryParts &parts,
                                                     ArrayRef<int64_t> shape,
                                                     const ConstantMap &constants) {
  if (constants.contains(parts.cosine) && constants.contains(parts.sine))
    return formOf(parts, shape, constants);
  return formOfPositions(parts, shape, constants);
}
