//===- Adapters.h - Files of adapters -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_ADAPTERS_H
#define DTC_RUNTIME_TRAIN_ADAPTERS_H

#include "runtime/executor/Session.h"
#include "runtime/train/SavedWeights.h"
#include "support/AtomicFile.h"
#include "support/Error.h"

#include <string>

namespace dtc::runtime {

/// A folder of adapters as Hugging Face's PEFT loads it: adapter_model.safetensors and, if the plan
/// says what PEFT has to know of them, adapter_config.json. It appears as a whole.
class AdapterFolder {
public:
  /// Takes the place and the room on the disk. An error is that the plan has no adapters, or what
  /// would hinder save().
  static Expected<AdapterFolder> create(const plan::Plan &plan, const std::string &path);

  /// Writes the adapters of a session of the plan. To be called once.
  MaybeError save(const Session &session);

private:
  AdapterFolder(AtomicFolder folder, SavedWeights weights, std::string config)
      : folder(std::move(folder)), weights(std::move(weights)), config(std::move(config)) {}

  AtomicFolder folder;
  SavedWeights weights;
  std::string config; // empty if the plan says nothing
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_ADAPTERS_H
