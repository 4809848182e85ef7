//===- MergeAdapter.h - Adding an adapter to its weight -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_MERGEADAPTER_H
#define DTC_RUNTIME_TRAIN_MERGEADAPTER_H

#include "plan/PlanFileTensors.h"
#include "support/Tensor.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// The names that weights files have for the two parts of the adapter of a weight.
struct AdapterTensors {
  std::string down, up; // lora_A [rank, in] and lora_B [out, rank]
};
/// Of a weight of that name, if it could have an adapter.
std::optional<AdapterTensors> adapterOf(std::string_view weight);
/// The weight that an adapter's tensor belongs to.
std::string weightOf(std::string_view adapterTensor);

/// Whether a target of adapters names a tensor, by its whole name or what comes after a point of
/// it, and not a layer that has a "weight".
bool namesTensor(const std::map<std::string, FileTensor> &tensors, std::string_view target);

/// How the weights of linear layers are in files.
enum class Orientation { OutIn, InOut };

/// That of the layers with adapters, by their shapes; nullopt where no layer's tell.
std::optional<Orientation> findOrientation(const std::map<std::string, FileTensor> &tensors);

/// Adds `scale` times `up` times `down` to the weight [out, in], or [in, out] if it is transposed.
/// Each element is rounded once.
void mergeAdapter(const HostTensor &down, const HostTensor &up, double scale, bool isTransposed,
                  HostTensor &weight);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_MERGEADAPTER_H
