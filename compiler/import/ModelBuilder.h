//===- ModelBuilder.h - Parameters and layers of imported models ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The importers of all model types share this: a function @loss that gets an argument for each
// parameter that is asked for, and the layers that transformers are made of. Shapes in comments: B
// batch, S sequence, D embedding, H heads, G key-value heads, E size of a head, F size of the MLP,
// V vocabulary or classes, C channels of images.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_MODELBUILDER_H
#define DTC_COMPILER_IMPORT_MODELBUILDER_H

#include "compiler/import/ConfigReader.h"
#include "compiler/import/ExpertRows.h"
#include "compiler/import/ImportModel.h"
#include "compiler/import/ModelOps.h"
#include "plan/FileTensors.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// Rotary positions: theta, or frequencies of as many pairs as are rotated; the rotated elements
/// are multiplied by the factor.
struct Rotary {
  double theta = 10000;
  llvm::SmallVector<double> frequencies;
  double factor = 1;
};

/// How attention changes the products of queries and keys, and which keys a query sees.
struct AttentionScores {
  double scale = 1;
  double softcap = 0; ///< 0: none
  std::optional<int64_t> window;
  bool causal = true;
};

/// The adapter of a linear layer from `in` to `out` dimensions; see Lora.h. Null values where the
/// layer has none.
struct Adapter {
  mlir::Value down; ///< [..., rank]: the input times lora_A, scaled
  mlir::Value up;   ///< [out..., rank]: lora_B
};

/// The function of a router's logits that gives the scores of experts.
enum class RouterScores {
  Softmax,
  Sigmoid,
  SoftmaxOfSelected ///< of the logits of a token's experts alone, which are those with the largest
};

/// The score by which groups of experts are compared.
enum class GroupScore {
  Best,   ///< the score of the group's best expert
  TwoBest ///< the sum of the scores of its two best ones
};

/// How a router chooses experts.
struct RoutingKind {
  int64_t selected = 1;    ///< experts of a token
  bool normalizes = false; ///< the weights of a token's experts add up to 1
  int64_t capacity = 1;    ///< C, the tokens of a sequence that an expert takes at most
  RouterScores scores = RouterScores::Softmax;
  /// A token's experts are of the best `selectedGroups` of `groups` groups of equal size
  /// (DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434, section 2.2.2).
  int64_t groups = 1, selectedGroups = 1;
  GroupScore groupScore = GroupScore::Best;
  double factor = 1;  ///< of the weights
  double epsilon = 0; ///< added to the sum that weights are divided by
};

/// How the tokens of layers are spread over experts, [X] or of each sequence [B, X].
struct ExpertLoads {
  mlir::Value counts;    ///< of tokens that choose an expert
  mlir::Value shares;    ///< sums of the scores of tokens, which add up to 1 for each token
  double tokens = 0;     ///< that were routed, in all layers
  int64_t sequences = 1; ///< B, or 1 where all are added up
};

class ModelBuilder : public ModelOps {
public:
  /// Begins a function. The names of parameters begin with `parameterPrefix` ("transformer");
  /// `outputLayer` is the name of the output projection.
  ModelBuilder(mlir::MLIRContext &context, const ImportOptions &options,
               llvm::StringRef parameterPrefix, llvm::StringRef outputLayer);

  /// Adds the inputs "tokens" and "labels", i32 [B, S], and where the options pack documents
  /// "segments" and "positions".
  void addTextInputs();

  /// Adds the inputs "images", [B, C, height, width], and "labels", i32 [B]; returns the images.
  mlir::Value addImageInputs(int64_t channels, int64_t height, int64_t width);

  /// Everything built from here on belongs to the layer `name` ("h.3.attn"): ops get it as their
  /// location and parameters as the middle of their names.
  void beginLayer(const llvm::Twine &name);

  /// The same for a layer whose parameters are named without the model's prefix ("lm_head").
  void beginTopLevelLayer(const llvm::Twine &name);

  // Initializers of parameters.
  mlir::Attribute zeros();
  mlir::Attribute ones();
  mlir::Attribute normal(double stddev);
  mlir::Attribute uniform(double bound);

  /// A new parameter of the current layer. The parameter has a dimension for each list in `shape`,
  /// the product of the list's sizes; the value returned has a dimension for each element, in
  /// order. So {{embed}, {heads, headSize}} is a parameter [D, H*E], viewed as [D, H, E].
  mlir::Value addParameter(const llvm::Twine &name, const std::vector<std::vector<Dim>> &shape,
                           mlir::Attribute init);

  /// Parameters that are one tensor `name` in weights files (plan/FileTensors.h), its rows in the
  /// order of `parts`: each is [part..., in...], where `in` may be empty.
  std::vector<mlir::Value> addRows(const llvm::Twine &name, llvm::ArrayRef<std::vector<Dim>> parts,
                                   const std::vector<Dim> &in, mlir::Attribute init);

  /// A parameter [size] of the current layer that no gradient reaches and training does not change.
  mlir::Value addFrozenParameter(const llvm::Twine &name, Dim size, mlir::Attribute init);

  /// Ends the function: `loss` is its result. The builder is of no use afterwards. Returns null,
  /// and reports it, if the options ask for adapters of layers that the model does not have.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value loss, ConfigReader &reader);

  //===--------------------------------------------------------------------===//
  // Layers (ModelLayers.cpp)
  //===--------------------------------------------------------------------===//

  /// The adapter of the current layer's linear layer `name` ("q_proj"; "" where that is the current
  /// layer itself), if the options ask for one: of its input `x` [B, S, in...] or [B, in...], and
  /// its output of the same first dimensions. To be called once for each linear layer, after its
  /// own parameters.
  Adapter addAdapter(llvm::StringRef name, mlir::Value x, const std::vector<Dim> &in,
                     const std::vector<Dim> &out);

  /// The same for a layer with several outputs; they have one lora_A, and each its rows of lora_B.
  std::vector<Adapter> addAdapters(llvm::StringRef name, mlir::Value x, const std::vector<Dim> &in,
                                   llvm::ArrayRef<std::vector<Dim>> parts);

  /// The output `y` of a linear layer, with what its adapter adds to it. With an `index`, `y` is
  /// the part of the output at that index of its dimension `dim`.
  mlir::Value adapt(mlir::Value y, const Adapter &adapter,
                    std::optional<int64_t> index = std::nullopt, int64_t dim = 0);

  /// The patches [B, S, C, height, width] of images [B, C, ...], row by row.
  mlir::Value cutPatches(mlir::Value images, int64_t height, int64_t width);

  /// `row` [1, 1, D] and then x [B, S, D]: [B, 1 + S, D].
  mlir::Value prependRow(mlir::Value row, mlir::Value x);

  /// Rows of `table` [V, D] by token: [B, S, D].
  mlir::Value embed(mlir::Value table);

  /// `x` [B, S, D] plus the rows of `table` [positions, D] at the positions of the tokens; row
  /// `first` is that of position 0.
  mlir::Value addPositions(mlir::Value x, mlir::Value table, int64_t first);

  /// Layer normalization over the last dimension, with parameters weight and bias.
  mlir::Value layerNorm(mlir::Value x, double eps);

  /// Root mean square normalization over the last dimension, whose logical axis is `axis`, with the
  /// parameter `name`; with `plusOne`, rows are multiplied by 1 plus the parameter.
  mlir::Value rmsNorm(mlir::Value x, double eps, bool plusOne = false,
                      llvm::StringRef name = "weight", llvm::StringRef axis = "embed");

  /// Rotary positions of the heads x [B, S, H, E].
  mlir::Value rotary(mlir::Value x, const Rotary &kind);

  /// Attention of q [B, S, H, E] over k [B, S, G, E] and v [B, S, G, F]: [B, S, H, F], in the form
  /// that the options ask for, and within the segments if there are any. What the softmax gives
  /// drops out with probability `dropout`; both forms draw the same masks. Decomposed attention has
  /// no window. The softmax of each query of a head has one score more, of `sinks` [H], if there
  /// are some; decomposed attention has none.
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v, const AttentionScores &scores,
                        double dropout = 0, mlir::Value sinks = {});

  /// `x` whose elements drop out with probability `rate`.
  mlir::Value dropout(mlir::Value x, double rate);

  //===--------------------------------------------------------------------===//
  // Experts (ExpertLayers.cpp)
  //===--------------------------------------------------------------------===//

  /// Routes tokens by the scores of logits [B, S, X]. Experts with the largest sums of score and
  /// `bias` [X], if there is one, are chosen (DeepSeek-AI, "DeepSeek-V3", arXiv:2412.19437,
  /// section 2.1.2). The first tokens of a sequence that choose an expert take its rows; those that
  /// find none left are dropped by that expert.
  Routing route(mlir::Value logits, const RoutingKind &kind, mlir::Value bias = {});

  /// The tokens x [B, S, D] of each expert: [X, B, C, D], zeros in rows without a token.
  mlir::Value dispatch(mlir::Value x, const Routing &routing);

  /// A product of each expert's rows [X, B, C, ...] and its part of a weight [X, ..., ...].
  mlir::Value expertProduct(llvm::StringRef equation, mlir::Value x, mlir::Value weight,
                            const Routing &routing);

  /// The output `y` [X, B, C, out] of the linear layers `layers` of a layer's experts ("experts"
  /// and "up_proj"), with what their adapters add to it, if the options ask for them. Each expert
  /// has an adapter of its own; they are stacks, as the weights: lora_A [X, rank, in] and lora_B
  /// [X, out, rank]. `x` [X, B, C, in] are the rows that the layers take. To be called as
  /// addAdapter() is.
  mlir::Value adaptExperts(mlir::Value y, const FileStack &layers, mlir::Value x, Dim experts,
                           Dim in, Dim out, const Routing &routing);

  /// Whether the options ask for an adapter of `name`, one tensor of all experts of the current
  /// layer.
  bool adaptsTensor(llvm::StringRef name) {
    return loraTargets.matchTensor(layerPrefix + name.str(),
                                   options.lora && options.lora->dropout > 0);
  }

  /// The adapter of one tensor of all experts, as PEFT's files have it: lora_A [X * rank, in] and
  /// lora_B [out, rank * X] of `module`. `x` [X, B, C, in] are the rows that the tensor multiplies.
  /// Its `down` is [X, B, C, rank], and its `up` [out, rank, X].
  Adapter addTensorAdapter(llvm::StringRef module, mlir::Value x, Dim experts, Dim in,
                           const std::vector<Dim> &out, const Routing &routing);

  /// `y` [X, B, C, F] and what such an adapter adds to it: `down` times `up` [F, rank, X].
  mlir::Value addTensorAdapterTo(mlir::Value y, mlir::Value down, mlir::Value up,
                                 const Routing &routing);

  /// Rows [X, B, C, F] times their weights.
  mlir::Value weightRows(mlir::Value h, const Routing &routing);

  /// Rows [X, B, C, F] plus the bias [X, F] of each expert, also where a row has no token.
  mlir::Value addExpertBias(mlir::Value rows, mlir::Value bias);

  /// Rows [X, B, C, D] plus the weight of each times the bias [X, D] of its expert.
  mlir::Value addWeightedBias(mlir::Value rows, mlir::Value bias, const Routing &routing);

  /// For each token of x [B, S, D] the sum of its rows of [X, B, C, D].
  mlir::Value combine(mlir::Value rows, const Routing &routing, mlir::Value x);

  /// Loads of zero for `experts` experts, to which addLoads() adds those of layers: for all tokens,
  /// or for each sequence by itself.
  ExpertLoads noLoads(int64_t experts, bool ofSequences);

  /// The loads of a layer plus `others`, those of the layers before it.
  ExpertLoads addLoads(const ExpertLoads &others, const Routing &routing);

  /// The loss that is smallest where the tokens of the layers are spread evenly over the experts
  /// (Fedus et al., "Switch Transformers", arXiv:2101.03961, section 2.2): X times the sum over
  /// experts of the share of tokens that choose it and its mean score. Where the loads are of each
  /// sequence it is the mean over them (as DeepSeek-AI, "DeepSeek-V3", arXiv:2412.19437, section
  /// 2.1.2), a sum over samples.
  mlir::Value balanceLoss(const ExpertLoads &loads);

  /// [X]: how many tokens choose each expert, and how many of them find no row left in it.
  mlir::Value tokensOfExperts(const Routing &routing);
  mlir::Value droppedTokens(const Routing &routing);

  /// The model returns the value as a metric of the current layer, or where `ofModel` as one of the
  /// whole model. `flag` is an attribute that the result has as well, or empty.
  void addMetric(llvm::StringRef name, mlir::Value value, llvm::StringRef flag = {},
                 bool ofModel = false);

  /// The mean of the cross entropy between `logits` [B, S, V] or [B, V] and the labels, with what
  /// the options add to it, over all labels or over those that count.
  mlir::Value meanLoss(mlir::Value logits);

private:
  /// The input of an adapter times its lora_A, scaled; null where the layer has no adapter. What
  /// `addUp` makes is named as the adapter's.
  mlir::Value adapterInput(llvm::StringRef name, mlir::Value x, const std::vector<Dim> &in,
                           llvm::function_ref<void(Dim rank)> addUp);
  /// Times alpha / rank.
  mlir::Value scaleAdapter(mlir::Value down);
  mlir::Value decomposedAttention(mlir::Value q, mlir::Value k, mlir::Value v,
                                  const AttentionScores &scores, double dropout);
  /// i1 [B, S, X]: the experts that a token may choose, by the scores of their groups.
  mlir::Value expertsOfBestGroups(mlir::Value ranks, const RoutingKind &kind);
  mlir::Value addInput(llvm::StringRef name, mlir::RankedTensorType type,
                       llvm::ArrayRef<llvm::StringRef> axes);
  mlir::Value addLabels(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<llvm::StringRef> axes);
  mlir::Value addArgument(unsigned index, mlir::Type type, llvm::StringRef kind,
                          llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> axes,
                          mlir::Attribute init);
  /// The scores [B, ..., S, S] where query and key are in one segment, and so little elsewhere that
  /// nothing is left of it after a softmax.
  mlir::Value maskScores(mlir::Value scores);
  static int64_t numElements(const std::vector<Dim> &dims);
  mlir::Value randomKey();

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Block *block;
  std::string modelPrefix;
  std::string layerPrefix;
  unsigned numParameters = 0;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttrs;
  llvm::SmallVector<mlir::Value> metrics;
  llvm::SmallVector<mlir::DictionaryAttr> metricAttrs;
  mlir::Value tokens, labels, segments, positions;
  /// The argument that random ops share, once there is one, and the number of such ops.
  mlir::Value key;
  int64_t numRandomOps = 0;
  LoraTargets loraTargets;
  const ImportOptions options;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_MODELBUILDER_H
