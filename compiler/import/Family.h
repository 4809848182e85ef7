//===- Family.h - Differences between families of models ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A family is the models of one `model_type` of transformers: decoders and encoders of text, and
// encoders of images. Every layer has attention and an MLP. A row of the table in Families.cpp
// distinguishes it from other families; a function of the row reads the fields of its
// configurations that are not common to all. docs/models.md says how to add one.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_FAMILY_H
#define DTC_COMPILER_IMPORT_FAMILY_H

#include "compiler/import/ConfigReader.h"
#include "compiler/import/TransformerConfig.h"

#include "llvm/ADT/ArrayRef.h"

namespace dtc {

struct Family;

enum class NormKind {
  Layer,     ///< layer normalization with weight and bias
  Rms,       ///< root mean square normalization with a weight
  RmsPlusOne ///< the same, whose rows are multiplied by 1 + weight
};

/// The input of the first layer.
enum class InputKind {
  Tokens, ///< the sequence is their embeddings
  Images  ///< the sequence is a class token and the patches, each of them projected
};

/// The prediction of the model.
enum class HeadKind {
  Tokens,    ///< a token at each position
  ClassToken ///< a class for each sample, from the position of the class token
};

/// Whether queries and keys are normalized before they are rotated.
enum class QueryNorm {
  None,
  Heads, ///< each head by itself
  Width  ///< all heads together
};

/// How the weights of queries, keys and values lie.
enum class QueryForm {
  Separate,
  Thirds,     ///< one weight: all queries, all keys, all values; as many heads of each
  HeadThirds, ///< one weight: of each head the query, the key and the value
  Rows,       ///< one weight: the rows of queries, of keys and of values; heads may be grouped
  Latent      ///< of narrow values of each token: see LatentAttention
};

enum class MlpForm {
  Plain,     ///< down(activation(up(x)))
  Gated,     ///< down(activation(gate(x)) * up(x))
  GatedFused ///< the same, with one weight: the rows of gate, then those of up
};

/// The operand of norms after attention and MLP.
enum class NormAfter {
  Part, ///< what is added to the residual stream
  Sum   ///< the residual stream, to which it has been added
};

/// The names of parameters, as transformers' checkpoints have them. A name may have several parts
/// ("output.dense").
struct ParameterNames {
  llvm::StringRef model = "model"; ///< the prefix of all names but the head's
  llvm::StringRef layers = "layers";
  llvm::StringRef embedding = "embed_tokens"; ///< or the projection of patches
  llvm::StringRef classToken = "";            ///< of images; a parameter, not a layer
  /// The table of learned positions, if there is one; of images a parameter, not a layer.
  llvm::StringRef positions = "";
  llvm::StringRef tokenTypes = ""; ///< the table of types of tokens, if there is one
  llvm::StringRef embeddingNorm = "";
  llvm::StringRef attention = "self_attn";
  llvm::StringRef queries = "q_proj"; ///< or the one weight of queries, keys and values
  llvm::StringRef keys = "k_proj";
  llvm::StringRef values = "v_proj";
  llvm::StringRef output = "o_proj";
  /// The names of latent attention: the layers that give the latents, their norms, and the layers
  /// that read them. Queries without a latent are `queries`.
  llvm::StringRef queryDown = "q_a_proj";
  llvm::StringRef queryNorm = "q_a_layernorm";
  llvm::StringRef queryUp = "q_b_proj";
  llvm::StringRef keyValueDown = "kv_a_proj_with_mqa";
  llvm::StringRef keyValueNorm = "kv_a_layernorm";
  llvm::StringRef keyValueUp = "kv_b_proj";
  llvm::StringRef mlp = "mlp";        ///< "": its layers are named as parts of the whole layer
  llvm::StringRef gate = "gate_proj"; ///< or the one weight of gate and up
  llvm::StringRef up = "up_proj";
  llvm::StringRef down = "down_proj";
  /// The names in layers with experts: what has the place of the MLP, the router, the experts, and
  /// the expert that all tokens go to with the gate that its output is multiplied by, "" if there
  /// is none.
  llvm::StringRef mixture = "mlp";
  llvm::StringRef router = "gate";
  llvm::StringRef experts = "experts";
  llvm::StringRef expertGate = "gate_proj";
  llvm::StringRef expertUp = "up_proj";
  llvm::StringRef expertDown = "down_proj";
  llvm::StringRef sharedExpert = "shared_expert";
  llvm::StringRef sharedGate = "shared_expert_gate";
  /// Norms before and after attention and MLP; "" where there is none.
  llvm::StringRef beforeAttention = "input_layernorm";
  llvm::StringRef afterAttention = "";
  llvm::StringRef beforeMlp = "post_attention_layernorm";
  llvm::StringRef afterMlp = "";
  llvm::StringRef finalNorm = "norm";
  /// A linear layer, the activation and a norm before the head, if there are such.
  llvm::StringRef headTransform = "";
  llvm::StringRef headNorm = "";
  llvm::StringRef head = "lm_head";
  /// The layer whose `bias` is added to the logits, if there is one. transformers 5 adds that of
  /// the head instead, unless the two are tied as the embeddings are; before, they always were.
  llvm::StringRef headBias = "";
};

/// The names of fields, and the defaults of transformers where they are absent.
struct Fields {
  llvm::StringRef vocab = "vocab_size"; ///< "": no tokens
  llvm::StringRef hiddenSize = "hidden_size";
  llvm::StringRef heads = "num_attention_heads";
  llvm::StringRef kvHeads = "num_key_value_heads"; ///< "": as many as heads
  llvm::StringRef headSize = "head_dim";           ///< "": hidden size / heads
  llvm::StringRef mlpSize = "intermediate_size";
  llvm::StringRef positions = "max_position_embeddings"; ///< "": follows from others
  llvm::StringRef layers = "num_hidden_layers";
  llvm::StringRef activation = "hidden_act";
  llvm::StringRef eps = "rms_norm_eps";
  llvm::StringRef ropeTheta = "rope_theta"; ///< "": no rotary positions
  llvm::StringRef rotaryPart = "";          ///< "": all of each head is rotated
  llvm::StringRef tokenTypes = "";          ///< how many types of tokens there are; "": no types
  llvm::StringRef localTheta = "";          ///< of layers with windows; "": as all others
  llvm::StringRef experts = "num_experts";  ///< of families with experts
  llvm::StringRef expertSize = "moe_intermediate_size";
};
struct Defaults {
  int64_t vocab = 32000, hiddenSize = 4096, heads = 32;
  int64_t kvHeads = 0;  ///< 0: as many as heads
  int64_t headSize = 0; ///< 0: hidden size / heads
  int64_t mlpSize = 0;  ///< 0: 4 * hidden size
  int64_t positions = 2048, layers = 32;
  llvm::StringRef activation = "silu";
  double eps = 1e-6, ropeTheta = 10000, rotaryPart = 1;
  int64_t originalPositions = 0; ///< 'original_max_position_embeddings'; 0: as the positions
  llvm::StringRef rope = "";     ///< what scales rotary positions, JSON; "": nothing does
  int64_t tokenTypes = 2;
  bool isTied = false;
  int64_t experts = 0; ///< 0: the family has none
  int64_t selectedExperts = 0, expertSize = 0;
  double balanceFactor = 0.001;
};

struct Family {
  llvm::StringRef modelType;
  /// The classes that the row describes.
  llvm::SmallVector<llvm::StringRef, 2> architectures;
  ParameterNames names = {};
  Fields fields = {};
  Defaults defaults = {};
  NormKind norm = NormKind::Rms;
  QueryNorm queryNorm = QueryNorm::None;
  QueryForm queries = QueryForm::Separate;
  MlpForm mlp = MlpForm::Gated;
  NormAfter normAfter = NormAfter::Part;
  InputKind input = InputKind::Tokens;
  HeadKind head = HeadKind::Tokens;
  /// An encoder: positions attend to those after them too. With a head of tokens, the loss is that
  /// of a masked language model, the mean over the tokens whose labels count.
  bool isEncoder = false;
  /// Weights are [in, out] instead of [out, in].
  bool isTransposed = false;
  /// The weights that add to the residual stream start smaller, by 1 / sqrt(2 * layers).
  bool scalesResidualInit = false;
  /// Types of rotary positions, as they are written and as they are read; empty: all types, by
  /// their names.
  llvm::SmallVector<std::pair<llvm::StringRef, llvm::StringRef>, 4> ropeTypes = {};
  /// Other names of fields: {field, other name}.
  llvm::SmallVector<std::pair<llvm::StringRef, llvm::StringRef>, 4> aliases = {};
  /// Reads the fields that not all families have.
  void (*readMore)(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config);
};

/// All families, in the order of their names.
llvm::ArrayRef<Family> allFamilies();

/// Reads all fields of a configuration of the family; the reader has an error where one is wrong or
/// asks for what the family's models are not built with. Sets the sequence length of the options
/// where the configuration says it.
TransformerConfig readTransformer(ConfigReader &reader, const Family &family,
                                  ImportOptions &options);

/// Builds the model; null, and reported, where the options ask for something that it lacks.
mlir::OwningOpRef<mlir::ModuleOp> buildTransformer(mlir::MLIRContext &context, ConfigReader &reader,
                                                   const Family &family,
                                                   const TransformerConfig &config,
                                                   const ImportOptions &options);

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_FAMILY_H
