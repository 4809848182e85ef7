//===- SavedWeights.cpp - Writing parameters ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/SavedWeights.h"

#include "plan/AdapterNames.h"
#include "plan/FileTensors.h"
#include "plan/PlanTypes.h"
#include "runtime/data/ElementConversion.h"
#include "runtime/train/MergeAdapter.h"
#include "support/Nonfinite.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace dtc::runtime {

std::map<std::string, const plan::State *> mastersOf(const plan::Plan &plan) {
  std::map<std::string, const plan::State *> masters;
  for (const plan::State *state : distinctStates(plan))
    if (state->kind() == plan::State::MASTER_WEIGHTS)
      masters[state->parameter()] = state;
  return masters;
}

SavedWeights::SavedWeights(const plan::Plan &plan, SavedContent content)
    : plan(&plan), content(content), masters(mastersOf(plan)), tensors(*fileTensorsOf(plan)),
      types(typesOf(content)), writer(types) {}

MaybeError SavedWeights::checkMerging(const plan::Plan &plan) {
  std::map<std::string, FileTensor> tensors = *fileTensorsOf(plan);
  bool hasAdapters = false;
  for (const auto &[name, tensor] : tensors) {
    if (!isAdapterName(name))
      continue;
    hasAdapters = true;
    if (std::string weight = weightOf(name); !tensors.count(weight))
      return Error{fmt::format("the adapter \"{}\" has no weight \"{}\" to be added to, as the "
                               "layer shares that of the embedding, or as it is of a tensor of all "
                               "experts; leave it out of --lora, or save the adapters and merge "
                               "them with PEFT",
                               name, weight)};
  }
  if (!hasAdapters || !plan.has_lora())
    return Error{"the plan has no adapters; import the model with --lora for one that has, or use "
                 "--save"};
  if (!findOrientation(tensors))
    return Error{"the shapes of the adapters do not say whether the weights are [in, out] or [out, "
                 "in], as all are square; save the adapters and merge them with PEFT"};
  return std::nullopt;
}

/// The state that has the values of a parameter: its master weights, or the parameter itself.
const plan::State &SavedWeights::valuesOf(const plan::State &parameter) const {
  auto master = masters.find(parameter.name());
  return master == masters.end() ? parameter : *master->second;
}

/// The type of a tensor of the file. Its element type is the widest of its parts, which differ
/// where one of them is frozen.
TensorType SavedWeights::typeOf(const FileTensor &tensor) const {
  TensorType type = tensor.type;
  type.dtype = toDType(valuesOf(*tensor.parts.begin()->second).dtype());
  for (const auto &[begin, part] : tensor.parts)
    if (DType dtype = toDType(valuesOf(*part).dtype()); byteWidth(dtype) > byteWidth(type.dtype))
      type.dtype = dtype;
  return type;
}

std::map<std::string, TensorType> SavedWeights::typesOf(SavedContent content) const {
  std::map<std::string, TensorType> types;
  for (const auto &[name, tensor] : tensors)
    if (content == SavedContent::All || isAdapterName(name) == (content == SavedContent::Adapters))
      types.emplace(name, typeOf(tensor));
  return types;
}

void SavedWeights::forgetStacks() const {
  stacks.clear();
  layerOfStacks.clear();
}

Expected<HostTensor> SavedWeights::elementOf(const Session &session,
                                             const FileTensor &tensor) const {
  const plan::State &parameter = *tensor.parts.begin()->second;
  // The adapters of a layer are wanted with its weights where they are merged.
  std::string layer = fileStackOf(parameter.name())->before;
  if (isAdapterName(layer))
    layer.erase(0, kAdapterPrefix.size());
  if (layer != layerOfStacks)
    forgetStacks();
  layerOfStacks = layer;
  auto stack = stacks.find(parameter.name());
  if (stack == stacks.end()) {
    Expected<HostTensor> whole = session.getState(valuesOf(parameter).name());
    if (!whole)
      return whole.error();
    stack = stacks.emplace(parameter.name(), std::move(*whole)).first;
  }
  HostTensor value(typeOf(tensor));
  auto bytes = static_cast<int64_t>(value.bytes.size());
  auto begin = stack->second.bytes.begin() + *tensor.element * bytes;
  std::copy(begin, begin + bytes, value.bytes.begin());
  return value;
}

/// Copies a part of a tensor to its place.
static void setRows(const HostTensor &part, const FileRows &rows, HostTensor &whole) {
  auto dim = static_cast<size_t>(rows.dim);
  int64_t ranges = 1;
  for (size_t i = 0; i < dim; ++i)
    ranges *= whole.type.shape[i];
  int64_t count = part.type.numElements() / ranges, stride = whole.type.numElements() / ranges;
  int64_t row = count / (rows.end - rows.begin);
  auto width = static_cast<int64_t>(byteWidth(whole.type.dtype));
  for (int64_t range = 0; range < ranges; ++range) {
    int64_t from = range * count, to = range * stride + rows.begin * row;
    if (part.type.dtype == whole.type.dtype)
      std::copy_n(part.bytes.begin() + from * width, count * width,
                  whole.bytes.begin() + to * width);
    else
      for (int64_t i = 0; i < count; ++i)
        setElement(whole, to + i, elementAt(part, from + i));
  }
}

Expected<HostTensor> SavedWeights::parameterOf(const Session &session,
                                               const std::string &name) const {
  const FileTensor &tensor = tensors.at(name);
  if (tensor.element)
    return elementOf(session, tensor);
  if (tensor.parts.size() == 1)
    return session.getState(valuesOf(*tensor.parts.begin()->second).name());
  HostTensor whole(typeOf(tensor));
  for (const auto &[begin, part] : tensor.parts) {
    Expected<HostTensor> value = session.getState(valuesOf(*part).name());
    if (!value)
      return value.error();
    setRows(*value, *fileRowsOf(part->name()), whole);
  }
  return whole;
}

Expected<HostTensor> SavedWeights::valueOf(const Session &session, const std::string &name) const {
  Expected<HostTensor> value = parameterOf(session, name);
  std::optional<AdapterTensors> adapter = adapterOf(name);
  if (content != SavedContent::Merged || !value || !adapter || !tensors.count(adapter->down))
    return value;
  Expected<HostTensor> down = parameterOf(session, adapter->down);
  if (!down)
    return down.error();
  Expected<HostTensor> up = parameterOf(session, adapter->up);
  if (!up)
    return up.error();
  const plan::Lora &lora = plan->lora();
  mergeAdapter(*down, *up, lora.alpha() / static_cast<double>(lora.rank()),
               *findOrientation(tensors) == Orientation::InOut, *value);
  return value;
}

MaybeError SavedWeights::write(const Session &session, AtomicFile &file) const {
  forgetStacks();
  return writer.write(file, [&](const std::string &name) { return valueOf(session, name); });
}

MaybeError SavedWeights::gather(const Session &session) const {
  forgetStacks();
  for (const auto &[name, type] : types)
    if (Expected<HostTensor> tensor = valueOf(session, name); !tensor)
      return tensor.error();
  return std::nullopt;
}

Expected<std::optional<std::string>> SavedWeights::findNonfinite(const Session &session) const {
  forgetStacks();
  for (const auto &[name, type] : types) {
    Expected<HostTensor> tensor = valueOf(session, name);
    if (!tensor)
      return tensor.error();
    if (auto found = dtc::findNonfinite(tensor->type.dtype, tensor->bytes))
      return std::optional(
          fmt::format("tensor \"{}\" has {} at element {}", name, found->value, found->index));
  }
  return std::optional<std::string>();
}

MaybeError saveWeights(const Session &session, const std::string &path, SavedContent content) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = SavedWeights(session.plan(), content).write(session, *file))
    return error;
  return file->commit();
}

} // namespace dtc::runtime
