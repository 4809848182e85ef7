//===- RecognizeMasks.cpp - Causal and sliding-window masks ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"
#include "support/Format.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseSet.h"

#include <fmt/format.h>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The one matrix [S, T] of a mask that all samples and heads have.
static std::optional<ConstantTensor> matrixOf(const ConstantTensor &mask, int64_t queries,
                                              int64_t keys) {
  ConstantTensor matrix = mask.compressed();
  int64_t distinct = matrix.distinct();
  int64_t leading = int64_t(matrix.shape.size()) - 2;
  if (leading < 0)
    return std::nullopt;
  for (int64_t dim = 0; dim < leading; ++dim)
    matrix = matrix.sliced(dim, 0, 1);
  if (matrix.distinct() != distinct)
    return std::nullopt;
  return matrix.reshaped(ArrayRef(matrix.shape).take_back(2)).broadcast({queries, keys});
}

static std::optional<MaskForm> maskFormOf(const ConstantTensor &mask, bool hides) {
  int64_t queries = mask.shape[0], keys = mask.shape[1], shift = keys - queries;
  bool isTruth = mask.element.isInteger(1);
  // Sees, does not see, or neither of both: a bias.
  auto sees = [&](int64_t query, int64_t key) -> std::optional<bool> {
    double value = mask.at({query, key});
    if (isTruth || value == 0 || value <= kHiddenAtMost)
      return isTruth ? (value != 0) != hides : value == 0;
    return std::nullopt;
  };
  int64_t ofLast = 0;
  bool all = true, causal = shift >= 0;
  for (int64_t key = 0; key < keys; ++key)
    ofLast += sees(queries - 1, key).value_or(false);
  if (ofLast == 0)
    return std::nullopt;
  for (int64_t query = 0; query < queries; ++query)
    for (int64_t key = 0; key < keys; ++key) {
      std::optional<bool> seen = sees(query, key);
      if (!seen)
        return std::nullopt;
      int64_t last = query + shift;
      all &= *seen;
      causal &= *seen == (key <= last && key > last - ofLast);
    }
  if (all)
    return MaskForm{false, std::nullopt};
  if (!causal)
    return std::nullopt;
  return MaskForm{true, ofLast < keys ? std::optional(ofLast) : std::nullopt};
}

std::optional<MaskForm> MaskForms::find(Value mask, int64_t queries, int64_t keys, bool hides) {
  auto found = constants.find(mask);
  if (found == constants.end())
    return std::nullopt;
  auto [form, isNew] = forms[hides].try_emplace(std::tuple(mask, queries, keys));
  if (isNew)
    if (std::optional<ConstantTensor> matrix = matrixOf(found->second, queries, keys))
      form->second = maskFormOf(*matrix, hides);
  return form->second;
}

static void setForm(Operation *op, const MaskForm &form, Value segments = {}) {
  Builder builder(op->getContext());
  SmallVector<Attribute> names;
  SmallVector<Value> operands;
  for (auto [name, value] : llvm::zip(op->getAttrOfType<ArrayAttr>("operands"), op->getOperands()))
    if (cast<StringAttr>(name).getValue() != "attn_mask") {
      names.push_back(name);
      operands.push_back(value);
    }
  if (segments) {
    names.push_back(builder.getStringAttr("segments"));
    operands.push_back(segments);
  }
  op->setOperands(operands);
  op->setAttr("operands", builder.getArrayAttr(names));
  op->setAttr("is_causal", builder.getBoolAttr(form.causal));
  op->setAttr("recognized", builder.getBoolAttr(true));
  if (form.window)
    op->setAttr("window", builder.getI64IntegerAttr(*form.window));
}

static void warnOfLargeMask(Operation &op, Value query, int64_t queries, int64_t keys,
                            Conversion &conversion) {
  RankedTensorType type = typeOf(query);
  int64_t scores = type.getNumElements() / type.getShape().back() * keys;
  conversion.warning(
      op.getLoc(),
      fmt::format("attention stays in its parts, whose scores take {}: its mask of {} x {} "
                  "elements is larger than those that are computed at import, which have at "
                  "most {}; give is_causal=True instead of a causal mask",
                  formatBytes(uint64_t(scores) * type.getElementTypeBitWidth() / 8), queries, keys,
                  kMaxConstantElements));
}

void dtc::torch::recognizeMasks(Block &block, const ConstantMap &constants,
                                Conversion &conversion) {
  MaskForms forms(constants);
  llvm::DenseSet<Value> unknown; // depend on no argument, but are too large to be computed
  llvm::DenseSet<Value> warned;
  for (Operation &op : block.without_terminator()) {
    AtenArguments arguments(&op);
    Value query = arguments.operand("query"), key = arguments.operand("key");
    Value mask = arguments.operand("attn_mask");
    auto found = mask ? constants.find(mask) : constants.end();
    if (op.getNumResults() == 1 && !constants.contains(op.getResult(0)) &&
        llvm::all_of(op.getOperands(), [&](Value each) {
          return constants.contains(each) || unknown.contains(each);
        }))
      unknown.insert(op.getResult(0));
    if (arguments.name() != "scaled_dot_product_attention" || !mask || !query || !key ||
        shapeOf(query).size() < 2 || shapeOf(key).size() < 2)
      continue;
    int64_t queries = shapeOf(query).drop_back().back(), keys = shapeOf(key).drop_back().back();
    if (found == constants.end()) {
      if (auto packed = packedFormOf(mask, constants); packed && queries == keys) {
        setForm(&op, {/*causal=*/true, packed->window}, packed->segments);
        conversion.raised("masks of documents by their positions, now segments of dtc.attention",
                          op.getLoc());
        continue;
      }
      if (unknown.contains(mask) && queries > kMaxConstantElements / keys &&
          warned.insert(mask).second)
        warnOfLargeMask(op, query, queries, keys, conversion);
      continue;
    }
    std::optional<MaskForm> form = forms.find(mask, queries, keys);
    if (!form)
      continue;
    setForm(&op, *form);
    conversion.raised(form->window   ? "masks of a sliding window, now of dtc.attention"
                      : form->causal ? "causal masks, now of dtc.attention"
                                     : "masks that hide nothing, left out",
                      op.getLoc());
  }
}
