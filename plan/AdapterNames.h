//===- AdapterNames.h - Names of adapter parameters -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_ADAPTERNAMES_H
#define DTC_PLAN_ADAPTERNAMES_H

#include <string_view>

namespace dtc {

/// The prefix of the names of adapters in the files of Hugging Face's PEFT. After it come the name
/// of the layer and "lora_A.weight" or "lora_B.weight".
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

/// Whether a parameter of this name is an adapter: one that a weights file of the base model does
/// not have.
inline bool isAdapterName(std::string_view name) { return name.starts_with(kAdapterPrefix); }

} // namespace dtc

#endif // DTC_PLAN_ADAPTERNAMES_H
