//===- MergeAdapter.cpp - Adding an adapter to its weight -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/MergeAdapter.h"

#include "plan/AdapterNames.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace dtc::runtime {

static constexpr std::string_view kWeight = ".weight", kDown = ".lora_A.weight",
                                  kUp = ".lora_B.weight";

std::optional<AdapterTensors> adapterOf(std::string_view weight) {
  if (!weight.ends_with(kWeight) || isAdapterName(weight))
    return std::nullopt;
  std::string_view module = weight.substr(0, weight.size() - kWeight.size());
  return AdapterTensors{fmt::format("{}{}{}", kAdapterPrefix, module, kDown),
                        fmt::format("{}{}{}", kAdapterPrefix, module, kUp)};
}

std::string weightOf(std::string_view adapterTensor) {
  adapterTensor.remove_prefix(kAdapterPrefix.size());
  for (std::string_view end : {kDown, kUp})
    if (adapterTensor.ends_with(end))
      adapterTensor.remove_suffix(end.size());
  return fmt::format("{}{}", adapterTensor, kWeight);
}

bool namesTensor(const std::map<std::string, FileTensor> &tensors, std::string_view target) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto &entry) {
    std::string_view name = entry.first;
    if (!name.ends_with(target))
      return false;
    name.remove_suffix(target.size());
    return name.empty() || name.ends_with('.');
  });
}

/// Whether a weight's dimensions are those of `first` and then those of `second`.
static bool isProduct(const std::vector<int64_t> &weight, std::vector<int64_t> first,
                      const std::vector<int64_t> &second) {
  first.insert(first.end(), second.begin(), second.end());
  return weight == first;
}

std::optional<Orientation> findOrientation(const std::map<std::string, FileTensor> &tensors) {
  for (const auto &[name, tensor] : tensors) {
    std::optional<AdapterTensors> adapter = adapterOf(name);
    if (!adapter || !tensors.count(adapter->down) || !tensors.count(adapter->up))
      continue;
    // As the program has them, which gives heads a dimension of their own: so a square weight of
    // attention tells, too.
    auto shapeOf = [](const FileTensor &of) {
      std::vector<int64_t> shape = toVector(of.parts.begin()->second->shape());
      if (of.element)
        shape.erase(shape.begin()); // that of the stack
      return shape;
    };
    std::vector<int64_t> weight = shapeOf(tensor), in = shapeOf(tensors.at(adapter->down)),
                         out = shapeOf(tensors.at(adapter->up));
    if (in.empty() || out.empty())
      continue;
    in.erase(in.begin()); // the rank
    out.pop_back();
    bool isOutIn = isProduct(weight, out, in), isInOut = isProduct(weight, in, out);
    if (isOutIn != isInOut)
      return isOutIn ? Orientation::OutIn : Orientation::InOut;
  }
  return std::nullopt;
}

void mergeAdapter(const HostTensor &down, const HostTensor &up, double scale, bool isTransposed,
                  HostTensor &weight) {
  int64_t rank = down.type.shape[0], in = down.type.shape[1], out = up.type.shape[0];
  std::vector<double> rows(static_cast<size_t>(rank * in)), sum(static_cast<size_t>(in));
  for (int64_t i = 0; i < rank * in; ++i)
    rows[static_cast<size_t>(i)] = elementAt(down, i);
  for (int64_t o = 0; o < out; ++o) {
    std::fill(sum.begin(), sum.end(), 0);
    for (int64_t r = 0; r < rank; ++r) {
      double factor = scale * elementAt(up, o * rank + r);
      const double *row = rows.data() + r * in;
      for (int64_t i = 0; i < in; ++i)
        sum[static_cast<size_t>(i)] += factor * row[i];
    }
    for (int64_t i = 0; i < in; ++i) {
      int64_t element = isTransposed ? i * out + o : o * in + i;
      setElement(weight, element, elementAt(weight, element) + sum[static_cast<size_t>(i)]);
    }
  }
}

} // namespace dtc::runtime
