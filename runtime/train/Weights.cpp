//===- Weights.cpp - Parameters from and to files -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Weights.h"

#include "runtime/data/ElementConversion.h"
#include "runtime/data/Safetensors.h"
#include "runtime/plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace dtc::runtime {

/// Prefixes that Hugging Face's files have or lack, depending on the class that wrote them.
static constexpr std::string_view prefixes[] = {"transformer.", "model."};

static std::vector<std::string> otherSpellings(const std::string &name) {
  std::vector<std::string> result;
  for (std::string_view prefix : prefixes) {
    if (name.starts_with(prefix))
      result.push_back(name.substr(prefix.size()));
    result.push_back(std::string(prefix) + name);
  }
  return result;
}

namespace {

/// Which tensor of the file each parameter is.
class NameResolver {
public:
  NameResolver(const SafetensorsFile &file, const std::vector<const plan::State *> &parameters)
      : file(file) {
    for (const plan::State *parameter : parameters)
      this->parameters.insert(parameter->name());
  }

  Expected<std::string> resolve(const plan::State &state) {
    const std::string &name = state.name();
    if (has(name))
      return name;
    // Another parameter's tensor is not this one's.
    std::vector<std::string> found;
    for (const std::string &other : otherSpellings(name))
      if (has(other) && !parameters.count(other))
        found.push_back(other);
    if (found.size() > 1)
      return Error{fmt::format("{}: has no tensor \"{}\", and more than one that could be it: {}",
                               file.path(), name, fmt::join(found, ", "))};
    if (found.empty())
      found = tiedEmbedding(state);
    if (found.empty())
      return Error{fmt::format("{}: has no tensor \"{}\" (expected {})", file.path(), name,
                               fileTypeOf(state).str())};
    return found.front();
  }

private:
  bool has(const std::string &name) const { return file.tensors().count(name) > 0; }

  /// The embedding, for an output projection that shares its weights and so is not in the file.
  std::vector<std::string> tiedEmbedding(const plan::State &state) const {
    if (state.name() != "lm_head.weight")
      return {};
    for (const char *name : {"transformer.wte.weight", "wte.weight", "model.embed_tokens.weight",
                             "embed_tokens.weight"})
      if (has(name) && file.tensors().at(name).shape == toVector(state.file_shape()))
        return {name};
    return {};
  }

  const SafetensorsFile &file;
  std::set<std::string> parameters;
};

} // namespace

/// The master weights of the parameters that have them, by the parameter's name.
static std::map<std::string, const plan::State *> mastersOf(const plan::Plan &plan) {
  std::map<std::string, const plan::State *> masters;
  for (const plan::State *state : distinctStates(plan))
    if (state->master())
      masters[state->parameter()] = state;
  return masters;
}

/// The states that are no part of the optimizer's.
static std::vector<const plan::State *> parametersOf(const plan::Plan &plan) {
  std::vector<const plan::State *> states = distinctStates(plan);
  std::erase_if(states, [](const plan::State *state) { return !state->parameter().empty(); });
  return states;
}

static std::string listSome(const std::vector<std::string> &names) {
  constexpr size_t shown = 4;
  std::vector<std::string> some(names.begin(), names.begin() + std::min(names.size(), shown));
  return fmt::format("{}{}", fmt::join(some, ", "), names.size() > shown ? ", ..." : "");
}

/// Reads a tensor of the file into a parameter and its master weights, which may be null.
static MaybeError setParameter(Session &session, const plan::State &parameter,
                               const plan::State *master, const SafetensorsFile &file,
                               const std::string &source) {
  const plan::State &first = master ? *master : parameter;
  Expected<HostTensor> tensor = file.read(source, toDType(first.dtype()));
  if (!tensor)
    return tensor.error();
  if (MaybeError error = session.setState(first.name(), *tensor))
    return error;
  if (!master)
    return std::nullopt;
  // What the master weights round to, as after a step.
  HostTensor rounded(fileTypeOf(parameter));
  if (MaybeError error =
          convertElements(tensor->type.dtype == DType::F64 ? "F64" : "F32", tensor->bytes, 0,
                          rounded.type.dtype, rounded.bytes.data()))
    return error;
  return session.setState(parameter.name(), rounded);
}

Expected<std::vector<std::string>> loadWeights(Session &session, const std::string &path) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.error();
  std::vector<const plan::State *> parameters = parametersOf(session.plan());
  NameResolver resolver(*file, parameters);
  std::map<std::string, std::string> sources; // parameter -> tensor of the file
  std::set<std::string> used;
  std::vector<std::string> renamed;
  // All names and shapes before the first byte: a file for another model changes nothing.
  for (const plan::State *parameter : parameters) {
    const plan::State &state = *parameter;
    Expected<std::string> source = resolver.resolve(state);
    if (!source)
      return source.error();
    const SafetensorsEntry &entry = file->tensors().at(*source);
    if (entry.shape != toVector(state.file_shape()))
      return Error{fmt::format("{}: tensor \"{}\" is {}, but the parameter \"{}\" is {}", path,
                               *source, entry.str(), state.name(), fileTypeOf(state).str())};
    if (*source != state.name())
      renamed.push_back(fmt::format("{} from {}", state.name(), *source));
    used.insert(*source);
    sources[state.name()] = std::move(*source);
  }
  std::map<std::string, const plan::State *> masters = mastersOf(session.plan());
  for (const plan::State *parameter : parameters) {
    auto master = masters.find(parameter->name());
    MaybeError error =
        setParameter(session, *parameter, master == masters.end() ? nullptr : master->second, *file,
                     sources[parameter->name()]);
    if (error)
      return *error;
  }
  std::vector<std::string> unused;
  for (const auto &[name, entry] : file->tensors())
    if (!used.count(name))
      unused.push_back(name);
  std::vector<std::string> notes;
  if (!renamed.empty())
    notes.push_back(fmt::format("{}: {} parameters have other names in the file: {}", path,
                                renamed.size(), listSome(renamed)));
  if (!unused.empty())
    notes.push_back(fmt::format("{}: {} tensors are not parameters of the model and were not used: "
                                "{}",
                                path, unused.size(), listSome(unused)));
  return notes;
}

MaybeError saveWeights(const Session &session, const std::string &path) {
  std::map<std::string, const plan::State *> saved = mastersOf(session.plan());
  for (const plan::State *parameter : parametersOf(session.plan()))
    saved.try_emplace(parameter->name(), parameter);
  std::map<std::string, TensorType> types;
  for (const auto &[name, state] : saved)
    types.emplace(name, fileTypeOf(*state));
  return writeSafetensors(path, types, [&](const std::string &name) {
    return session.getState(saved.at(name)->name());
  });
}

} // namespace dtc::runtime
