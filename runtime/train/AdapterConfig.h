//===- AdapterConfig.h - What PEFT says of adapters -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_ADAPTERCONFIG_H
#define DTC_RUNTIME_TRAIN_ADAPTERCONFIG_H

#include "plan/PlanFileTensors.h"
#include "support/Error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtc::runtime {

/// The files of a folder of adapters, as PEFT names them.
inline constexpr const char *kAdapterTensorsName = "adapter_model.safetensors";
inline constexpr const char *kAdapterConfigName = "adapter_config.json";

/// The adapter_config.json beside adapters, as Hugging Face's PEFT writes it: the factor of each
/// adapter.
class AdapterConfig {
public:
  /// Reads the one that lies in a folder, or beside a file that is named as PEFT's,
  /// adapter_model.safetensors; nullopt if there is none. The error names the file and the field:
  /// it may be no configuration, or one that a model of dtc cannot compute, such as DoRA.
  static Expected<std::optional<AdapterConfig>> read(const std::string &weightsPath);

  /// An error where it adapts a tensor (`target_parameters`) that is none of the model's `tensors`,
  /// by the names of weights files: such adapters are of the experts of another form.
  MaybeError checkTensors(const std::map<std::string, FileTensor> &tensors) const;

  /// Of an adapter's tensor, "base_model.model.layers.0.q_proj.lora_B.weight".
  int64_t rankOf(std::string_view tensor) const;
  /// The factor by which PEFT multiplies the adapter.
  double scaleOf(std::string_view tensor) const;

  /// The field that the rank or the scale of an adapter comes from: "r", "rank_pattern".
  std::string rankField(std::string_view tensor) const;
  std::string scaleField(std::string_view tensor) const;

  /// The --lora of a model for these adapters, as far as one says it:
  /// "rank=4,alpha=8,target=q_proj".
  std::string loraFlag() const;
  const std::string &path() const { return file; }

private:
  /// The first pattern that matches a module's name holds.
  using Pattern = std::vector<std::pair<std::regex, double>>;
  static const double *find(const Pattern &pattern, std::string_view tensor);
  double alphaOf(std::string_view tensor) const;
  MaybeError parse(const std::string &text);

  std::string file;
  int64_t rank = 0;
  double alpha = 0;
  bool dividesByRoot = false; // use_rslora: by the root of the rank
  Pattern ranks, alphas;
  std::vector<std::string> targets;       // empty: no list
  std::vector<std::string> tensorTargets; // target_parameters
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_ADAPTERCONFIG_H
