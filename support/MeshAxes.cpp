//===- MeshAxes.cpp - The mesh axes of parallel training ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/MeshAxes.h"

#include <algorithm>

namespace dtc {

static constexpr const char *kOfExperts[] = {"experts"};
static constexpr const char *kOfContext[] = {kSequenceAxisName};
// Megatron's (Shoeybi et al. 2019, arXiv:1909.08053, section 3).
static constexpr const char *kOfTensors[] = {"heads", "kv_heads", "mlp", "vocab"};

static constexpr MeshAxisInfo kMeshAxes[] = {
    {.name = kPipelineAxis},
    {.name = kDataAxis, .splitsBatch = true, .splitsBatchOfExperts = true},
    {.name = kShardedDataAxis, .splitsBatch = true, .splitsBatchOfExperts = true},
    {.name = kExpertAxis, .splitsBatch = true, .splits = kOfExperts},
    {.name = kContextAxis, .splits = kOfContext},
    {.name = kTensorAxis, .splits = kOfTensors},
};

std::span<const MeshAxisInfo> meshAxes() { return kMeshAxes; }

std::span<const char *const> tensorAxisNames() { return kOfTensors; }

bool splitsBatch(std::string_view axis) {
  return std::ranges::any_of(
      kMeshAxes, [&](const MeshAxisInfo &info) { return info.name == axis && info.splitsBatch; });
}

} // namespace dtc
