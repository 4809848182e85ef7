//===- PlanReport.cpp - Summaries of plans as text and as JSON ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/report/PlanReport.h"

#include "runtime/support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// "1.5 G": a number with a decimal prefix.
static std::string formatCount(double value) {
  static constexpr const char *prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return prefix == 0 ? fmt::format("{:.0f}", value)
                     : fmt::format("{:.1f}{}", value, prefixes[prefix]);
}

static std::string formatFlops(double flops) {
  std::string count = formatCount(flops);
  return count + (flops < 1000 ? " FLOP" : "FLOP");
}

/// "dp=2", "tp=4 (as tp.0=2, tp.1=2)", "micro=8 (temporal)". Neighbours that are parts of one axis
/// are shown as that.
static std::vector<std::string> describeAxes(const std::vector<AxisSummary> &axes) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < axes.size();) {
    const AxisSummary &axis = axes[i];
    size_t end = i + 1;
    while (!axis.partOf.empty() && end < axes.size() && axes[end].partOf == axis.partOf)
      ++end;
    std::vector<std::string> parts;
    int64_t size = 1;
    for (; i < end; ++i) {
      parts.push_back(fmt::format("{}={}", axes[i].name, axes[i].size));
      size *= axes[i].size;
    }
    texts.push_back(parts.size() == 1
                        ? parts.front() + (axis.temporal ? " (temporal)" : "")
                        : fmt::format("{}={} (as {})", axis.partOf, size, fmt::join(parts, ", ")));
  }
  return texts;
}

namespace {

class TextWriter {
public:
  explicit TextWriter(const PlanSummary &summary) : summary(summary) {}

  std::string write() {
    writeHead();
    writeMemory();
    line("");
    line("FLOPs of a step  {} on a device, {} on all", formatFlops(summary.flops),
         formatFlops(summary.totalFlops()));
    writeKernels();
    writeCollectives();
    writeSchedule();
    return std::move(text);
  }

private:
  template <typename... T> void line(fmt::format_string<T...> format, T &&...values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
    text += '\n';
  }

  void writeHead() {
    line("model       {} (version {}, by {})", summary.model.empty() ? "unnamed" : summary.model,
         summary.version, summary.producer.empty() ? "an unknown producer" : summary.producer);
    line("parameters  {} in {} tensors, {}",
         formatCount(static_cast<double>(summary.parameterElements)), summary.parameterTensors,
         formatBytes(summary.parameterBytes));
    std::vector<std::string> axes = describeAxes(summary.axes);
    line("mesh        {}{}{} {}{}", fmt::join(axes, ", "), axes.empty() ? "" : ": ",
         summary.numDevices, summary.numDevices == 1 ? "device" : "devices",
         summary.microbatches > 1 ? fmt::format(", {} microbatches", summary.microbatches) : "");
  }

  void writeMemory() {
    const PeakMemory &peak = summary.peak;
    line("");
    line("memory of a device");
    if (uint64_t total = peak.total()) {
      auto row = [&](const char *kind, uint64_t bytes) {
        if (bytes > 0)
          line("  {:<20} {:>12} {:>6.1f}%", kind, formatBytes(bytes),
               100 * static_cast<double>(bytes) / static_cast<double>(total));
      };
      row("parameters", peak.parameters);
      row("gradients", peak.gradients);
      row("optimizer state", peak.optimizerState);
      row("activations", peak.activations);
      row("constants", peak.constants);
      row("inputs and outputs", peak.inputsAndOutputs);
      row("other", peak.other);
      line("  {:<20} {:>12}", "live at the peak", formatBytes(total));
    }
    if (std::optional<double> ratio = summary.arenaRatio()) {
      line("  {:<20} {:>12}", "lower bound", formatBytes(summary.arenaLowerBound));
      line("  {:<20} {:>12}  {:.3f} x the lower bound", "arena", formatBytes(summary.arenaBytes),
           *ratio);
    } else {
      line("  {:<20} {:>12}", "arena", formatBytes(summary.arenaBytes));
    }
  }

  void writeKernels() {
    if (summary.kernels.empty())
      return;
    size_t width = 24;
    for (const KernelSummary &kernel : summary.kernels)
      width = std::max(width, kernel.kernel.size() + 2);
    line("");
    line("{:<{}} {:>12} {:>14} {:>14}", "kernels", width, "in the plan", "calls a step", "FLOPs");
    for (const KernelSummary &kernel : summary.kernels)
      line("  {:<{}} {:>12} {:>14} {:>14}", kernel.kernel, width - 2, kernel.instructions,
           kernel.calls, kernel.flops > 0 ? formatFlops(kernel.flops) : "");
  }

  void writeCollectives() {
    line("");
    if (summary.collectives.empty()) {
      line("no collectives");
      return;
    }
    auto title = [](const CollectiveSummary &collective) {
      return fmt::format("{} over {}", name(collective.kind), fmt::join(collective.userAxes, "+"));
    };
    size_t width = 24;
    for (const CollectiveSummary &collective : summary.collectives)
      width = std::max(width, title(collective).size() + 2);
    line("{:<{}} {:>12} {:>10} {:>14} {:>12} {:>14}", "collectives", width, "in the plan",
         "tensors", "calls a step", "group size", "sent a step");
    for (const CollectiveSummary &collective : summary.collectives)
      line("  {:<{}} {:>12} {:>10} {:>14} {:>12} {:>14}", title(collective), width - 2,
           collective.instructions, collective.tensors, collective.calls, collective.members,
           formatBytes(collective.bytes));
    uint64_t instructions = 0, async = 0;
    for (const CollectiveSummary &collective : summary.collectives) {
      instructions += collective.instructions;
      async += collective.asyncInstructions;
    }
    if (async > 0)
      line("  {} collectives in the plan, of which {} run beside compute", instructions, async);
    line("  sent by a device in a step: {}; by all: {}", formatBytes(summary.sentBytes.total()),
         formatBytes(summary.sentBytes.total() * static_cast<uint64_t>(summary.numDevices)));
  }

  void writeSchedule() {
    line("");
    line("{:<24} {:>12} {:>14} {:>14}", "tasks", "instructions", "runs a step", "FLOPs a run");
    for (const TaskSummary &task : summary.tasks)
      line("  {:<22} {:>12} {:>14} {:>14}", task.name, task.instructions, task.runs,
           task.flops > 0 ? formatFlops(task.flops) : "");
    std::vector<std::string> spans;
    for (const ScheduleSpan &span : summary.schedule) {
      // A long schedule that alternates tells nothing more to people.
      constexpr size_t mostSpans = 16;
      if (spans.size() == mostSpans) {
        spans.push_back(fmt::format("{} more", summary.schedule.size() - mostSpans));
        break;
      }
      spans.push_back(formatSpan(span));
    }
    line("schedule  {}", spans.empty() ? "empty" : fmt::format("{}", fmt::join(spans, ", ")));
  }

  std::string formatSpan(const ScheduleSpan &span) const {
    const std::string &task = summary.tasks[span.task].name;
    if (summary.microbatches == 1 || (span.count == 1 && summary.tasks[span.task].runs == 1))
      return task;
    if (span.count == 1)
      return fmt::format("{}[{}]", task, span.firstMicrobatch);
    return fmt::format("{}[{}..{}]", task, span.firstMicrobatch,
                       span.firstMicrobatch + span.count - 1);
  }

  const PlanSummary &summary;
  std::string text;
};

} // namespace

std::string formatSummary(const PlanSummary &summary) { return TextWriter(summary).write(); }

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static Json memoryToJson(const PlanSummary &summary) {
  const PeakMemory &peak = summary.peak;
  Json json = {{"arena_bytes", summary.arenaBytes},
               {"arena_lower_bound_bytes", summary.arenaLowerBound},
               {"arena_ratio", nullptr}};
  if (std::optional<double> ratio = summary.arenaRatio())
    json["arena_ratio"] = *ratio;
  json["peak_bytes"] = {{"parameters", peak.parameters},
                        {"gradients", peak.gradients},
                        {"optimizer_state", peak.optimizerState},
                        {"activations", peak.activations},
                        {"constants", peak.constants},
                        {"inputs_and_outputs", peak.inputsAndOutputs},
                        {"other", peak.other},
                        {"total", peak.total()}};
  return json;
}

std::string summaryToJson(const PlanSummary &summary) {
  Json axes = Json::array(), kernels = Json::array(), collectives = Json::array(),
       tasks = Json::array(), schedule = Json::array();
  for (const AxisSummary &axis : summary.axes) {
    axes.push_back({{"name", axis.name}, {"size", axis.size}, {"temporal", axis.temporal}});
    if (!axis.partOf.empty())
      axes.back()["part_of"] = axis.partOf;
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
  Json json = {
      {"model", summary.model},
      {"version", summary.version},
      {"producer", summary.producer},
      {"mesh",
       {{"axes", axes}, {"devices", summary.numDevices}, {"microbatches", summary.microbatches}}},
      {"parameters",
       {{"tensors", summary.parameterTensors},
        {"elements", summary.parameterElements},
        {"bytes", summary.parameterBytes}}},
      {"memory", memoryToJson(summary)},
      {"flops", {{"device", summary.flops}, {"all_devices", summary.totalFlops()}}},
      {"instructions", summary.instructions},
      {"kernels", kernels},
      {"collectives", collectives},
      {"sent_bytes",
       {{"device", summary.sentBytes.total()},
        {"all_devices", summary.sentBytes.total() * static_cast<uint64_t>(summary.numDevices)}}},
      {"tasks", tasks},
      {"schedule", schedule}};
  // Names come from files and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dtc::runtime
