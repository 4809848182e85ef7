//===- OptionConflicts.cpp - Options that contradict each other -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/GradientCompression.h"
#include "compiler/driver/OffloadOption.h"
#include "compiler/driver/OptionTable.h"
#include "compiler/driver/SampleClipping.h"
#include "compiler/passes/collectives/ChunkDim.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace dtc;
using llvm::StringRef;

/// How many devices the mesh has along ep.
static std::string describeExpertDevices(const CompileOptions &options) {
  for (const auto &[name, size] : options.mesh)
    if (name == kExpertAxis)
      return fmt::format("the mesh has {}", size);
  return fmt::format("the mesh has no axis \"{}\"; add one", kExpertAxis);
}

/// The error of options that need something of the mesh that it does not have.
static MaybeError findMeshConflict(const CompileOptions &options, OptionSpelling spelling,
                                   MeshSource source) {
  auto given = [&](StringRef name) { return spell(name, spelling); };
  if (options.sequenceParallel && !options.hasAxis(kTensorAxis))
    return Error{given("sequence_parallel") +
                 " is true, but the mesh has no axis \"tp\" to split sequences over; add one"};
  if (options.contextExchange != ContextExchange::Auto && !options.hasAxis(kContextAxis))
    return Error{fmt::format("{} is \"{}\", but the mesh has no axis \"{}\" to split sequences "
                             "over; add one",
                             given("context_exchange"), wordOf(options.contextExchange),
                             kContextAxis)};
  if (options.contextHeads > 1 && source == MeshSource::Model)
    return Error{
        fmt::format("{} is {}, but the model declares a mesh of its own, and sequences are split "
                    "only over a mesh of the command line; leave it out, or take dist.mesh and the "
                    "shardings that name its axes out of the model and give the mesh as {} {}={}",
                    given("context_heads"), options.contextHeads, given("mesh"), kContextAxis,
                    2 * options.contextHeads)};
  if (options.contextHeads > 1) {
    auto context =
        llvm::find_if(options.mesh, [](const auto &axis) { return axis.first == kContextAxis; });
    if (context == options.mesh.end())
      return Error{fmt::format("{} is {}, but the mesh has no axis \"{}\" to split sequences over; "
                               "add one",
                               given("context_heads"), options.contextHeads, kContextAxis)};
    if (context->second % options.contextHeads != 0 || context->second == options.contextHeads)
      return Error{fmt::format("{} is {}, expected less than the {} devices along \"{}\", and a "
                               "number that divides them; where all of them split heads, {} is "
                               "\"all-to-all\"",
                               given("context_heads"), options.contextHeads, context->second,
                               kContextAxis, given("context_exchange"))};
  }
  if (options.expertGroup > 1 && source == MeshSource::Model)
    return Error{
        fmt::format("{} is {}, but the model declares a mesh of its own, and only the axis "
                    "\"{}\" of the command line's mesh is divided into groups; leave it out",
                    given("expert_group"), options.expertGroup, kExpertAxis)};
  if (options.expertGroup > 1 && !hasExpertGroups(options))
    return Error{fmt::format("{} is {}, expected less than the devices along \"{}\", and a number "
                             "that divides them; {}",
                             given("expert_group"), options.expertGroup, kExpertAxis,
                             describeExpertDevices(options))};
  const MeshSizes declared = meshWithExpertGroups(options);
  for (const auto &[axis, speed] : options.links)
    if (!options.hasAxis(axis) &&
        llvm::none_of(declared, [&](const auto &part) { return part.first == axis; }))
      return Error{
          fmt::format("{} names \"{}\", which is no axis of the mesh; name one of its axes",
                      given("link"), axis)};
  if (source == MeshSource::Model)
    return std::nullopt;
  // For a flag, the pass reports it, with the axes of the mesh.
  for (const std::string &axis : options.zeroAxes)
    if (spelling == OptionSpelling::Field && !options.hasAxis(axis))
      return Error{fmt::format("{} has \"{}\", which is no axis of the mesh; name one of its axes",
                               given("zero_axes"), axis)};
  for (auto [name, isGiven] :
       {std::pair("chunks", options.chunks > 0), std::pair("stages", !options.stages.empty())})
    if (isGiven && !options.hasAxis(kPipelineAxis))
      return Error{
          fmt::format("{} is given, but the mesh has no axis \"{}\" to lay stages over; add one",
                      given(name), kPipelineAxis)};
  return std::nullopt;
}

/// The error of compressed gradients that cannot be.
static MaybeError findCompressionConflict(const CompileOptions &options, OptionSpelling spelling,
                                          MeshSource source) {
  auto given = [&](StringRef name) { return spell(name, spelling); };
  if (options.compress.empty())
    return std::nullopt;
  std::string found = fmt::format("{} is \"{}\"", given("compress"), options.compress);
  Expected<CompressionSettings> compression = parseGradientCompression(options.compress);
  if (!compression)
    return Error{fmt::format("{}: {}", found, compression.error().message)};
  if (source == MeshSource::Options && !options.hasAxis(compression->axis))
    return Error{fmt::format("{}, but the mesh has no axis \"{}\"; add one, or leave it out", found,
                             compression->axis)};
  if (options.mode != CompileMode::Train)
    return Error{fmt::format("{}, but {} is \"{}\", which has no gradients for an optimizer; leave "
                             "it out",
                             found, given("mode"), wordOf(options.mode))};
  if (options.gradReduceDtype != ComputeType::F32)
    return Error{fmt::format("{}, and {} is \"{}\"; leave one of them out", found,
                             given("grad_reduce_dtype"), wordOf(options.gradReduceDtype))};
  if (compression->feedback && options.dtype == ComputeType::F16)
    return Error{fmt::format("{}, but the scale of the loss changes with {} \"f16\", and what is "
                             "left of a gradient would have another scale; choose bf16, or "
                             "feedback=off",
                             found, given("dtype"))};
  if (options.zero > 1 && (options.microbatches > 1 || options.accumulates) &&
      !outerCompressionOf(options))
    return Error{
        fmt::format("{}, but with {} {} gradients are summed between devices once for "
                    "each microbatch or batch, and would be compressed each time; choose a "
                    "stage of at most 1, or one microbatch",
                    found, given("zero"), options.zero)};
  if (outerCompressionOf(options) &&
      (!quantizes(compression->method) || compression->rounding == Rounding::Stochastic))
    return Error{fmt::format("{}, and {} is \"{}\"; an outer step sends integers that are rounded "
                             "to the nearest: choose int8 or int4 without rounding=stochastic",
                             found, given("outer"), options.outer)};
  return std::nullopt;
}

/// The error of values that cannot be in the memory of the host.
static MaybeError findOffloadConflict(const CompileOptions &options, OptionSpelling spelling) {
  auto given = [&](StringRef name) { return spell(name, spelling); };
  if (options.offload.empty())
    return std::nullopt;
  std::string found = fmt::format("{} is \"{}\"", given("offload"), options.offload);
  if (options.offload != kAutoOffload)
    if (Expected<Offload> offload = parseOffload(options.offload); !offload)
      return Error{fmt::format("{}: {}", found, offload.error().message)};
  Offload offload = offloadOf(options.offload);
  if (offload.activations > 0 && options.mode != CompileMode::Train &&
      options.mode != CompileMode::Gradients)
    return Error{fmt::format("{}, but {} is \"{}\", which has no backward pass; leave it out",
                             found, given("mode"), wordOf(options.mode))};
  if (offload.optimizer == 0 && options.offload != kAutoOffload)
    return std::nullopt;
  if (options.mode != CompileMode::Train)
    return Error{fmt::format("{}, but {} is \"{}\", which has no optimizer; leave it out", found,
                             given("mode"), wordOf(options.mode))};
  if (!options.outer.empty())
    return Error{fmt::format("{}, and {} is \"{}\", whose outer steps read the optimizer's states "
                             "on the device; leave one of them out",
                             found, given("outer"), options.outer)};
  if (options.proximal > 0)
    return Error{
        fmt::format("{}, and {} is {}, whose term reads master weights on the device; leave "
                    "one of them out",
                    found, given("proximal"), options.proximal)};
  return std::nullopt;
}

/// The error of collectives in chunks that cannot be.
static MaybeError findChunkConflict(const CompileOptions &options, OptionSpelling spelling) {
  std::string found =
      fmt::format("{} is \"{}\"", spell("chunk_collectives", spelling), options.chunkCollectives);
  std::optional<int64_t> chunks = collectiveChunksOf(options);
  if (!chunks)
    return Error{fmt::format("{}, expected off, auto or a number from 2 to {}", found,
                             kMaxCollectiveChunks)};
  if (*chunks != 1 && options.noOverlap)
    return Error{fmt::format("{}, and with {} nothing runs while a collective runs; leave one of "
                             "them out",
                             found, spell("no_overlap", spelling))};
  return std::nullopt;
}

/// The error of replicas that differ.
static MaybeError findOuterConflict(const CompileOptions &options, OptionSpelling spelling,
                                    MeshSource source) {
  auto given = [&](StringRef name) { return spell(name, spelling); };
  const CompileOptions defaults;
  std::pair rate("outer_lr", options.outerLearningRate.has_value());
  std::pair momentum("outer_momentum", options.outerMomentum != defaults.outerMomentum);
  std::pair beta2("outer_beta2", options.outerBeta2 != defaults.outerBeta2);
  std::pair tau("outer_tau", options.outerTau != defaults.outerTau);
  std::pair fragments("outer_fragments", options.outerFragments != defaults.outerFragments);
  std::pair delay("outer_delay", options.outerDelay != defaults.outerDelay);
  std::pair blend("outer_blend", options.outerBlend != defaults.outerBlend);
  if (options.outer.empty()) {
    for (auto [name, isGiven] :
         {std::pair("outer_step", options.outerStep != defaults.outerStep), rate, momentum, beta2,
          tau, fragments, delay, blend, std::pair("clients", options.clients),
          std::pair("client_noise", options.clientNoise)})
      if (isGiven)
        return Error{fmt::format("{} is given, but no {}; give the axis along which replicas "
                                 "differ",
                                 given(name), given("outer"))};
    return std::nullopt;
  }
  if (options.outerStep == "mean")
    for (auto [name, isGiven] : {rate, momentum})
      if (isGiven)
        return Error{fmt::format("{} is given, but {} is \"mean\", which takes the mean as it is; "
                                 "leave it out",
                                 given(name), given("outer_step"))};
  for (auto [name, isGiven] : {beta2, tau})
    if (isGiven && !(hasSecondMoment(options) &&
                     (options.outerStep != "adagrad" || std::string_view(name) == "outer_tau")))
      return Error{fmt::format("{} is given, but {} is \"{}\", which has no use for it; leave it "
                               "out, or choose adam or yogi",
                               given(name), given("outer_step"), options.outerStep)};
  if (options.clients)
    for (auto [name, isGiven] : {fragments, delay, blend})
      if (isGiven)
        return Error{
            fmt::format("{} is given, and {}; a round of clients ends with an outer step of "
                        "all parameters: leave one of them out",
                        given(name), given("clients"))};
  if (options.clientNoise && !options.clients)
    return Error{fmt::format("{} is given, but no {}; give that as well, or leave the noise out",
                             given("client_noise"), given("clients"))};
  if (options.clients && options.dtype == ComputeType::F16)
    return Error{fmt::format("{} is given, and with {} \"f16\" the scale of the loss follows the "
                             "overflows of all replicas, but clients train on their own; choose "
                             "bf16",
                             given("clients"), given("dtype"))};
  std::string what = fmt::format("{} is \"{}\"", given("outer"), options.outer);
  if (options.mode != CompileMode::Train)
    return Error{
        fmt::format("{}, but only plans of --mode train have outer steps; leave it out", what)};
  if (source == MeshSource::Model)
    return Error{fmt::format("{}, but the model declares a mesh of its own; give the mesh by {}",
                             what, given("mesh"))};
  auto axis =
      llvm::find_if(options.mesh, [&](const auto &each) { return each.first == options.outer; });
  if (axis == options.mesh.end())
    return Error{fmt::format("{}, which is no axis of the mesh; name one of its axes", what)};
  if (llvm::none_of(meshAxes(), [&](const MeshAxisInfo &info) {
        return info.name == options.outer && info.splitsBatchOfExperts;
      }))
    return Error{fmt::format("{}, expected an axis whose devices have different samples and the "
                             "same parameters: {} or {}",
                             what, kDataAxis, kShardedDataAxis)};
  if (axis->second < 2)
    return Error{fmt::format("{}, which has {} device; expected at least 2, or no {}", what,
                             axis->second, given("outer"))};
  std::vector<std::string> zero = zeroAxesOf(options);
  if (options.zero > 0 && llvm::is_contained(zero, options.outer))
    return Error{fmt::format("{}, and ZeRO splits over it, but each replica has all of its "
                             "states; split over another axis by {}, such as {} in {}, or set {} "
                             "to 0",
                             what, given("zero_axes"), kShardedDataAxis, given("mesh"),
                             given("zero"))};
  return std::nullopt;
}

MaybeError dtc::findConflict(const CompileOptions &options, OptionSpelling spelling,
                             MeshSource source) {
  auto given = [&](StringRef name) { return spell(name, spelling); };
  if (source != MeshSource::Search)
    if (MaybeError error = findMeshConflict(options, spelling, source))
      return error;
  if (MaybeError error = findOuterConflict(options, spelling, source))
    return error;
  if (MaybeError error = findSampleClippingConflict(options, spelling, source))
    return error;
  if (MaybeError error = findOffloadConflict(options, spelling))
    return error;
  if (MaybeError error = findChunkConflict(options, spelling))
    return error;
  if (options.proximal > 0 && options.mode != CompileMode::Train)
    return Error{fmt::format("{} is {}, but only plans of --mode train have a proximal term; leave "
                             "it out",
                             given("proximal"), options.proximal)};
  if (spelling == OptionSpelling::Field && llvm::is_contained(options.zeroAxes, kPipelineAxis))
    return Error{fmt::format("{} has \"{}\", the pipeline, whose devices have different layers",
                             given("zero_axes"), kPipelineAxis)};
  if (!options.zeroAxes.empty() && options.zero == 0)
    return Error{fmt::format("{} is given, but {} is 0; choose a stage from 1 to 3",
                             given("zero_axes"), given("zero"))};
  if (options.gradReduceDtype != ComputeType::F32 &&
      options.gradReduceDtype != storageType(options.dtype))
    return Error{fmt::format(
        "{} is \"{}\", expected one of f32{}, as the model computes in {}",
        given("grad_reduce_dtype"), wordOf(options.gradReduceDtype),
        options.dtype == ComputeType::F32 ? "" : ", " + wordOf(storageType(options.dtype)),
        wordOf(options.dtype))};
  if (MaybeError error = findCompressionConflict(options, spelling, source))
    return error;
  if (options.recompute == Recompute::Auto && options.memoryLimit == 0)
    return Error{
        fmt::format("{} is \"auto\", which needs a {}", given("recompute"), given("memory_limit"))};
  if (options.mode != CompileMode::Train && options.accumulates)
    return Error{fmt::format("{}: only plans of --mode train accumulate gradients; leave it out",
                             given("accumulate"))};
  if (options.mode != CompileMode::Forward && options.keepDropout)
    return Error{fmt::format("{} is for {} \"forward\", and {} is \"{}\"; leave it out",
                             given("keep_dropout"), given("mode"), given("mode"),
                             wordOf(options.mode))};
  if (options.mode == CompileMode::Generate && options.microbatches > 1)
    return Error{
        fmt::format("{} is {}, but generation works on the whole batch at once; leave it out",
                    given("microbatches"), options.microbatches)};
  bool swapsAll = options.contextExchange == ContextExchange::AllToAll;
  if (options.contextHeads > 1 && swapsAll)
    return Error{fmt::format("{} is \"all-to-all\", which splits heads over all devices of a "
                             "sequence, and {} is {}; leave one of them out",
                             given("context_exchange"), given("context_heads"),
                             options.contextHeads)};
  if (options.mode == CompileMode::Generate && (swapsAll || options.contextHeads > 1))
    return Error{
        fmt::format("{} is {}, but in generation each device has the same heads of a prompt and "
                    "of what follows; leave it out",
                    given(swapsAll ? "context_exchange" : "context_heads"),
                    swapsAll ? "\"all-to-all\"" : std::to_string(options.contextHeads))};
  if (options.mode == CompileMode::Generate && options.zero > 0)
    return Error{
        fmt::format("{} is {}, but generation has no optimizer whose state could be split; "
                    "leave it out",
                    given("zero"), options.zero)};
  return std::nullopt;
}
