//===- CommunicationSection.cpp - Section on communication ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PlanExplanation.h"
#include "report/html/PageSections.h"
#include "support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <tuple>

namespace dtc {

namespace {

/// The seconds that each instruction which communicates is at work in the simulated step.
class SimulatedSeconds {
public:
  explicit SimulatedSeconds(const PageInput &input) : plan(input.plan) {
    const StepSimulation &step = input.simulation.step;
    for (size_t p = 0; p < step.collectives.size(); ++p)
      for (const CollectiveInterval &interval : step.collectives[p]) {
        const plan::Program &program = plan.programs(static_cast<int>(p));
        auto task = static_cast<int>(program.schedule(static_cast<int>(interval.execution)).task());
        seconds[{p, program.tasks(task).name(), static_cast<int>(interval.instruction)}] +=
            interval.end - interval.start;
      }
    for (const TransferInterval &transfer : step.timeline.transfers)
      channels[transfer.channel] += transfer.end - transfer.start;
  }

  double of(const ExplainedCollective &collective) const {
    if (collective.isSend)
      return ofSend(collective);
    auto it = seconds.find({collective.program, collective.task, collective.instruction});
    return it == seconds.end() ? 0 : it->second;
  }

private:
  double ofSend(const ExplainedCollective &send) const {
    const plan::Program &program = plan.programs(static_cast<int>(send.program));
    for (const plan::Task &task : program.tasks())
      if (task.name() == send.task && send.instruction < task.instructions_size()) {
        auto number =
            static_cast<int>(task.instructions(send.instruction).start_transfer().transfer());
        auto it = channels.find(program.transfers(number).channel());
        return it == channels.end() ? 0 : it->second;
      }
    return 0;
  }

  const plan::Plan &plan;
  std::map<std::tuple<size_t, std::string, int>, double> seconds;
  std::map<uint32_t, double> channels;
};

struct Row {
  const ExplainedRow *group = nullptr;
  double seconds = 0;
};

} // namespace

static void addByAxes(HtmlWriter &page, const PageInput &input, const PlanExplanation &explanation,
                      const SimulatedSeconds &seconds) {
  page.openTable("By axes, of one device at each pipeline coordinate together",
                 {"over", "#in the plan", "#calls a step", "#sent a step", "#at work a step",
                  "#nothing hides"});
  auto exposedOver = [&](const std::string &axes) {
    for (const AxesSeconds &exposed : input.simulation.exposed)
      if (exposed.axes == axes)
        return exposed.seconds * static_cast<double>(input.simulation.stages.size());
    return 0.0;
  };
  for (const CommunicationTotal &total : explanation.byAxes) {
    double working = 0;
    bool sends = false;
    for (const ExplainedCollective &collective : explanation.collectives)
      if (fmt::format("{}", fmt::join(collective.parentAxes, "+")) == total.name) {
        working += seconds.of(collective);
        sends |= collective.isSend;
      }
    double exposed = exposedOver(total.name);
    if (sends)
      exposed +=
          input.simulation.exposedTransfers * static_cast<double>(input.simulation.stages.size());
    page.open("tr").element("th", total.name, {{"scope", "row"}});
    page.number(withCommas(static_cast<double>(total.instructions)));
    page.number(withCommas(static_cast<double>(total.calls)));
    page.number(formatBytes(total.bytes));
    page.number(working > 0 ? formatDuration(working) : "-");
    page.number(exposed > 0 ? formatDuration(exposed) : "-").close();
  }
  page.closeTable();
}

static void addReason(HtmlWriter &page, const ExplainedCollective &collective) {
  page.open("td");
  if (collective.tensors.empty() || !collective.tensors.front().reason.known()) {
    page.text("-").close();
    return;
  }
  const ExplainedTensor &tensor = collective.tensors.front();
  const ExplainedReason &reason = tensor.reason;
  page.text(reason.value.empty() ? "a value" : reason.value).text(" ");
  page.element("code", tensor.type).text(": ");
  page.element("code", reason.from).text(" to ").element("code", reason.to);
  if (!reason.consumer.empty())
    page.text(", for " + reason.consumer);
  if (collective.tensors.size() > 1)
    page.text(fmt::format(" (and {} more tensors)", collective.tensors.size() - 1));
  if (!reason.remedy.empty())
    page.open("div", {{"class", "note"}}).text("Remedy: " + reason.remedy).close();
  page.close();
}

void addCommunication(HtmlWriter &page, const PageInput &input) {
  openSection(page, "communication", "Communication");
  PlanExplanation explanation = explainPlan(input.plan);
  if (explanation.collectives.empty()) {
    page.element("p", "The plan communicates nothing.").close();
    return;
  }
  page.element("p",
               "What devices send to each other, and why. \"At work\" is the time on the "
               "simulated cluster, which other work may hide; \"nothing hides\" is what devices "
               "wait for it.");
  SimulatedSeconds seconds(input);
  addByAxes(page, input, explanation, seconds);

  std::vector<Row> rows;
  for (const ExplainedRow &group : explanation.groups) {
    Row row{&group};
    for (size_t member : group.members)
      row.seconds += seconds.of(explanation.collectives[member]);
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row &a, const Row &b) { return a.seconds > b.seconds; });
  constexpr size_t most = 30;
  page.openTable(rows.size() > most
                     ? fmt::format("The {} of {} kinds that take longest; dtc-plan explain has all",
                                   most, rows.size())
                     : "All kinds, those that take longest first",
                 {"collective", "over", "at", "#calls", "#sent a step", "#at work", "why"});
  for (size_t i = 0; i < std::min(rows.size(), most); ++i) {
    ExplainedCollective collective = representativeOf(explanation, *rows[i].group);
    page.open("tr").element("th", collective.kindName(), {{"scope", "row"}});
    page.element("td", fmt::format("{}", fmt::join(collective.parentAxes, "+")));
    page.open("td").element("code", collective.location);
    page.open("div", {{"class", "note"}})
        .text(fmt::format("task {}{}", collective.task,
                          collective.async ? ", overlapped with computation" : ""))
        .close()
        .close();
    page.number(withCommas(static_cast<double>(rows[i].group->calls)));
    page.number(formatBytes(rows[i].group->bytes));
    page.number(rows[i].seconds > 0 ? formatDuration(rows[i].seconds) : "-");
    addReason(page, collective);
    page.close();
  }
  page.closeTable().close();
}

} // namespace dtc
