//===- Adapters.h - Files of adapters -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_ADAPTERS_H
#define DTC_RUNTIME_TRAIN_ADAPTERS_H

#include "runtime/executor/Session.h"
#include "runtime/support/Error.h"

#include <string>

namespace dtc::runtime {

/// Finds out whether the plan has adapters, and whether saveAdapters can write them to `path`.
MaybeError checkAdapters(const plan::Plan &plan, const std::string &path);

/// Writes the adapters to a safetensors file, and to adapter_config.json in the same folder what
/// Hugging Face's PEFT has to know to load them, if the plan says so. A folder that has them as
/// adapter_model.safetensors is one that PEFT loads.
MaybeError saveAdapters(const Session &session, const std::string &path);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_ADAPTERS_H
