//===- PlanVerifier.cpp - Verification of a plan --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "plan/PlanChecks.h"
#include "plan/PlanFileTensors.h"
#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "plan/Replicas.h"
#include "support/CheckedMath.h"
#include "support/Format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace dtc {

MaybeError checkPlanVersion(uint32_t version) {
  if (version == kPlanVersion)
    return std::nullopt;
  if (version == 0)
    return Error{"is not a plan: it states no version; expected a file written by dtc-compile"};
  if (version > kPlanVersion)
    return Error{fmt::format("plan version {} is newer than this runtime reads ({}); update the "
                             "runtime, or compile the model with the dtc-compile that came with it",
                             version, kPlanVersion)};
  return Error{fmt::format("plan version {} is older than this runtime reads ({}); compile the "
                           "model again",
                           version, kPlanVersion)};
}

/// A bandwidth or a latency; 0 says that it is unknown.
static MaybeError checkLinkFigure(const plan::Axis &axis, const char *what, double value) {
  if (std::isfinite(value) && value >= 0)
    return std::nullopt;
  return Error{fmt::format("mesh axis \"{}\" has a {} of {}; expected a finite number of 0 or more",
                           axis.name(), what, value)};
}

/// Checks the values that files of adapters will have.
static MaybeError checkLora(const plan::Lora &lora) {
  if (lora.rank() >= 1 && std::isfinite(lora.alpha()) && lora.alpha() > 0 && lora.dropout() >= 0 &&
      lora.dropout() < 1)
    return std::nullopt;
  return Error{fmt::format("the adapters have rank {}, alpha {} and dropout {}; expected a rank of "
                           "at least 1, an alpha above 0 and a dropout of at least 0 and less "
                           "than 1",
                           lora.rank(), lora.alpha(), lora.dropout())};
}

static MaybeError checkAxes(const plan::Plan &plan) {
  if (plan.axes_size() > kMaxMeshAxes)
    return Error{fmt::format("the mesh has {} axes; at most {} are allowed", plan.axes_size(),
                             kMaxMeshAxes)};
  std::set<std::string> names;
  int64_t devices = 1;
  int temporalAxes = 0;
  const plan::Axis *pipeline = nullptr;
  for (const plan::Axis &axis : plan.axes()) {
    if (axis.name().empty())
      return Error{"a mesh axis has no name"};
    if (!names.insert(axis.name()).second)
      return Error{
          fmt::format("two mesh axes are named \"{}\"; names must be distinct", axis.name())};
    int64_t limit = axis.temporal() ? kMaxMicrobatches : kMaxPlanDevices;
    if (axis.size() < 1 || axis.size() > limit)
      return Error{fmt::format("mesh axis \"{}\" has size {}; expected 1 to {}", axis.name(),
                               axis.size(), limit)};
    if (MaybeError error = checkLinkFigure(axis, "bandwidth", axis.bandwidth()))
      return error;
    if (MaybeError error = checkLinkFigure(axis, "latency", axis.latency()))
      return error;
    if (axis.pipeline()) {
      if (axis.temporal())
        return Error{fmt::format("mesh axis \"{}\" is both temporal and the pipeline axis; the "
                                 "pipeline axis is spatial",
                                 axis.name())};
      if (pipeline)
        return Error{
            fmt::format("mesh axis \"{}\" is a second pipeline axis beside \"{}\"; at most "
                        "one is allowed",
                        axis.name(), pipeline->name())};
      pipeline = &axis;
    }
    if (axis.temporal()) {
      if (++temporalAxes > 1)
        return Error{fmt::format("mesh axis \"{}\" is a second temporal axis; at most one is "
                                 "allowed",
                                 axis.name())};
      continue;
    }
    // Both factors are at most 2^20, so the product cannot overflow before it is refused.
    devices *= axis.size();
    if (devices > kMaxPlanDevices)
      return Error{fmt::format("the mesh has more than {} devices", kMaxPlanDevices)};
  }
  return std::nullopt;
}

MaybeError checkTensor(plan::DType dtype, const google::protobuf::RepeatedField<int64_t> &shape) {
  if (!isNamed(toDType(dtype)))
    return Error{fmt::format("unknown element type {}", static_cast<int>(dtype))};
  if (shape.size() > kMaxTensorRank)
    return Error{fmt::format("the shape has {} dimensions; at most {} are allowed", shape.size(),
                             kMaxTensorRank)};
  std::vector<int64_t> sizes = toVector(shape);
  for (int64_t size : sizes)
    if (size < 0)
      return Error{fmt::format("shape {} has a negative size", formatShape(sizes))};
  std::optional<int64_t> elements = checkedElements(sizes);
  if (!elements || !checkedMul(*elements, static_cast<int64_t>(byteWidth(toDType(dtype)))))
    return Error{fmt::format("shape {} has more bytes than 64 bits count", formatShape(sizes))};
  return std::nullopt;
}

MaybeError checkBufferIndex(const PlanContext &context, uint32_t buffer) {
  if (buffer >= context.types.size())
    return Error{fmt::format("names buffer {}, but the program has {} buffers", buffer,
                             context.types.size())};
  return std::nullopt;
}

MaybeError checkOnDevice(const PlanContext &context, uint32_t buffer, const char *what) {
  if (!isOnHost(context.program.buffers(static_cast<int>(buffer))))
    return std::nullopt;
  return Error{fmt::format("buffer {} lies in the memory of the host; expected {} in that of the "
                           "device",
                           buffer, what)};
}

/// The locations that reasons name, and the reasons that collectives name. As with locations, index
/// 0 is "unknown" and needs no entry.
static MaybeError checkReasons(const PlanContext &context) {
  const plan::Plan &plan = context.plan;
  auto isMissing = [](uint32_t index, int size) {
    return index != 0 && static_cast<int64_t>(index) >= size;
  };
  for (int r = 0; r < plan.reasons_size(); ++r)
    for (auto [what, location] : {std::pair("producer", plan.reasons(r).producer()),
                                  std::pair("consumer", plan.reasons(r).consumer())})
      if (isMissing(location, plan.locations_size()))
        return Error{
            fmt::format("reason {} names location {} as its {}, but the plan has {} locations", r,
                        location, what, plan.locations_size())};
  for (const plan::Task &task : context.program.tasks())
    for (int i = 0; i < task.instructions_size(); ++i)
      for (const plan::CollectiveTensor &tensor : task.instructions(i).collective().tensors())
        if (isMissing(tensor.reason(), plan.reasons_size()))
          return Error{fmt::format("names reason {}, but the plan has {} reasons", tensor.reason(),
                                   plan.reasons_size())}
              .inContext(describeInstruction(plan, task, i));
  return std::nullopt;
}

/// All checks of a program but those of its schedule, which depend on the other programs.
static MaybeError checkProgram(PlanContext &context, WorkLimit &budget) {
  if (MaybeError error = checkBuffers(context))
    return error;
  if (MaybeError error = checkReasons(context))
    return error;
  if (MaybeError error = checkInstructions(context))
    return error;
  if (MaybeError error = checkTransfers(context))
    return error;
  if (MaybeError error = checkAsync(context, budget))
    return error;
  if (MaybeError error = checkBindings(context))
    return error;
  return checkWriters(context);
}

int64_t microbatchesOf(const Mesh &mesh) {
  for (const MeshAxis &axis : mesh.axes())
    if (axis.temporal)
      return axis.size;
  return 1;
}

std::string describeExecution(const PlanContext &context, int entry, int instruction) {
  const plan::ScheduleEntry &execution = context.program.schedule(entry);
  std::string text = describeInstruction(
      context.plan, context.program.tasks(static_cast<int>(execution.task())), instruction);
  if (microbatchesOf(context.mesh) > 1)
    text += fmt::format(", microbatch {}", execution.microbatch());
  return text;
}

std::string describe(LoopPlace place) {
  const char *word = place == LoopPlace::Before ? "before"
                     : place == LoopPlace::In   ? "in"
                                                : "after";
  return fmt::format("{} the loop over microbatches", word);
}

static MaybeError checkProgramCount(const plan::Plan &plan, const Mesh &mesh) {
  const MeshAxis *pipeline = mesh.pipelineAxis();
  int64_t programs = pipeline ? pipeline->size : 1;
  if (plan.programs_size() == programs)
    return std::nullopt;
  return Error{pipeline ? fmt::format("the plan has {} programs; expected {}, one for each "
                                      "coordinate on the pipeline axis \"{}\"",
                                      plan.programs_size(), programs, pipeline->name)
                        : fmt::format("the plan has {} programs; expected one, as its mesh has no "
                                      "pipeline axis",
                                      plan.programs_size())};
}

/// Verifies a plan without its entryPoints. `budget` is the whole file's.
static Expected<VerifierResult> verifyEntry(const plan::Plan &plan, bool repeatsLoop,
                                            WorkLimit &budget) {
  if (MaybeError error = checkPlanVersion(plan.version()))
    return *error;
  if (plan.has_lora())
    if (MaybeError error = checkLora(plan.lora()))
      return *error;
  if (MaybeError error = checkAxes(plan))
    return *error;
  Mesh mesh = meshOf(plan);
  if (MaybeError error = checkProgramCount(plan, mesh))
    return *error;
  std::vector<PlanContext> programs;
  auto inProgram = [&](const Error &error, int program) {
    return plan.programs_size() > 1 ? error.inContext(fmt::format("program {}", program)) : error;
  };
  for (int p = 0; p < plan.programs_size(); ++p) {
    programs.push_back({plan, plan.programs(p), p, mesh, {}, {}, {}, {}});
    budget.nextProgram();
    if (MaybeError error = checkProgram(programs.back(), budget))
      return inProgram(*error, p);
  }
  if (MaybeError error = checkChannels(programs))
    return *error;
  if (MaybeError error = checkSharedBindings(programs))
    return *error;
  if (auto tensors = fileTensorsOf(plan); !tensors)
    return tensors.error();
  VerifierResult facts;
  facts.microbatches = microbatchesOf(mesh);
  std::set<uint32_t> channelsOfData;
  for (size_t known = 0;; known = channelsOfData.size()) {
    facts.programs.clear();
    for (const PlanContext &context : programs) {
      budget.nextProgram();
      Expected<ProgramVerifierResult> found =
          checkDataflow(context, repeatsLoop, channelsOfData, budget);
      if (!found)
        return inProgram(found.error(), context.number);
      facts.programs.push_back(*found);
    }
    if (!repeatsLoop || channelsOfData.size() == known)
      break;
  }
  for (const PlanContext &context : programs)
    facts.channels += context.program.transfers_size();
  facts.channels /= 2;
  Expected<int64_t> messages = checkDeadlock(programs);
  if (!messages)
    return messages.error();
  facts.messages = *messages;
  return facts;
}

static bool isSameAxis(const plan::Axis &a, const plan::Axis &b) {
  return a.name() == b.name() && a.size() == b.size() && a.temporal() == b.temporal() &&
         a.pipeline() == b.pipeline();
}

/// Whether a state has the same type and place in the two programs. Both have passed verifyEntry().
static bool isSameState(const plan::Program &programA, const plan::State &a,
                        const plan::Program &programB, const plan::State &b) {
  return a.name() == b.name() && typeOf(a) == typeOf(b) && fileTypeOf(a) == fileTypeOf(b) &&
         axesByDim(a.sharding()) == axesByDim(b.sharding()) && a.parameter() == b.parameter() &&
         a.kind() == b.kind() &&
         programA.buffers(static_cast<int>(a.buffer())).offset() ==
             programB.buffers(static_cast<int>(b.buffer())).offset() &&
         programA.buffers(static_cast<int>(a.buffer())).memory() ==
             programB.buffers(static_cast<int>(b.buffer())).memory();
}

/// The states of a entryPoint lie where those of the plan do. Both have passed verifyEntry().
static MaybeError checkSharedStates(const plan::Plan &plan, const plan::Plan &entryPoint) {
  for (int p = 0; p < plan.programs_size(); ++p) {
    const plan::Program &own = plan.programs(p), &other = entryPoint.programs(p);
    int count = own.states_size(), found = other.states_size();
    for (int i = 0; i < std::min(count, found); ++i)
      if (!isSameState(own, own.states(i), other, other.states(i)))
        return Error{
            fmt::format("program {}: state {} is \"{}\", {}, and in the plan's own program "
                        "\"{}\", {}; expected the same in the same place",
                        p, i, other.states(i).name(), typeOf(other.states(i)).str(),
                        own.states(i).name(), typeOf(own.states(i)).str())};
    if (count != found)
      return Error{fmt::format("program {} has {} states; expected {}, those of the plan's own "
                               "program",
                               p, found, count)};
  }
  return std::nullopt;
}

static MaybeError checkEntryPoint(const plan::Plan &plan, const plan::Plan &entryPoint,
                                  WorkLimit &budget) {
  if (entryPoint.entry_points_size() > 0)
    return Error{"has entry points of its own; expected none"};
  if (!std::equal(plan.axes().begin(), plan.axes().end(), entryPoint.axes().begin(),
                  entryPoint.axes().end(), isSameAxis))
    return Error{"its mesh axes are not those of the plan"};
  if (Expected<VerifierResult> facts = verifyEntry(entryPoint, false, budget); !facts)
    return facts.error();
  return checkSharedStates(plan, entryPoint);
}

Expected<VerifierResult> verifyWithin(WorkLimit budget, const plan::Plan &plan, bool repeatsLoop) {
  Expected<VerifierResult> facts = verifyEntry(plan, repeatsLoop, budget);
  if (!facts)
    return facts.error();
  if (!plan.entry().empty())
    return Error{fmt::format("the plan is the entry point \"{}\" of another one", plan.entry())};
  if (plan.entry_points_size() > kMaxEntryPoints)
    return Error{fmt::format("the plan has {} entry points beside its own; at most {} are allowed",
                             plan.entry_points_size(), kMaxEntryPoints)};
  std::set<std::string> names;
  for (const plan::Plan &entryPoint : plan.entry_points()) {
    if (entryPoint.entry().empty())
      return Error{"an entry point has no name"};
    if (!names.insert(entryPoint.entry()).second)
      return Error{fmt::format("two entry points are named \"{}\"; names must be distinct",
                               entryPoint.entry())};
    if (MaybeError error = checkEntryPoint(plan, entryPoint, budget))
      return error->inContext(fmt::format("entry point \"{}\"", entryPoint.entry()));
  }
  if (MaybeError error = checkReplicas(plan))
    return *error;
  return facts;
}

Expected<VerifierResult> verifyPlan(const plan::Plan &plan, bool repeatsLoop) {
  return verifyWithin(WorkLimit(), plan, repeatsLoop);
}

MaybeError findPlanError(const plan::Plan &plan, bool repeatsLoop) {
  Expected<VerifierResult> facts = verifyPlan(plan, repeatsLoop);
  if (!facts)
    return facts.error();
  return std::nullopt;
}

} // namespace dtc
