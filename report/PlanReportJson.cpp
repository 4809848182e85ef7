//===- PlanReportJson.cpp - Summaries of plans as JSON --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PlanReport.h"
#include "report/TimelineReport.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace dtc {

using Json = nlohmann::ordered_json;

static Json toJson(const PeakMemory &peak) {
  return {{"parameters", peak.parameters},
          {"master_weights", peak.masterWeights},
          {"gradients", peak.gradients},
          {"optimizer_state", peak.optimizerState},
          {"activations", peak.activations},
          {"caches", peak.caches},
          {"constants", peak.constants},
          {"inputs_and_outputs", peak.inputsAndOutputs},
          {"other", peak.other},
          {"total", peak.total()}};
}

/// Adds the contents of the host's memory for a program, if there are any.
static void addHostMemory(Json &memory, const ProgramSummary &program) {
  if (program.hostArenaBytes > 0)
    memory["host"] = {{"arena_bytes", program.hostArenaBytes},
                      {"peak_bytes", toJson(program.hostPeak)}};
}

static Json memoryToJson(uint64_t arenaBytes, uint64_t lowerBound, std::optional<double> ratio,
                         const PeakMemory &peak) {
  Json json = {{"arena_bytes", arenaBytes},
               {"arena_lower_bound_bytes", lowerBound},
               {"arena_ratio", nullptr}};
  if (ratio)
    json["arena_ratio"] = *ratio;
  json["peak_bytes"] = toJson(peak);
  return json;
}

static Json toJson(const TransferSummary &transfers) {
  return {{"instructions", transfers.instructions},
          {"tensors", transfers.tensors},
          {"messages", transfers.messages},
          {"sent_bytes", transfers.bytes}};
}

static Json toJson(const PlanPeak &peak) {
  Json values = Json::array();
  for (const PeakValue &value : peak.values)
    values.push_back({{"name", value.name},
                      {"kind", name(value.kind)},
                      {"type", value.type.str()},
                      {"location", value.location},
                      {"copies", value.copies},
                      {"bytes", value.bytes}});
  return {
      {"task", peak.task}, {"location", peak.location}, {"bytes", peak.bytes}, {"largest", values}};
}

/// Adds the fields of plans with a pipeline.
static void addPipeline(Json &json, const PlanSummary &summary) {
  Json programs = Json::array();
  for (size_t p = 0; p < summary.programs.size(); ++p) {
    const ProgramSummary &program = summary.programs[p];
    Json memory = memoryToJson(program.arenaBytes, program.arenaLowerBound, program.arenaRatio(),
                               program.peak);
    memory["slot_bytes"] = program.slotBytes;
    memory["most_slots"] = program.mostSlots;
    addHostMemory(memory, program);
    programs.push_back({{"coordinate", p},
                        {"memory", memory},
                        {"flops", program.flops},
                        {"sent_bytes", program.sentBytes()},
                        {"transfers", toJson(program.transfers)}});
  }
  json["pipeline"] = {{"axis", summary.pipelineAxis},
                      {"schedule", summary.pipelineSchedule},
                      {"stages", summary.stages},
                      {"largest_program", summary.largestProgram},
                      {"transfers", toJson(summary.transfers)},
                      {"programs", programs}};
}

std::string summaryToJson(const PlanSummary &summary, const Timeline *timeline,
                          const PlanPeak *peak) {
  Json axes = Json::array(), kernels = Json::array(), collectives = Json::array(),
       tasks = Json::array(), schedule = Json::array();
  for (const AxisSummary &axis : summary.axes) {
    axes.push_back({{"name", axis.name}, {"size", axis.size}, {"temporal", axis.temporal}});
    if (!axis.subAxisOf.empty())
      axes.back()["sub_axis_of"] = axis.subAxisOf;
  }
  for (const KernelSummary &kernel : summary.kernels)
    kernels.push_back({{"kernel", kernel.kernel},
                       {"instructions", kernel.instructions},
                       {"calls", kernel.calls},
                       {"flops", kernel.flops}});
  for (const CollectiveSummary &collective : summary.collectives)
    collectives.push_back({{"kind", name(collective.kind)},
                           {"axes", collective.axes},
                           {"members", collective.members},
                           {"instructions", collective.instructions},
                           {"async_instructions", collective.asyncInstructions},
                           {"tensors", collective.tensors},
                           {"calls", collective.calls},
                           {"sent_bytes", collective.bytes}});
  for (const TaskSummary &task : summary.tasks)
    tasks.push_back({{"name", task.name},
                     {"instructions", task.instructions},
                     {"runs", task.runs},
                     {"flops", task.flops}});
  for (const ScheduleSpan &span : summary.schedule)
    schedule.push_back({{"task", summary.tasks[span.task].name},
                        {"first_microbatch", span.firstMicrobatch},
                        {"count", span.count}});
  if (summary.isPipelined()) {
    for (size_t i = 0; i < tasks.size(); ++i)
      tasks[i]["program"] = summary.tasks[i].program;
    for (size_t i = 0; i < schedule.size(); ++i)
      schedule[i]["program"] = summary.tasks[summary.schedule[i].task].program;
  }
  Json json = {
      {"model", summary.model},
      {"version", summary.version},
      {"producer", summary.producer},
      {"entry_points", summary.entryPoints},
      {"mesh",
       {{"axes", axes}, {"devices", summary.numDevices}, {"microbatches", summary.microbatches}}},
      {"parameters",
       {{"tensors", summary.parameterTensors},
        {"elements", summary.parameterElements},
        {"bytes", summary.parameterBytes}}},
      {"memory", memoryToJson(summary.arenaBytes, summary.arenaLowerBound, summary.arenaRatio(),
                              summary.peak)},
      {"flops", {{"device", summary.flops}, {"all_devices", summary.totalFlops()}}},
      {"instructions", summary.instructions},
      {"kernels", kernels},
      {"collectives", collectives},
      {"sent_bytes",
       {{"device", summary.sentBytes.total() + summary.transfers.bytes},
        {"all_devices", summary.sentByAll()}}},
      {"tasks", tasks},
      {"schedule", schedule}};
  addHostMemory(json["memory"], summary.programs[summary.largestProgram]);
  if (summary.isPipelined())
    addPipeline(json, summary);
  if (peak)
    json["memory"]["peak"] = toJson(*peak);
  if (timeline)
    json["timeline"] = timelineToJson(*timeline);
  // Names come from files and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dtc
