//===- TransformerConfig.h - Configuration of a transformer -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TRANSFORMERCONFIG_H
#define DTC_COMPILER_IMPORT_TRANSFORMERCONFIG_H

#include "compiler/import/ModelBuilder.h"

#include <optional>
#include <vector>

namespace dtc {

/// How one layer differs from others of its model.
struct TransformerLayer {
  bool isSliding = false;        ///< of the kind "sliding_attention"
  std::optional<int64_t> window; ///< how many keys a query sees; none: all before it
  std::optional<Rotary> rotary;  ///< none: attention knows no positions
  bool hasExperts = false;       ///< a mixture of experts in place of the MLP
};

/// How gate and up of an expert are put together, and how its weights lie.
enum class ExpertForm {
  Gated, ///< activation(gate) * up; each expert has tensors of its own in weights files
  /// (up + 1) * gate * sigmoid(alpha * gate), with gate and up kept within a limit. Layers have
  /// biases and weights [experts, in, out], in which gate and up alternate.
  Clamped
};

/// The experts of layers that have them.
struct ExpertsConfig {
  Dim number{0, "experts"};
  RoutingKind routing; ///< its capacity follows from the options
  ExpertForm form = ExpertForm::Gated;
  double clampAlpha = 1, clampLimit = 0; ///< of the form Clamped
  /// The router is a linear layer of its own, beside which an adapter may stand.
  bool hasLinearRouter = true;
  bool hasBias = false;    ///< the router adds a frozen bias to the scores before it selects
  Dim mlp{0, "mlp"};       ///< the inner size of an expert
  Dim sharedMlp{0, "mlp"}; ///< of the expert that all tokens go to; 0: none
  BalanceLoss balanceLoss = BalanceLoss::None;
  double balanceFactor = 0;       ///< the balance loss times this is added to the loss
  bool balancesEachLayer = false; ///< a loss for each layer, not one for all of them together
};

/// Attention whose keys and values are products of a narrow value, the latent, of each token
/// (DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434, section 2.1). Each head has `plainSize` elements
/// that know no positions, and `rotatedSize` that are rotated; the latter of the key are the same
/// for all heads.
struct LatentAttention {
  int64_t keySize = 0;                ///< of the latent of keys and values
  std::optional<int64_t> queryLatent; ///< the size of the latent of queries; none: they have none
  int64_t plainSize = 0, rotatedSize = 0;
  bool rotatesPairs = false; ///< elements 2i and 2i + 1 are rotated together, else i of each half
  bool hasBias = false;      ///< of the products that give the latents
};

/// Images, and the patches that they are cut into.
struct ImageConfig {
  int64_t channels = 0, height = 0, width = 0;
  int64_t patchHeight = 1, patchWidth = 1;

  int64_t patches() const { return (height / patchHeight) * (width / patchWidth); }
};

struct Family;

/// A transformer in numbers. The row of its family has everything that does not depend on numbers.
struct TransformerConfig {
  const Family *family = nullptr;
  Dim vocab{0, "vocab"};
  Dim embed{0, "embed"};
  Dim heads{0, "heads"};
  Dim kvHeads{0, "heads"};               ///< "kv_heads" where a family has them
  Dim headSize{0};                       ///< of queries and keys
  Dim valueSize{0};                      ///< of the values of a head
  std::optional<LatentAttention> latent; ///< of families that have it
  Dim mlp{0, "mlp"};
  Dim positions{0};
  int64_t firstPosition = 0; ///< the row of the table of positions for the first token
  Dim tokenTypes{0};
  std::optional<ExpertsConfig> experts; ///< of families that have them
  std::optional<ImageConfig> images;    ///< of families that read images
  Dim classes{0};                       ///< of families that classify samples
  Activation activation = Activation::Silu;
  Activation headActivation = Activation::Silu; ///< of the linear layer before the head
  std::string headBias; ///< the layer whose `bias` is added to the logits; "": none
  double eps = 0;
  double initializerRange = 0.02;
  double residualDropout = 0, embeddingDropout = 0, attentionDropout = 0;
  double attentionScale = 1;
  bool scaleByLayer = false;                     ///< the scale of layer i is divided by i + 1
  double attentionSoftcap = 0, logitSoftcap = 0; ///< 0: none
  bool hasSinks = false;                         ///< attention has a score more for each query
  double attentionClip = 0; ///< what queries, keys and values are kept within; 0: nothing
  double embeddingScale = 1;
  bool queryBias = false; ///< of queries, keys and values
  bool outputBias = false;
  bool mlpBias = false;
  bool tied = false;
  bool parallelResidual = false; ///< attention and MLP read the same, and both are added to it
  std::vector<TransformerLayer> layers;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_TRANSFORMERCONFIG_H
