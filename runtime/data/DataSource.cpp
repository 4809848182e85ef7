//===- DataSource.cpp - Batches for the steps -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataSource.h"

#include "plan/PlanTypes.h"
#include "runtime/data/SafetensorsSource.h"
#include "runtime/data/TokenSource.h"

#include <fmt/format.h>

namespace dtc::runtime {

std::vector<DataInput> dataInputsOf(const plan::Plan &plan) {
  std::vector<DataInput> inputs;
  for (const plan::Input *input : distinctInputs(plan))
    if (input->role() == plan::Input::DATA) {
      DataInput &added = inputs.emplace_back();
      added.name = input->name();
      added.type = typeOf(*input);
      added.indexLimit = input->index_limit();
      if (input->has_ignored_index())
        added.ignoredIndex = input->ignored_index();
    }
  return inputs;
}

Expected<std::unique_ptr<DataSource>> openDataSource(const std::string &path,
                                                     std::vector<DataInput> inputs, uint64_t seed) {
  if (path.ends_with(".safetensors"))
    return SafetensorsSource::open(path, std::move(inputs), seed);
  return TokenSource::open(path, std::move(inputs), seed);
}

} // namespace dtc::runtime
