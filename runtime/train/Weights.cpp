//===- Weights.cpp - Reading parameters -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Weights.h"

#include "plan/AdapterNames.h"
#include "plan/FileTensors.h"
#include "plan/PlanFileTensors.h"
#include "plan/PlanTypes.h"
#include "runtime/data/ElementConversion.h"
#include "runtime/data/WeightsFileShards.h"
#include "runtime/train/AdapterConfig.h"
#include "runtime/train/SavedWeights.h"
#include "support/NearestName.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <set>

namespace dtc::runtime {

/// Prefixes that Hugging Face's files have or lack, depending on the class that wrote them.
static constexpr std::string_view kPrefixes[] = {"transformer.", "model.", "bert.", "roberta."};

/// How the first files of BERT name the parameters of norms.
static constexpr std::pair<std::string_view, std::string_view> kFirstNames[] = {
    {"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}};

static std::vector<std::string> otherSpellings(const std::string &name) {
  std::vector<std::string> result;
  for (const auto &[today, first] : kFirstNames)
    if (name.ends_with(today))
      result.push_back(name.substr(0, name.size() - today.size()) + std::string(first));
  for (std::string_view prefix : kPrefixes) {
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
  NameResolver(const WeightsFileShards &file, const std::vector<const plan::State *> &parameters)
      : file(file) {
    for (const plan::State *parameter : parameters)
      for (std::string &name : fileTensorNames(parameter->name()))
        tensors.insert(std::move(name));
  }

  /// The tensor of that name, or one whose name differs in its prefix alone; nullopt if there is
  /// none.
  Expected<std::optional<std::string>> named(const std::string &name, const plan::State &) const {
    if (has(name))
      return std::optional(name);
    // Another parameter's tensor is not this one's.
    std::vector<std::string> found;
    for (const std::string &other : otherSpellings(name))
      if (has(other) && !tensors.count(other))
        found.push_back(other);
    if (found.size() > 1)
      return Error{fmt::format("{}: has no tensor \"{}\", and more than one that could be it: {}",
                               file.path(), name, fmt::join(found, ", "))};
    return found.empty() ? std::nullopt : std::optional(found.front());
  }

  /// The embedding, for an output projection that shares its weights and so is not in the file.
  Expected<std::optional<std::string>> tiedEmbedding(const std::string &name,
                                                     const plan::State &state) const {
    if (name == "lm_head.weight")
      for (const char *other : {"transformer.wte.weight", "wte.weight", "model.embed_tokens.weight",
                                "embed_tokens.weight"})
        if (has(other) && file.tensors().at(other).shape == toVector(state.file_shape()))
          return std::optional<std::string>(other);
    return std::optional<std::string>();
  }

private:
  bool has(const std::string &name) const { return file.tensors().count(name) > 0; }

  const WeightsFileShards &file;
  std::set<std::string> tensors; // of the parameters
};

} // namespace

/// The states that are no part of the optimizer's, and no caches.
static std::vector<const plan::State *> parametersOf(const plan::Plan &plan) {
  std::vector<const plan::State *> states = distinctStates(plan);
  std::erase_if(states,
                [](const plan::State *state) { return state->kind() != plan::State::PARAMETER; });
  return states;
}

/// Where the values of a tensor of weights files are.
struct Source {
  const WeightsFileShards *file = nullptr; // null: the parameter keeps its initial value
  std::string tensor;
  double factor = 1; // of its values
};

/// The rows of a tensor that the parameter's name says: a range of elements for each place in the
/// dimensions before that of the rows.
static Expected<HostTensor> readRows(const Source &source, const FileRows &rows,
                                     const plan::State &parameter, DType dtype) {
  HostTensor value(TensorType{dtype, toVector(parameter.file_shape())});
  const std::vector<int64_t> &whole = source.file->tensors().at(source.tensor).shape;
  auto dim = static_cast<size_t>(rows.dim);
  int64_t ranges = 1, row = 1;
  for (size_t i = 0; i < whole.size(); ++i)
    (i < dim ? ranges : row) *= i == dim ? 1 : whole[i];
  int64_t count = row * (rows.end - rows.begin);
  std::byte *to = value.bytes.data();
  for (int64_t range = 0; range < ranges; ++range) {
    if (MaybeError error = source.file->read(source.tensor, (range * whole[dim] + rows.begin) * row,
                                             count, dtype, to))
      return *error;
    to += count * static_cast<int64_t>(byteWidth(dtype));
  }
  return value;
}

/// A parameter of its tensors, in their order: all of one, the rows of it that the parameter's name
/// says, or a stack.
static Expected<HostTensor> readParameter(const std::vector<Source> &sources,
                                          const plan::State &parameter, DType dtype) {
  const Source &first = sources.front();
  std::optional<FileRows> rows = fileRowsOf(parameter.name());
  if (rows)
    return readRows(first, *rows, parameter, dtype);
  if (sources.size() == 1)
    return first.file->read(first.tensor, dtype);
  HostTensor value(TensorType{dtype, toVector(parameter.file_shape())});
  int64_t count = value.type.numElements() / static_cast<int64_t>(sources.size());
  std::byte *to = value.bytes.data();
  for (const Source &source : sources) {
    if (MaybeError error = source.file->read(source.tensor, 0, count, dtype, to))
      return *error;
    to += count * static_cast<int64_t>(byteWidth(dtype));
  }
  return value;
}

/// The same times the factors, rounded once.
static Expected<HostTensor> readMultiplied(const std::vector<Source> &sources,
                                           const plan::State &parameter, DType dtype) {
  if (std::ranges::all_of(sources, [](const Source &source) { return source.factor == 1; }))
    return readParameter(sources, parameter, dtype);
  Expected<HostTensor> wide = readParameter(sources, parameter, DType::F64);
  if (!wide)
    return wide.error();
  int64_t each = wide->type.numElements() / static_cast<int64_t>(sources.size());
  for (int64_t i = 0; i < wide->type.numElements(); ++i)
    setElement(*wide, i, sources[static_cast<size_t>(i / each)].factor * elementAt(*wide, i));
  HostTensor value(TensorType{dtype, wide->type.shape});
  if (MaybeError error = convertElements("F64", wide->bytes, 0, dtype, value.bytes.data()))
    return *error;
  return value;
}

/// Reads the tensors of a parameter into it and its master weights, which may be null.
static MaybeError setParameter(Session &session, const plan::State &parameter,
                               const plan::State *master, const std::vector<Source> &sources) {
  const plan::State &first = master ? *master : parameter;
  Expected<HostTensor> tensor = readMultiplied(sources, parameter, toDType(first.dtype()));
  if (!tensor)
    return tensor.error();
  if (MaybeError error = session.setState(first.name(), *tensor))
    return error;
  if (!master)
    return std::nullopt;
  // The master weights rounded, as after a step.
  HostTensor rounded(fileTypeOf(parameter));
  if (MaybeError error =
          convertElements(tensor->type.dtype == DType::F64 ? "F64" : "F32", tensor->bytes, 0,
                          rounded.type.dtype, rounded.bytes.data()))
    return error;
  return session.setState(parameter.name(), rounded);
}

namespace {

/// The files that a session starts from.
class WeightsLoader {
public:
  explicit WeightsLoader(Session &session)
      : session(session), parameters(parametersOf(session.plan())),
        tensors(*fileTensorsOf(session.plan())) {}

  MaybeError open(const std::vector<std::string> &paths);
  /// Takes weights that are open.
  void take(WeightsFileShards weights);
  /// Reads all, or nothing where a tensor does not fit. Returns notes.
  Expected<std::vector<std::string>> load(bool allowUnusedAdapters);

private:
  /// Finds the tensor of each parameter, and checks its shape.
  MaybeError resolve();
  /// Compares adapters with those that the files were made for.
  MaybeError checkAdapters(bool allowUnused);
  MaybeError read();
  std::vector<std::string> notes() const;
  MaybeError resolve(const plan::State &parameter);
  MaybeError resolve(const plan::State &parameter, const std::string &name, Source &source);
  MaybeError checkRank(const plan::State &parameter, const Source &source) const;
  std::vector<Source *> adapterSources(const WeightsFileShards &file);
  void findFactors();
  std::vector<std::string> unusedOf(const WeightsFileShards &file) const;
  const AdapterConfig *configOf(const WeightsFileShards *file) const;
  std::string paths() const;

  Session &session;
  std::vector<const plan::State *> parameters;
  std::map<std::string, FileTensor> tensors;
  std::vector<WeightsFileShards> files;
  std::vector<std::optional<AdapterConfig>> configs;               // beside each file
  std::vector<std::string> multiplied;                             // notes on adapters
  std::vector<NameResolver> resolvers;                             // of each file
  std::map<std::string, std::vector<Source>> sources;              // by parameter
  std::map<const WeightsFileShards *, std::set<std::string>> used; // tensors that are parameters
  std::vector<std::string> kept;                                   // adapters that are in no file
};

} // namespace

MaybeError WeightsLoader::open(const std::vector<std::string> &paths) {
  for (const std::string &path : paths) {
    Expected<WeightsFileShards> file = WeightsFileShards::open(path);
    if (!file)
      return file.error();
    files.push_back(std::move(*file));
    Expected<std::optional<AdapterConfig>> config = AdapterConfig::read(path);
    if (!config)
      return config.error();
    configs.push_back(std::move(*config));
  }
  for (const WeightsFileShards &file : files)
    resolvers.emplace_back(file, parameters);
  return std::nullopt;
}

void WeightsLoader::take(WeightsFileShards weights) {
  files.push_back(std::move(weights));
  configs.emplace_back();
  resolvers.emplace_back(files.back(), parameters);
}

std::string WeightsLoader::paths() const {
  std::vector<std::string> paths;
  for (const WeightsFileShards &file : files)
    paths.push_back(file.path());
  return fmt::format("{}", fmt::join(paths, ", "));
}

MaybeError WeightsLoader::resolve(const plan::State &parameter) {
  std::vector<std::string> names = fileTensorNames(parameter.name());
  for (const std::string &name : names) {
    Source &source = sources[parameter.name()].emplace_back();
    if (MaybeError error = resolve(parameter, name, source))
      return error;
    if (!source.file)
      kept.push_back(names.size() == 1 ? parameter.name() : name);
  }
  return std::nullopt;
}

/// Finds the tensor `name` of the parameter.
MaybeError WeightsLoader::resolve(const plan::State &parameter, const std::string &name,
                                  Source &source) {
  // A tensor under the parameter's name goes before one of another that may stand in for it,
  // whichever file they are in.
  for (auto find : {&NameResolver::named, &NameResolver::tiedEmbedding})
    for (size_t i = files.size(); i-- > 0;) {
      Expected<std::optional<std::string>> tensor = (resolvers[i].*find)(name, parameter);
      if (!tensor)
        return tensor.error();
      if (!*tensor)
        continue;
      used[&files[i]].insert(**tensor);
      if (!source.file)
        source = {&files[i], **tensor};
    }
  const TensorType &expected = tensors.at(name).type;
  if (!source.file) {
    if (isAdapterName(parameter.name()))
      return std::nullopt;
    return Error{fmt::format("{}: {} no tensor \"{}\" (expected {})", paths(),
                             files.size() == 1 ? "has" : "have", name, expected.str())};
  }
  if (MaybeError error = checkRank(parameter, source))
    return error;
  const SafetensorsEntry &entry = source.file->tensors().at(source.tensor);
  if (entry.shape != expected.shape)
    return Error{fmt::format("{}: tensor \"{}\" is {}, but the parameter \"{}\" is {}",
                             source.file->path(), source.tensor, entry.str(), name,
                             expected.str())};
  return std::nullopt;
}

MaybeError WeightsLoader::resolve() {
  size_t adapters = 0;
  for (const plan::State *parameter : parameters) {
    if (isAdapterName(parameter->name()))
      adapters += fileTensorNames(parameter->name()).size();
    if (MaybeError error = resolve(*parameter))
      return error;
  }
  // A base model has none of the adapters. A file that has some of them was made for another model.
  if (kept.empty() || kept.size() == adapters)
    return std::nullopt;
  return Error{fmt::format("{}: {} no tensor \"{}\", but other adapters; {} of {} adapters are "
                           "missing. Import the model with the --lora of the run that saved them",
                           paths(), files.size() == 1 ? "has" : "have", kept.front(), kept.size(),
                           adapters)};
}

const AdapterConfig *WeightsLoader::configOf(const WeightsFileShards *file) const {
  for (size_t i = 0; i < files.size(); ++i)
    if (&files[i] == file && configs[i])
      return &*configs[i];
  return nullptr;
}

/// Whether the adapter has the rank that its configuration says.
MaybeError WeightsLoader::checkRank(const plan::State &parameter, const Source &source) const {
  const AdapterConfig *config = configOf(source.file);
  if (!config || !session.plan().has_lora() || !isAdapterName(parameter.name()))
    return std::nullopt;
  int64_t rank = config->rankOf(source.tensor), ours = session.plan().lora().rank();
  if (rank == ours)
    return std::nullopt;
  std::string field = config->rankField(source.tensor);
  return Error{fmt::format(
      "{}: {} is {} for \"{}\", but the model has adapters of rank {}; {}", config->path(), field,
      rank, source.tensor, ours,
      field == "r" ? fmt::format("import it with --lora {}", config->loraFlag())
                   : "dtc-import --lora gives all layers one rank: merge these adapters into the "
                     "weights with PEFT (merge_and_unload)")};
}

/// Tensors that are no parameters.
std::vector<std::string> WeightsLoader::unusedOf(const WeightsFileShards &file) const {
  auto known = used.find(&file);
  std::vector<std::string> unused;
  for (const auto &[name, entry] : file.tensors())
    if (known == used.end() || !known->second.count(name))
      unused.push_back(name);
  return unused;
}

/// Those of the parameters that are adapters, in the order of these.
std::vector<Source *> WeightsLoader::adapterSources(const WeightsFileShards &file) {
  std::vector<Source *> found;
  for (const plan::State *parameter : parameters)
    if (isAdapterName(parameter->name()))
      for (Source &source : sources.at(parameter->name()))
        if (source.file == &file)
          found.push_back(&source);
  return found;
}

/// Finds the factors for the values of lora_B: PEFT's factor of the adapter, divided by the plan's.
void WeightsLoader::findFactors() {
  const plan::Lora &lora = session.plan().lora();
  double ours = lora.alpha() / static_cast<double>(lora.rank());
  for (size_t i = 0; i < files.size() && session.plan().has_lora(); ++i) {
    std::string first;
    int changed = 0;
    std::set<double> factors;
    for (Source *source : adapterSources(files[i])) {
      if (!configs[i] || !source->tensor.ends_with(".lora_B.weight"))
        continue;
      double scale = configs[i]->scaleOf(source->tensor);
      if (std::abs(scale - ours) > 1e-12 * scale)
        source->factor = scale / ours;
      factors.insert(source->factor);
      if (source->factor != 1 && ++changed == 1)
        first = fmt::format("{}: by {} \"{}\" counts {:.6g} times, in the model {:.6g} times",
                            configs[i]->path(), configs[i]->scaleField(source->tensor),
                            source->tensor, scale, ours);
    }
    if (changed == 0)
      continue;
    std::string others =
        changed == 1 ? "" : fmt::format(", and so do {} more with their ratios", changed - 1);
    std::string remedy =
        factors.size() == 1
            ? fmt::format("; to train them as before, import the model with --lora {}",
                          configs[i]->loraFlag())
            : "";
    multiplied.push_back(fmt::format("{}; its values take the ratio{}{}", first, others, remedy));
  }
}

MaybeError WeightsLoader::checkAdapters(bool allowUnused) {
  for (const WeightsFileShards &file : files) {
    const AdapterConfig *config = configOf(&file);
    if (config)
      if (MaybeError error = config->checkTensors(tensors))
        return error;
    // Weights that were saved with their adapters have the base in the same file.
    bool areAdapters = config || std::ranges::all_of(file.tensors(), [](const auto &entry) {
                         return isAdapterName(entry.first);
                       });
    if (std::vector<std::string> unused = unusedOf(file);
        areAdapters && !unused.empty() && !allowUnused)
      return Error{fmt::format("{}: has {} tensors that the adapters of the model lack: {}; import "
                               "it with {}, or give --allow-unused-adapters to leave them "
                               "out",
                               file.path(), unused.size(), listSome(unused),
                               config ? "--lora " + config->loraFlag()
                                      : "the --lora of the run that saved them")};
  }
  findFactors();
  return std::nullopt;
}

MaybeError WeightsLoader::read() {
  std::map<std::string, const plan::State *> masters = mastersOf(session.plan());
  for (const plan::State *parameter : parameters) {
    const std::vector<Source> &found = sources.at(parameter->name());
    auto master = masters.find(parameter->name());
    if (!found.front().file)
      continue;
    if (MaybeError error = setParameter(session, *parameter,
                                        master == masters.end() ? nullptr : master->second, found))
      return error;
  }
  return std::nullopt;
}

std::vector<std::string> WeightsLoader::notes() const {
  std::vector<std::string> notes;
  for (const WeightsFileShards &file : files) {
    std::vector<std::string> renamed, unused = unusedOf(file);
    for (const plan::State *parameter : parameters) {
      std::vector<std::string> names = fileTensorNames(parameter->name());
      const std::vector<Source> &found = sources.at(parameter->name());
      // Of a stack, the tensors are renamed alike.
      if (found.front().file == &file && found.front().tensor != names.front())
        renamed.push_back(fmt::format("{} from {}", parameter->name(), found.front().tensor));
    }
    std::sort(renamed.begin(), renamed.end());
    if (!renamed.empty())
      notes.push_back(fmt::format("{}: {} parameters have other names in the file: {}", file.path(),
                                  renamed.size(), listSome(renamed)));
    if (!unused.empty())
      notes.push_back(fmt::format("{}: {} tensors are not parameters of the model and were not "
                                  "used: {}",
                                  file.path(), unused.size(), listSome(unused)));
  }
  notes.insert(notes.end(), multiplied.begin(), multiplied.end());
  if (!kept.empty())
    notes.push_back(fmt::format("{}: without adapters; the {} of the model keep their initial "
                                "values: {}",
                                paths(), kept.size(), listSome(kept)));
  return notes;
}

Expected<std::vector<std::string>> WeightsLoader::load(bool allowUnusedAdapters) {
  // All names and shapes before the first byte: a file for another model changes nothing.
  if (MaybeError error = resolve())
    return *error;
  if (MaybeError error = checkAdapters(allowUnusedAdapters))
    return *error;
  if (MaybeError error = read())
    return *error;
  return notes();
}

Expected<std::vector<std::string>>
loadWeights(Session &session, const std::vector<std::string> &paths, bool allowUnusedAdapters) {
  WeightsLoader loader(session);
  if (MaybeError error = loader.open(paths))
    return *error;
  return loader.load(allowUnusedAdapters);
}

Expected<std::vector<std::string>> loadWeights(Session &session, WeightsFileShards weights) {
  WeightsLoader loader(session);
  loader.take(std::move(weights));
  return loader.load(/*allowUnusedAdapters=*/false);
}

} // namespace dtc::runtime
