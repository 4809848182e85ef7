//===- PlanReport.cpp - Summaries of plans as text ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PlanReport.h"

#include "report/PlanExplanation.h"
#include "support/Format.h"
#include "support/Printable.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>

namespace dtc {

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
    while (!axis.subAxisOf.empty() && end < axes.size() && axes[end].subAxisOf == axis.subAxisOf)
      ++end;
    std::vector<std::string> parts;
    int64_t size = 1;
    for (; i < end; ++i) {
      parts.push_back(fmt::format("{}={}", axes[i].name, axes[i].size));
      size *= axes[i].size;
    }
    texts.push_back(parts.size() == 1 ? parts.front() + (axis.temporal ? " (temporal)" : "")
                                      : fmt::format("{}={} (as {})", axis.subAxisOf, size,
                                                    fmt::join(parts, ", ")));
  }
  return texts;
}

namespace {

class SummaryText {
public:
  SummaryText(const PlanSummary &summary, const PlanPeak *peak) : summary(summary), peak(peak) {}

  std::string write() {
    writeHead();
    if (summary.isPipelined()) {
      writeMemoryByProgram();
      writePeak();
      line("");
      line("FLOPs of a step  {} on all, {} on the device that has most",
           formatFlops(summary.totalFlops()), formatFlops(mostFlops()));
    } else {
      writeMemory();
      writePeak();
      line("");
      line("FLOPs of a step  {} on a device, {} on all", formatFlops(summary.flops),
           formatFlops(summary.totalFlops()));
    }
    writeKernels();
    writeCollectives();
    if (summary.isPipelined())
      writeTasksOfPipeline();
    else
      writeSchedule();
    return std::move(text);
  }

private:
  /// Names are a plan's, so that a line may hold anything.
  template <typename... T> void line(fmt::format_string<T...> format, T &&...values) {
    text += printable(fmt::format(format, std::forward<T>(values)...)) + '\n';
  }

  void writeHead() {
    line("model       {} (version {}, by {})", summary.model.empty() ? "unnamed" : summary.model,
         summary.version, summary.producer.empty() ? "an unknown producer" : summary.producer);
    line("parameters  {} in {} tensors, {}",
         formatCount(static_cast<double>(summary.parameterElements)), summary.parameterTensors,
         formatBytes(summary.parameterBytes));
    if (!summary.entry.empty())
      line("entry       {}", summary.entry);
    if (!summary.entryPoints.empty())
      line("also        {} (see --entry)", fmt::join(summary.entryPoints, ", "));
    std::vector<std::string> axes = describeAxes(summary.axes);
    line("mesh        {}{}{} {}{}", fmt::join(axes, ", "), axes.empty() ? "" : ": ",
         summary.numDevices, summary.numDevices == 1 ? "device" : "devices",
         summary.microbatches > 1 ? fmt::format(", {} microbatches", summary.microbatches) : "");
    if (summary.isPipelined())
      line("pipeline    {} programs over {}{}{}; counts below are of one device for each",
           summary.programs.size(), summary.pipelineAxis,
           summary.stages > 0 ? fmt::format(", {} stages", summary.stages) : "",
           summary.pipelineSchedule.empty() ? "" : ", schedule " + summary.pipelineSchedule);
  }

  double mostFlops() const {
    double most = 0;
    for (const ProgramSummary &program : summary.programs)
      most = std::max(most, program.flops);
    return most;
  }

  /// A column for each kind that any program has.
  void writeMemoryByProgram() {
    struct Column {
      std::string title;
      uint64_t (*bytes)(const ProgramSummary &);
    };
    using P = const ProgramSummary &;
    const Column all[] = {{"parameters", [](P p) { return p.peak.parameters; }},
                          {"masters", [](P p) { return p.peak.masterWeights; }},
                          {"gradients", [](P p) { return p.peak.gradients; }},
                          {"optimizer", [](P p) { return p.peak.optimizerState; }},
                          {"activations", [](P p) { return p.peak.activations; }},
                          {"caches", [](P p) { return p.peak.caches; }},
                          {"constants", [](P p) { return p.peak.constants; }},
                          {"in and out", [](P p) { return p.peak.inputsAndOutputs; }},
                          {"other", [](P p) { return p.peak.other; }},
                          {"at the peak", [](P p) { return p.peak.total(); }},
                          {"lower bound", [](P p) { return p.arenaLowerBound; }},
                          {"arena", [](P p) { return p.arenaBytes; }},
                          {"in slots", [](P p) { return p.slotBytes; }},
                          {"on the host", [](P p) { return p.hostArenaBytes; }}};
    std::vector<Column> columns;
    for (const Column &column : all)
      if (std::any_of(summary.programs.begin(), summary.programs.end(),
                      [&](P program) { return column.bytes(program) > 0; }))
        columns.push_back(column);
    line("");
    std::string row = fmt::format("{:<14}", "memory");
    for (const Column &column : columns)
      row += fmt::format(" {:>11}", column.title);
    line("{}   slots", row);
    for (size_t p = 0; p < summary.programs.size(); ++p) {
      const ProgramSummary &program = summary.programs[p];
      row = fmt::format("{:<14}", fmt::format("  {}={}", summary.pipelineAxis, p));
      for (const Column &column : columns)
        row += fmt::format(" {:>11}", formatBytes(column.bytes(program)));
      line("{} {:>7}{}", row, program.mostSlots, p == summary.largestProgram ? "  largest" : "");
    }
    if (std::optional<double> ratio = summary.arenaRatio())
      line("  the largest arena is {:.3f} x its lower bound", *ratio);
    line("  slots: the most values of microbatches that a buffer, or several in turn, have room "
         "for");
  }

  /// Tasks that differ only in the number of their stage or channel are one row.
  void writeTasksOfPipeline() {
    struct Row {
      uint64_t tasks = 0, instructions = 0, runs = 0;
      double flops = 0;
    };
    std::vector<std::pair<std::string, Row>> rows; // in the order of the plan
    std::map<std::string, size_t> numbers;         // of rows
    for (const TaskSummary &task : summary.tasks) {
      std::string name = layerPattern(task.name);
      auto [it, isNew] = numbers.try_emplace(name, rows.size());
      if (isNew)
        rows.emplace_back(name, Row{});
      Row &row = rows[it->second].second;
      ++row.tasks;
      row.instructions += task.instructions;
      row.runs += task.runs;
      row.flops += task.runs == 0 ? 0 : task.flops * static_cast<double>(task.runs);
    }
    line("");
    line("{:<24} {:>12} {:>12} {:>14} {:>14}", "tasks", "in the plan", "instructions",
         "runs a step", "FLOPs");
    for (const auto &[name, row] : rows)
      line("  {:<22} {:>12} {:>12} {:>14} {:>14}", name, row.tasks, row.instructions, row.runs,
           row.flops > 0 ? formatFlops(row.flops) : "");
    line("schedule  dtc-plan show --schedule draws it");
  }

  void writePeakByKind(const PeakMemory &peak) {
    uint64_t total = peak.total();
    if (total == 0)
      return;
    auto row = [&](const char *kind, uint64_t bytes) {
      if (bytes > 0)
        line("  {:<20} {:>12} {:>6.1f}%", kind, formatBytes(bytes),
             100 * static_cast<double>(bytes) / static_cast<double>(total));
    };
    row("parameters", peak.parameters);
    row("master weights", peak.masterWeights);
    row("gradients", peak.gradients);
    row("optimizer state", peak.optimizerState);
    row("activations", peak.activations);
    row("caches", peak.caches);
    row("constants", peak.constants);
    row("inputs and outputs", peak.inputsAndOutputs);
    row("other", peak.other);
    line("  {:<20} {:>12}", "live at the peak", formatBytes(total));
  }

  void writeMemory() {
    line("");
    line("memory of a device");
    writePeakByKind(summary.peak);
    if (std::optional<double> ratio = summary.arenaRatio()) {
      line("  {:<20} {:>12}", "lower bound", formatBytes(summary.arenaLowerBound));
      line("  {:<20} {:>12}  {:.3f} x the lower bound", "arena", formatBytes(summary.arenaBytes),
           *ratio);
    } else {
      line("  {:<20} {:>12}", "arena", formatBytes(summary.arenaBytes));
    }
    const ProgramSummary &program = summary.programs[summary.largestProgram];
    if (program.hostArenaBytes == 0)
      return;
    line("");
    line("memory of the host for a device");
    writePeakByKind(program.hostPeak);
    line("  {:<20} {:>12}", "arena", formatBytes(program.hostArenaBytes));
  }

  void writePeak() {
    if (!peak || peak->values.empty())
      return;
    line("");
    line("largest at the peak{}, in the task \"{}\"{}",
         summary.isPipelined()
             ? fmt::format(" of {}={}", summary.pipelineAxis, summary.largestProgram)
             : "",
         peak->task, peak->location.empty() ? "" : " at " + peak->location);
    for (const PeakValue &value : peak->values)
      line("  {:>10} {:>5.1f}%  {:<15} {}{}, {}{}", formatBytes(value.bytes),
           100 * static_cast<double>(value.bytes) / static_cast<double>(peak->bytes),
           name(value.kind), value.type.str(),
           value.copies > 1 ? fmt::format(" x {}", value.copies) : "", value.name,
           value.location.empty() ? "" : " of " + value.location);
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
    const TransferSummary &sends = summary.transfers;
    if (summary.collectives.empty() && sends.instructions == 0) {
      line("no collectives");
      return;
    }
    auto title = [](const CollectiveSummary &collective) {
      return fmt::format("{} over {}", name(collective.kind),
                         fmt::join(collective.parentAxes, "+"));
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
    if (sends.instructions > 0)
      line("  {:<{}} {:>12} {:>10} {:>14} {:>12} {:>14}", "send over " + summary.pipelineAxis,
           width - 2, sends.instructions, sends.tensors, sends.messages, 2,
           formatBytes(sends.bytes));
    uint64_t instructions = 0, async = 0;
    for (const CollectiveSummary &collective : summary.collectives) {
      instructions += collective.instructions;
      async += collective.asyncInstructions;
    }
    if (async > 0)
      line("  {} collectives in the plan, {} of them overlapped with computation", instructions,
           async);
    if (!summary.isPipelined()) {
      line("  sent by a device in a step: {}; by all: {}", formatBytes(summary.sentBytes.total()),
           formatBytes(summary.sentByAll()));
      return;
    }
    uint64_t most = 0;
    for (const ProgramSummary &program : summary.programs)
      most = std::max(most, program.sentBytes());
    line("  sent by all in a step: {}; by the device that sends most: {}",
         formatBytes(summary.sentByAll()), formatBytes(most));
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
  const PlanPeak *peak;
  std::string text;
};

} // namespace

std::string formatSummary(const PlanSummary &summary, const PlanPeak *peak) {
  return SummaryText(summary, peak).write();
}

} // namespace dtc
