//===- Recognize.h - Forms that are made of known values --------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_RECOGNIZE_H
#define DTC_COMPILER_IMPORT_TORCH_RECOGNIZE_H

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/ConstantTensor.h"

#include "mlir/IR/Builders.h"

#include <array>
#include <tuple>

namespace dtc::torch {

/// The keys that queries see, where these are all keys, those of a causal mask, or those of a
/// window.
struct MaskForm {
  bool causal = false;
  std::optional<int64_t> window;
};

/// The largest number that hides a score to which it is added: in any type, the score is 0 after a
/// softmax.
inline constexpr double kHiddenAtMost = -1e9;

/// The forms of known masks. Layers share masks, so each is looked at once.
class MaskForms {
public:
  explicit MaskForms(const ConstantMap &constants) : constants(constants) {}

  /// The form of a mask [..., queries, keys], of truth values that say which keys a query sees
  /// (or does not see, with `hides`) or of numbers that are added to scores; nothing if it has
  /// another form or is not known.
  std::optional<MaskForm> find(mlir::Value mask, int64_t queries, int64_t keys, bool hides = false);

private:
  const ConstantMap &constants;
  /// By whether the mask says what is hidden.
  std::array<llvm::DenseMap<std::tuple<mlir::Value, int64_t, int64_t>, std::optional<MaskForm>>, 2>
      forms;
};

/// A mask of documents that follow each other in a sample: a query sees the keys of its document up
/// to its own.
struct PackedForm {
  mlir::Value segments; ///< integers [samples, positions], which differ between documents
  std::optional<int64_t> window;
};

/// The form of a mask of truth values that say which keys a query sees; nothing if it has another
/// form.
std::optional<PackedForm> packedFormOf(mlir::Value mask, const ConstantMap &constants);

/// The arguments of the op that gives the value, where it has the name; a null op otherwise.
inline AtenArguments producerOf(mlir::Value value, llvm::StringRef name) {
  mlir::Operation *op = value ? value.getDefiningOp() : nullptr;
  return AtenArguments(op && op->getName().getStringRef() == name ? op : nullptr);
}

/// An ATen op before the place of the builder, with operands that are called as its schema does.
inline mlir::Value createAten(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                              mlir::ValueRange operands, llvm::ArrayRef<llvm::StringRef> names,
                              mlir::Type type, llvm::ArrayRef<mlir::NamedAttribute> attributes) {
  mlir::OperationState state(loc, name);
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttributes(attributes);
  state.addAttribute("operands", builder.getStrArrayAttr(names));
  return builder.create(state)->getResult(0);
}

/// The number that a known value is at all places; nothing for a null value.
std::optional<double> knownNumber(mlir::Value value, const ConstantMap &constants);

/// The number that a value is multiplied by in x * number or x / number, and x.
std::optional<std::pair<mlir::Value, double>> factorOf(mlir::Value value,
                                                       const ConstantMap &constants);

/// Makes "aten.softmax" and "aten.gelu" of their parts, in the forms of models and of JAX.
void recognizeActivations(mlir::Block &block, const ConstantMap &constants, Conversion &conversion);

/// A softmax over the scores of keys and one more of each head, a sink, whose share is left out.
struct SinkParts {
  mlir::Value scores;  ///< [..., heads, queries, keys]
  mlir::Value sinks;   ///< [heads]
  mlir::Value weights; ///< the shares of the keys
};

/// The parts of a softmax with sinks; nothing if it has none.
std::optional<SinkParts> sinksOf(AtenArguments softmax);

/// Makes "aten.scaled_dot_product_attention" of two products with a softmax between, whose scores
/// are scaled, capped or masked, where dtc.attention has the mask.
void recognizeAttention(mlir::Block &block, const ConstantMap &constants, Conversion &conversion);

/// Makes attributes of the masks of attention that say no more than causal, window, or nothing.
void recognizeMasks(mlir::Block &block, const ConstantMap &constants, Conversion &conversion);

/// Makes "torch.rotary" of x cos + rotate_half(x) sin, where cosine and sine are those of positions
/// times frequencies. Positions are known, or integers [samples, positions] of the batch.
void recognizeRotary(mlir::Block &block, const ConstantMap &constants, Conversion &conversion);

/// Makes "torch.top_k", which says what the largest elements of rows are, of aten.topk, and ops of
/// whole rows of what is computed of the largest elements.
void recognizeTopK(mlir::Block &block, Conversion &conversion);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_RECOGNIZE_H
