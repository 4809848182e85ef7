//===- Lora.h - Low-rank adapters of imported models ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// LoRA (Hu et al. 2021, arXiv:2106.09685, section 4.1): a linear layer keeps its weight, and
// training changes a product of two small matrices that is added to it. Names, shapes, targets and
// initial values are those of Hugging Face's PEFT.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_LORA_H
#define DTC_COMPILER_IMPORT_LORA_H

#include "support/Error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc {

/// The linear layers that have adapters, and the form of the adapters.
struct LoraOptions {
  int64_t rank = 1;
  /// An adapter is multiplied by alpha / rank.
  double alpha = 1;
  /// The rate at which elements of an adapter's input drop out.
  double dropout = 0;
  /// Linear layers, by the last parts of their names ("q_proj", "attn.c_proj"), or kAllLinear.
  std::vector<std::string> targets;
};

/// The target that stands for every linear layer but the output projection.
inline constexpr llvm::StringLiteral kAllLinear = "all-linear";

/// Reads "rank=8,alpha=16,target=q_proj,v_proj", to which "dropout=0.1" may be added.
Expected<LoraOptions> parseLora(llvm::StringRef text);

/// Finds the layers that targets name.
class LoraTargets {
public:
  LoraTargets(std::vector<std::string> names, llvm::StringRef outputLayer)
      : names(std::move(names)), outputLayer(outputLayer.str()) {}

  /// Whether a target names the linear layer `module` ("transformer.h.0.attn.c_attn"). All linear
  /// layers of the model are to be asked for.
  bool match(llvm::StringRef module) { return matchAll(module.str()); }

  /// The same for linear layers of the same name in each expert of a layer
  /// ("model.layers.0.mlp.experts.0.up_proj" and so on), which have adapters together.
  bool matchAll(llvm::ArrayRef<std::string> modules);

  /// The same for a tensor of all experts of a layer ("model.layers.0.mlp.experts.down_proj"),
  /// which PEFT adapts by `target_parameters`: it is no linear layer, and kAllLinear does not stand
  /// for it. PEFT has no dropout there, so that `drops` is an error of a target that names it.
  bool matchTensor(llvm::StringRef tensor, bool drops);

  /// The targets, with the layers that kAllLinear stands for instead of it.
  std::vector<std::string> resolved() const;

  /// An error for each target that named no layer so far, one without adapters, or layers of some
  /// experts alone.
  std::vector<Error> errors() const;

private:
  std::vector<std::string> names;
  std::string outputLayer;       ///< the output projection, which kAllLinear leaves out
  std::vector<std::string> used; ///< names that matched
  /// The first problem that was found with each name.
  std::map<std::string, std::string> problems;
  std::vector<std::string> known; ///< the last parts of the layers' names
  std::string example;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_LORA_H
