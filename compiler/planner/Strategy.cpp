//===- Strategy.cpp - How a model is laid over devices -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Strategy.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/passes/sharding/LogicalAxes.h"
#include "compiler/planner/SearchSpace.h"
#include "compiler/planner/strategy.pb.h"
#include "runtime/cluster/ClusterText.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <set>
#include <tuple>

using namespace dtc;
using runtime::Error;
using runtime::Expected;
using runtime::MaybeError;

std::string dtc::formatStrategy(const CompileOptions &options) {
  strategy::Strategy strategy;
  for (const auto &[name, size] : options.mesh) {
    strategy::Axis *axis = strategy.add_mesh();
    axis->set_name(name);
    axis->set_size(size);
  }
  for (const std::string &entry : options.shard)
    strategy.add_shard(entry);
  strategy.set_microbatches(options.microbatches);
  strategy.set_accumulate(options.accumulates);
  strategy.set_zero(options.zero);
  for (const std::string &axis : options.zeroAxes)
    strategy.add_zero_axes(axis);
  strategy.set_sequence_parallel(options.sequenceParallel);
  strategy.set_bucket_bytes(options.bucketBytes);
  strategy.set_prefetch(options.prefetch);
  strategy.set_schedule(options.schedule);
  strategy.set_chunks(options.chunks);
  strategy.set_stages(options.stages);
  strategy.set_recompute(options.recompute);
  strategy.set_memory_limit(options.memoryLimit);
  strategy.set_dtype(options.dtype);
  strategy.set_grad_reduce_dtype(options.gradReduceDtype);
  for (const auto &[name, speed] : options.links) {
    strategy::Link *link = strategy.add_link();
    link->set_axis(name);
    link->set_bandwidth(speed.first);
    link->set_latency(speed.second);
  }
  if (options.deviceFlops > 0)
    strategy.set_device_flops(options.deviceFlops);
  if (options.deviceBandwidth > 0)
    strategy.set_device_bandwidth(options.deviceBandwidth);
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(strategy, &text);
  return "# A strategy of dtc-compile. Change what you like and give it back with --strategy.\n" +
         text;
}

/// "microbatches is 0, expected 1 to 1048576", if so.
static std::string outOfRange(const char *field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return "";
  return fmt::format("{} is {}, expected {} to {}", field, value, least, most);
}

static std::string noneOf(const char *field, const std::string &value,
                          llvm::ArrayRef<std::string> words) {
  if (llvm::is_contained(words, value))
    return "";
  return fmt::format("{} is \"{}\", expected one of {}", field, value, llvm::join(words, ", "));
}

static constexpr int64_t kMostDevices = int64_t(1) << 31;

/// What is wrong with the fields by themselves and with each other; empty if nothing is.
static std::string findProblem(const strategy::Strategy &strategy, const CompileOptions &options) {
  std::set<std::string> axes;
  int64_t devices = 1;
  for (int i = 0; i < strategy.mesh_size(); ++i) {
    const strategy::Axis &axis = strategy.mesh(i);
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    if (axis.name().empty() || !llvm::all_of(axis.name(), isWord) || axis.name() == kMicrobatchAxis)
      return fmt::format("mesh[{}].name is \"{}\", expected letters, digits and _, and another "
                         "name than {}",
                         i, axis.name(), kMicrobatchAxis);
    if (!axes.insert(axis.name()).second)
      return fmt::format("mesh[{}].name is \"{}\", as of an axis before it", i, axis.name());
    std::string problem =
        outOfRange(fmt::format("mesh[{}].size", i).c_str(), axis.size(), 1, kMostDevices);
    if (!problem.empty())
      return problem;
    if (axis.size() > kMostDevices / devices)
      return fmt::format("mesh has more than {} devices; expected fewer", kMostDevices);
    devices *= axis.size();
  }
  std::vector<std::string> schedules = {"auto"};
  for (const ScheduleRule &rule : getScheduleRules())
    schedules.push_back(rule.name.str());
  for (std::string problem :
       {outOfRange("microbatches", options.microbatches, 1, int64_t(1) << 20),
        outOfRange("zero", options.zero, 0, 3), outOfRange("chunks", options.chunks, 0, 1 << 10),
        outOfRange("bucket_bytes", options.bucketBytes, 0, INT64_MAX),
        outOfRange("memory_limit", options.memoryLimit, 0, INT64_MAX),
        outOfRange("prefetch", options.prefetch, 0, 1000),
        noneOf("schedule", options.schedule, schedules),
        noneOf("recompute", options.recompute, {"none", "selective", "full", "auto"}),
        noneOf("dtype", options.dtype, {"f32", "bf16", "f16"}),
        noneOf("grad_reduce_dtype", options.gradReduceDtype,
               options.dtype == "f32" ? std::vector<std::string>{"f32"}
                                      : std::vector<std::string>{"f32", options.dtype})})
    if (!problem.empty())
      return problem;
  for (const std::string &axis : options.zeroAxes)
    if (!axes.contains(axis))
      return fmt::format("zero_axes has \"{}\", which is no axis of the mesh", axis);
  if (llvm::is_contained(options.zeroAxes, kPipelineAxis))
    return fmt::format("zero_axes has \"{}\", the pipeline, whose devices have different layers",
                       kPipelineAxis);
  if (!options.zeroAxes.empty() && options.zero == 0)
    return "zero_axes is given, but zero is 0; choose a stage from 1 to 3";
  if (options.sequenceParallel && !axes.contains("tp"))
    return "sequence_parallel is true, but the mesh has no axis \"tp\"";
  if (!axes.contains(kPipelineAxis) && (options.chunks > 0 || !options.stages.empty()))
    return fmt::format("{} is given, but the mesh has no axis \"{}\"",
                       options.chunks > 0 ? "chunks" : "stages", kPipelineAxis);
  std::set<std::string> linked;
  for (int i = 0; i < strategy.link_size(); ++i) {
    const strategy::Link &link = strategy.link(i);
    if (!axes.contains(link.axis()))
      return fmt::format("link[{}].axis is \"{}\", which is no axis of the mesh", i, link.axis());
    if (!linked.insert(link.axis()).second)
      return fmt::format("link[{}].axis is \"{}\", as of a link before it", i, link.axis());
    if (!(link.bandwidth() > 0) || !std::isfinite(link.bandwidth()))
      return fmt::format("link[{}].bandwidth is {}, expected bytes a second, more than 0", i,
                         link.bandwidth());
    if (!(link.latency() >= 0) || !std::isfinite(link.latency()))
      return fmt::format("link[{}].latency is {}, expected seconds, at least 0", i, link.latency());
  }
  for (auto [field, isGiven, value] :
       {std::tuple("device_flops", strategy.has_device_flops(), options.deviceFlops),
        std::tuple("device_bandwidth", strategy.has_device_bandwidth(), options.deviceBandwidth)})
    if (isGiven && (!(value > 0) || !std::isfinite(value)))
      return fmt::format("{} is {}, expected more than 0", field, value);
  if (options.recompute == "auto" && options.memoryLimit == 0)
    return "recompute is \"auto\", which needs a memory_limit";
  return "";
}

MaybeError dtc::parseStrategy(const std::string &text, CompileOptions &options) {
  strategy::Strategy strategy;
  if (MaybeError error = runtime::parseMessageText(text, "strategy (docs/planning.md)", strategy))
    return error;
  const CompileOptions defaults;
  options.mesh.clear();
  for (const strategy::Axis &axis : strategy.mesh())
    options.mesh.emplace_back(axis.name(), axis.size());
  options.shard.assign(strategy.shard().begin(), strategy.shard().end());
  options.zeroAxes.assign(strategy.zero_axes().begin(), strategy.zero_axes().end());
  auto set = [](auto &option, bool isGiven, const auto &value, const auto &otherwise) {
    option = isGiven ? value : otherwise;
  };
  set(options.microbatches, strategy.has_microbatches(), strategy.microbatches(),
      defaults.microbatches);
  set(options.accumulates, strategy.has_accumulate(), strategy.accumulate(), defaults.accumulates);
  set(options.zero, strategy.has_zero(), strategy.zero(), defaults.zero);
  set(options.sequenceParallel, strategy.has_sequence_parallel(), strategy.sequence_parallel(),
      defaults.sequenceParallel);
  set(options.bucketBytes, strategy.has_bucket_bytes(), strategy.bucket_bytes(),
      defaults.bucketBytes);
  set(options.prefetch, strategy.has_prefetch(), strategy.prefetch(), defaults.prefetch);
  set(options.schedule, strategy.has_schedule(), strategy.schedule(), defaults.schedule);
  set(options.chunks, strategy.has_chunks(), strategy.chunks(), defaults.chunks);
  set(options.stages, strategy.has_stages(), strategy.stages(), defaults.stages);
  set(options.recompute, strategy.has_recompute(), strategy.recompute(), defaults.recompute);
  set(options.memoryLimit, strategy.has_memory_limit(), strategy.memory_limit(),
      defaults.memoryLimit);
  set(options.dtype, strategy.has_dtype(), strategy.dtype(), defaults.dtype);
  set(options.gradReduceDtype, strategy.has_grad_reduce_dtype(), strategy.grad_reduce_dtype(),
      defaults.gradReduceDtype);
  set(options.deviceFlops, strategy.has_device_flops(), strategy.device_flops(),
      defaults.deviceFlops);
  set(options.deviceBandwidth, strategy.has_device_bandwidth(), strategy.device_bandwidth(),
      defaults.deviceBandwidth);
  options.links.clear();
  for (const strategy::Link &link : strategy.link())
    options.links[link.axis()] = {link.bandwidth(), link.latency()};
  if (std::string problem = findProblem(strategy, options); !problem.empty())
    return Error{runtime::printable(problem)}; // it quotes the text
  return std::nullopt;
}

MaybeError dtc::readStrategy(const std::string &path, CompileOptions &options) {
  Expected<runtime::MappedFile> file = runtime::MappedFile::open(path);
  if (!file)
    return file.error();
  std::string text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  if (MaybeError error = parseStrategy(text, options))
    return error->inContext(path);
  return std::nullopt;
}

/// The axes of the mesh that split the batch: of a model that does not name it, those that are
/// given for the first dimension of an input.
static std::vector<std::string> batchAxes(const CompileOptions &options,
                                          const ModelTraits &traits) {
  std::vector<std::string> axes, keys = traits.batchDims;
  if (keys.empty()) {
    axes = {"dp", "fsdp"};
    keys = {kBatchAxisName.str()};
  }
  for (llvm::StringRef entry : options.shard)
    if (auto [name, number] = entry.split('=').first.rsplit('#');
        llvm::any_of(keys, [&](llvm::StringRef key) {
          return key == entry.split('=').first ||
                 (number == "0" && key.ends_with("#0") && matchesArgument(name, key.drop_back(2)));
        })) {
      entry = entry.split('=').second.split('@').first;
      llvm::SmallVector<llvm::StringRef> parts;
      entry.split(parts, '+', -1, /*KeepEmpty=*/false);
      axes.assign(parts.begin(), parts.end());
    }
  return axes;
}

MaybeError dtc::checkStrategy(const CompileOptions &options, mlir::ModuleOp model,
                              const cluster::Cluster *cluster) {
  ModelTraits traits = findTraits(model, 0);
  int64_t devices = 1, stages = 1, parts = 1;
  std::vector<std::string> splitBatch = batchAxes(options, traits);
  for (const auto &[name, size] : options.mesh) {
    devices *= size;
    if (name == kPipelineAxis)
      stages = size * std::max<int64_t>(options.chunks, 1);
    if (llvm::is_contained(splitBatch, name))
      parts *= size;
  }
  if (cluster && devices > runtime::countDevices(*cluster))
    return Error{fmt::format("mesh has {} devices, the cluster \"{}\" has {}", devices,
                             cluster->name(), runtime::countDevices(*cluster))};
  // What does not divide is padded; parts without a sample make no sense.
  if (traits.hasBatch && parts > traits.batch)
    return Error{fmt::format("mesh splits the batch into {} parts, but the model has {} samples; "
                             "choose a smaller {}, or import the model with a larger --batch",
                             parts, traits.batch, llvm::join(splitBatch, " or "))};
  if (traits.hasBatch && parts * options.microbatches > traits.batch)
    return Error{fmt::format("microbatches is {}, but a device has {} of the {} samples; choose at "
                             "most {}, or import the model with a larger --batch",
                             options.microbatches, llvm::divideCeil(traits.batch, parts),
                             traits.batch, traits.batch / parts)};
  if (options.sequenceParallel && !traits.hasSequenceAxis)
    return Error{
        "sequence_parallel is true, but the model names no dimension \"residual_seq\" that "
        "it would split"};
  int64_t ops = 0;
  model.walk([&](mlir::Operation *) { ++ops; });
  if (stages > ops)
    return Error{fmt::format("mesh and chunks make {} stages, but the model has only {} ops to put "
                             "there",
                             stages, ops)};
  return std::nullopt;
}

std::string dtc::describeStrategy(const CompileOptions &options) {
  const CompileOptions defaults;
  std::string text;
  auto add = [&](const std::string &word) { text += (text.empty() ? "" : " ") + word; };
  bool hasPipeline = false;
  for (const auto &[name, size] : options.mesh) {
    hasPipeline |= name == kPipelineAxis && size > 1;
    if (size > 1)
      add(fmt::format("{}={}", name, size));
  }
  if (text.empty())
    add("one device");
  if (options.sequenceParallel)
    add("sp");
  if (options.zero > 0)
    add(fmt::format("zero={}", options.zero));
  if (options.microbatches > 1)
    add(fmt::format("m={}", options.microbatches));
  if (hasPipeline)
    add(options.schedule);
  if (options.chunks > 1)
    add(fmt::format("v={}", options.chunks));
  if (options.recompute != "none")
    add("recompute=" + options.recompute);
  if (options.bucketBytes != defaults.bucketBytes)
    add(fmt::format("bucket={}MiB", options.bucketBytes >> 20));
  std::string map;
  for (llvm::StringRef entry : options.shard) {
    // A dimension without a name is split over nothing by default.
    if (entry.split('=').second.empty() && namesArgumentDims(entry))
      continue;
    map += (map.empty() ? "" : ",") + entry.str();
  }
  if (!map.empty())
    add("shard=" + map);
  return text;
}
