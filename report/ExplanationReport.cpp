//===- ExplanationReport.cpp - Explanations as text and as JSON -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/ExplanationReport.h"

#include "plan/PlanTypes.h"
#include "support/Format.h"
#include "support/Printable.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <string_view>

namespace dtc {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static const char *describeOrigin(LinkOrigin origin) {
  switch (origin) {
  case LinkOrigin::Assumed:
    return "assumed";
  case LinkOrigin::Plan:
    return "from the plan";
  case LinkOrigin::Option:
    return "from --link";
  }
  return "";
}

/// "25 GB/s 10 us (assumed)".
static std::string describeLink(const AxisLink &link) {
  if (link.bandwidthFrom == link.latencyFrom)
    return fmt::format("{} ({})", formatLinkSpeed(link.speed), describeOrigin(link.bandwidthFrom));
  return fmt::format("{} ({}) {} ({})", formatLinkSpeed({link.speed.bandwidth, 0}),
                     describeOrigin(link.bandwidthFrom), formatLinkSpeed({0, link.speed.latency}),
                     describeOrigin(link.latencyFrom));
}

/// The links by axis. The sub-axes of an axis that was split are one if their links are.
static std::vector<std::string> describeLinks(const std::vector<AxisLink> &links) {
  std::vector<std::string> texts, done;
  for (const AxisLink &link : links) {
    bool alike =
        !link.subAxisOf.empty() &&
        std::all_of(links.begin(), links.end(), [&](const AxisLink &other) {
          return other.subAxisOf != link.subAxisOf || describeLink(other) == describeLink(link);
        });
    const std::string &name = alike ? link.subAxisOf : link.axis;
    if (std::find(done.begin(), done.end(), name) != done.end())
      continue;
    done.push_back(name);
    texts.push_back(name + " " + describeLink(link));
  }
  return texts;
}

static std::string describeCollective(const ExplainedCollective &collective) {
  return fmt::format("{} over {}", collective.kindName(), fmt::join(collective.parentAxes, "+"));
}

namespace {

/// Tensors of a bucket that are alike but for the number of their layer.
struct TensorRow {
  ExplainedTensor tensor;
  size_t count = 0;
};

class ExplanationText {
public:
  ExplanationText(const PlanExplanation &explanation, size_t top)
      : explanation(explanation), top(top) {}

  std::string write() {
    writeHead();
    if (explanation.collectives.empty())
      return std::move(text);
    writeGroups();
    writeTotals();
    return std::move(text);
  }

private:
  static constexpr size_t columns = 120;
  static constexpr size_t labelColumn = 5;
  static constexpr size_t fieldColumn = 13;

  /// Names are a plan's, so that a line may hold anything.
  template <typename... T> void line(fmt::format_string<T...> format, T &&...values) {
    text += printable(fmt::format(format, std::forward<T>(values)...)) + '\n';
  }

  /// A label and a text after it, broken at spaces where it is too long for one line.
  void field(std::string_view label, std::string_view value) {
    std::string current =
        fmt::format("{:{}}{:<{}}", "", labelColumn, label, fieldColumn - labelColumn);
    bool empty = true;
    while (!value.empty()) {
      size_t space = std::min(value.find(' '), value.size());
      if (!empty && current.size() + 1 + space > columns) {
        line("{}", current);
        current.assign(fieldColumn, ' ');
        empty = true;
      }
      current += empty ? "" : " ";
      current += value.substr(0, space);
      empty = false;
      value.remove_prefix(std::min(space + 1, value.size()));
    }
    line("{}", current);
  }

  bool hasSends() const {
    return std::any_of(explanation.collectives.begin(), explanation.collectives.end(),
                       [](const ExplainedCollective &collective) { return collective.isSend; });
  }

  const char *callsOf(const CommunicationTotal &total) const {
    return hasSends() ? "collectives and sends" : total.calls == 1 ? "collective" : "collectives";
  }

  void writeHead() {
    const CommunicationTotal &total = explanation.total;
    line("model  {}, {} {}", explanation.model.empty() ? "unnamed" : explanation.model,
         explanation.numDevices, explanation.numDevices == 1 ? "device" : "devices");
    if (explanation.collectives.empty()) {
      line("no collectives: the devices send nothing{}", explanation.outerStep ? " in a step" : "");
      writeOuterStep();
      return;
    }
    std::vector<std::string> links = describeLinks(explanation.links);
    std::string joined = fmt::format("links: {}", fmt::join(links, ", "));
    if (joined.size() <= columns)
      line("{}", joined);
    else
      for (size_t i = 0; i < links.size(); ++i)
        line("{} {}", i == 0 ? "links:" : "      ", links[i]);
    bool pipelined = explanation.byProgram.size() > 1;
    line("a step: {} {} in {} {}, {} one after the other{}",
         pipelined
             ? fmt::format("{} devices, one for each program, send", explanation.byProgram.size())
             : "each device sends",
         formatBytes(total.bytes), total.calls, callsOf(total), formatDuration(total.seconds),
         total.asyncSeconds > 0
             ? fmt::format(", {} of it overlapped", formatDuration(total.asyncSeconds))
             : "");
    writeOuterStep();
    line("times are estimates for rings: bytes / bandwidth and a latency for each message");
  }

  void writeOuterStep() {
    if (explanation.outerStep)
      line("{} after every H-th step (dtc-run --outer-every H): {} more in {} {}, {}; "
           "1/H of it for each step",
           explanation.outerFragments > 0
               ? fmt::format("the outer steps of {} fragment{}, each", explanation.outerFragments,
                             explanation.outerFragments == 1 ? "" : "s")
               : "an outer step,",
           formatBytes(explanation.outerStep->bytes), explanation.outerStep->calls,
           explanation.outerStep->calls == 1 ? "collective" : "collectives",
           formatDuration(explanation.outerStep->seconds));
  }

  void writeGroups() {
    line("");
    line("{:>3}  {:<34} {:>8} {:>12} {:>12} {:>12} {:>7}", "", "collective", "a step", "sent each",
         "sent a step", "time a step", "share");
    size_t shown = std::min(top, explanation.groups.size());
    for (size_t i = 0; i < shown; ++i)
      writeGroup(i + 1, explanation.groups[i]);
    if (shown == explanation.groups.size())
      return;
    CommunicationTotal rest;
    for (size_t i = shown; i < explanation.groups.size(); ++i) {
      rest.calls += explanation.groups[i].calls;
      rest.bytes += explanation.groups[i].bytes;
      rest.seconds += explanation.groups[i].seconds;
    }
    line("     {} more, together {} {} a step, {}, {}; --top {} shows all",
         explanation.groups.size() - shown, rest.calls,
         hasSends() ? "collectives and sends" : "collectives", formatBytes(rest.bytes),
         formatDuration(rest.seconds), explanation.groups.size());
  }

  void writeGroup(size_t number, const ExplainedRow &group) {
    ExplainedCollective collective = representativeOf(explanation, group);
    double share = explanation.total.seconds > 0 ? group.seconds / explanation.total.seconds : 0;
    line("{:>3}  {:<34} {:>8} {:>12} {:>12} {:>12} {:>6.1f}%", number,
         describeCollective(collective), group.calls, formatBytes(collective.bytes),
         formatBytes(group.bytes), formatDuration(group.seconds), 100 * share);
    size_t members = group.members.size();
    field("at",
          fmt::format("{} (task {}{}{})",
                      collective.location.empty() ? "an unknown place" : collective.location,
                      collective.task, members > 1 ? fmt::format(", {} in the plan", members) : "",
                      collective.async ? ", overlapped with computation" : ""));
    bool isBucket = collective.tensors.size() > 1;
    if (isBucket)
      field(collective.isSend ? "message" : "bucket",
            fmt::format("{} tensors that move together", collective.tensors.size()));
    for (const TensorRow &row : mergeAlike(collective.tensors))
      writeTensor(row, isBucket, collective.location);
  }

  void writeTensor(const TensorRow &row, bool inBucket, const std::string &location) {
    const ExplainedReason &reason = row.tensor.reason;
    std::string moves = row.count > 1 ? fmt::format("{} x ", row.count) : "";
    moves += row.tensor.type;
    if (inBucket)
      moves += ", sends " + formatBytes(row.tensor.bytes);
    if (!reason.value.empty())
      moves += ", " + reason.value;
    if (!reason.producer.empty() && reason.producer != location)
      moves += " made at " + reason.producer;
    field("moves", moves);
    if (!reason.known()) {
      field("why", "the plan does not say");
      return;
    }
    field("from", reason.from);
    field("to", reason.to);
    if (!reason.consumer.empty())
      field("for", reason.consumer);
    if (!reason.remedy.empty())
      field("remedy", reason.remedy);
  }

  /// Merges alike tensors, in the order of the first of each kind.
  static std::vector<TensorRow> mergeAlike(const std::vector<ExplainedTensor> &tensors) {
    std::vector<TensorRow> rows;
    std::map<std::vector<std::string>, size_t> numbers; // of rows, by all that a pattern says
    for (const ExplainedTensor &tensor : tensors) {
      ExplainedTensor pattern = tensor;
      for (std::string ExplainedReason::*member :
           {&ExplainedReason::value, &ExplainedReason::producer, &ExplainedReason::consumer,
            &ExplainedReason::remedy})
        pattern.reason.*member = layerPattern(tensor.reason.*member, /*keepsPlaces=*/false);
      const ExplainedReason &reason = pattern.reason;
      auto [it, isNew] = numbers.try_emplace({pattern.type, std::to_string(pattern.bytes),
                                              reason.value, reason.from, reason.to, reason.producer,
                                              reason.consumer, reason.remedy},
                                             rows.size());
      if (isNew) {
        rows.push_back({tensor, 1});
        continue;
      }
      TensorRow &row = rows[it->second];
      ++row.count;
      if (row.tensor != tensor)
        row.tensor = std::move(pattern);
    }
    return rows;
  }

  void writeTotals() {
    size_t width = 24;
    for (const auto *totals : {&explanation.byAxes, &explanation.byKind})
      for (const CommunicationTotal &total : *totals)
        width = std::max(width, total.name.size() + 2);
    auto row = [&](std::string_view name, const CommunicationTotal &total) {
      line("{:<{}} {:>12} {:>12} {:>12} {:>12}", name, width, total.instructions, total.calls,
           formatBytes(total.bytes), formatDuration(total.seconds));
    };
    auto table = [&](const char *title, const std::vector<CommunicationTotal> &totals) {
      line("");
      line("{:<{}} {:>12} {:>12} {:>12} {:>12}", title, width, "in the plan", "a step",
           "sent a step", "time a step");
      for (const CommunicationTotal &total : totals)
        row("  " + total.name, total);
    };
    table("by axes", explanation.byAxes);
    table("by kind", explanation.byKind);
    row("all", explanation.total);
    if (explanation.byProgram.size() > 1)
      table("by program", explanation.byProgram);
  }

  const PlanExplanation &explanation;
  size_t top;
  std::string text;
};

} // namespace

std::string formatExplanation(const PlanExplanation &explanation, size_t top) {
  return ExplanationText(explanation, top).write();
}

} // namespace dtc
