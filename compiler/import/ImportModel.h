//===- ImportModel.h - From a configuration to model IR -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_IMPORTMODEL_H
#define DTC_COMPILER_IMPORT_IMPORTMODEL_H

#include "compiler/import/Lora.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// The most tokens, or positions of images, that a batch may have. Keeps all tensors within the
/// sizes that the dtc dialect allows.
inline constexpr int64_t kMaxTokens = int64_t{1} << 28;

/// How an imported model computes attention.
enum class AttentionKind {
  Fused,      ///< one op, without the scores in memory (Dao et al., "FlashAttention")
  Decomposed, ///< a product with the keys, a causal softmax, dropout, a product with the values
};

/// Over which tokens the loss that balances experts compares how often they are chosen.
enum class BalanceLoss {
  None,
  Batch,   ///< all of the batch, as transformers does
  Sequence ///< those of each sequence, and the mean of that
};

/// Options that the configuration does not have.
struct ImportOptions {
  int64_t batch = 1;
  /// Tokens in a sequence. 0: not given, as the configurations of models that read images say how
  /// long a sequence is.
  int64_t seq = 0;
  /// Compute in f64 instead of f32.
  bool doublePrecision = false;
  AttentionKind attention = AttentionKind::Fused;
  /// Whether the model drops out as its configuration says; otherwise nowhere.
  bool dropout = true;
  /// The part of the loss that asks for all classes alike (Szegedy et al. 2016, section 7).
  double labelSmoothing = 0;
  /// How much of the mean squared log of the softmax's denominator is added to the loss (Chowdhery
  /// et al., "PaLM", arXiv:2204.02311, section 5).
  double zLoss = 0;
  /// The label of tokens, or of images, that do not count; the loss is the mean over the others.
  /// Packed models always have one, -100 if none is given: the last token of a document has no next
  /// one.
  std::optional<int64_t> ignoreIndex;
  /// Whether documents share a sequence, and padding may fill it up: the batch also has "segments",
  /// to which attention keeps, and "positions" of tokens in their documents.
  bool packed = false;
  /// The rows of an expert for each sequence: this times those of an even spread, rounded up. An
  /// expert drops the tokens of a sequence that find no row left. Not given: none is dropped, as an
  /// expert has a row for each token.
  std::optional<double> capacityFactor;
  /// Not a token may be dropped: a step in which an expert drops one changes no parameter, and the
  /// run ends.
  bool mustFit = false;
  /// Whether the tokens of each expert, those that it drops and the balance loss are metrics.
  bool expertMetrics = false;
  /// Not given: as the configuration says.
  std::optional<BalanceLoss> balanceLoss;
  int64_t expertCapacity(int64_t experts, int64_t selected) const;
  /// Adapters beside linear layers, which alone train then.
  std::optional<LoraOptions> lora;
};

/// The messages of an import to its user, one line each.
struct ImportLog {
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  /// The choices of the import where the model states something in another way than the IR does.
  std::vector<std::string> remarks;
};

/// Builds the module of the model that `config`, the text of a Hugging Face config.json, describes:
/// one function @loss, from the parameters, "tokens" or "images", and "labels" (and what
/// ImportOptions::packed adds) to the mean cross entropy, as one device would compute it (see
/// docs/model-ir.md). Messages call the text `fileName`. Returns null if the log has an error.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, llvm::StringRef config,
                                              llvm::StringRef fileName,
                                              const ImportOptions &options, ImportLog &log);

/// The values of `model_type` that importModel knows.
std::vector<llvm::StringRef> getKnownModelTypes();

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_IMPORTMODEL_H
