//===- HeadlineSection.cpp - Section with the main figures ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/PageSections.h"
#include "support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc {

static std::string count(double number, const char *one, const char *several) {
  return fmt::format("{} {}", withCommas(number), number == 1 ? one : several);
}

namespace {

/// The boxes with one large figure each.
class HeadlineFigures {
public:
  HeadlineFigures(HtmlWriter &page, const Simulation &simulation)
      : page(page), simulation(simulation) {}

  void write() {
    page.open("ul", {{"class", "cards"}});
    double step = simulation.stepSeconds;
    card("Step", formatDuration(step),
         simulation.tokens > 0 ? count(simulation.tokens, "token", "tokens") : "");
    if (simulation.tokens > 0 && step > 0)
      card("Tokens a second", withCommas(simulation.tokens / step),
           withCommas(simulation.tokens / step / static_cast<double>(simulation.devices)) +
               " a device");
    addUtilization();
    if (simulation.stages.size() > 1)
      card("Bubble", percent(simulation.bubbleShare), "of the pipelined part");
    addMemory();
    addTraining();
    page.close();
  }

private:
  void card(const char *what, const std::string &value, const std::string &more) {
    page.open("li").element("span", what, {{"class", "what"}});
    page.element("span", value, {{"class", "value"}});
    if (!more.empty())
      page.element("span", more, {{"class", "more"}});
    page.close();
  }

  void addUtilization() {
    if (simulation.peakFlops <= 0)
      return;
    std::string peak =
        fmt::format("of {:.4g} TFLOP/s {}",
                    simulation.peakFlops / static_cast<double>(simulation.devices) / 1e12,
                    simulation.peakDtype);
    if (simulation.modelFlops > 0) {
      bool isCausal = simulation.causalModelFlops < simulation.modelFlops;
      card("MFU", percent(simulation.mfu()), isCausal ? "attention counted in full" : peak);
      if (isCausal)
        card("MFU, causal", percent(simulation.causalMfu()), "without what the mask hides");
    }
    card("HFU", percent(simulation.hfu()), peak);
  }

  void addMemory() {
    const StageSimulation *fullest = nullptr;
    auto share = [](const StageSimulation &stage) {
      return stage.memoryBytes > 0 ? static_cast<double>(stage.arenaBytes) / stage.memoryBytes : 0;
    };
    for (const StageSimulation &stage : simulation.stages)
      if (!fullest || share(stage) > share(*fullest))
        fullest = &stage;
    if (fullest)
      card("Fullest device", formatBytes(fullest->arenaBytes),
           fullest->memoryBytes > 0
               ? fmt::format("{} of the usable {}", percent(share(*fullest)),
                             formatBytes(static_cast<uint64_t>(fullest->memoryBytes)))
               : "");
  }

  static std::string scaled(double value, const char *unit, const char *thousand) {
    return value < 1000 ? fmt::format("{:.3g} {}", value, unit)
                        : fmt::format("{} {}",
                                      value < 1e6 ? fmt::format("{:.3g}", value / 1000)
                                                  : withCommas(value / 1000),
                                      thousand);
  }

  void addTraining() {
    double steps = simulation.trainingSteps().value_or(0);
    if (steps <= 0)
      return;
    card("Training", fmt::format("{:.3g} days", steps * simulation.stepSeconds / 86400),
         fmt::format("{} tokens, {} steps", largeNumber(simulation.trainingTokens),
                     withCommas(steps)));
    if (simulation.hasPrice)
      card("Cost", withCommas(steps * simulation.cost), "of the training, in the file's currency");
    if (simulation.hasPower)
      card("Energy", scaled(steps * simulation.joules / 3.6e6, "kWh", "MWh"),
           simulation.hasCarbon ? scaled(steps * simulation.grams / 1e3, "kg CO2", "t CO2")
                                : "of the training");
  }

  HtmlWriter &page;
  const Simulation &simulation;
};

} // namespace

void addHeadline(HtmlWriter &page, const PageInput &input) {
  const Simulation &simulation = input.simulation;
  page.open("header").element("h1", simulation.model.empty() ? "A plan" : simulation.model);
  page.element("p",
               fmt::format("A step on {} of {} ({})",
                           count(static_cast<double>(simulation.devices), "device", "devices"),
                           simulation.cluster.empty() ? "the cluster" : simulation.cluster,
                           count(static_cast<double>(simulation.nodes), "node", "nodes")),
               {{"class", "lead"}});
  for (size_t p = 0; p < simulation.stages.size(); ++p) {
    const StageSimulation &stage = simulation.stages[p];
    if (stage.fits())
      continue;
    bool isHost = static_cast<double>(stage.arenaBytes) <= stage.memoryBytes;
    page.element(
        "p",
        fmt::format(
            "The plan does not fit: {} needs {}{}, and {} may be used.", stageName(simulation, p),
            isHost ? "in the memory of a host " : "",
            formatBytes(isHost ? static_cast<uint64_t>(stage.nodeHostBytes) : stage.arenaBytes),
            formatBytes(static_cast<uint64_t>(isHost ? stage.hostMemoryBytes : stage.memoryBytes))),
        {{"class", "bad"}});
    break;
  }
  HeadlineFigures(page, simulation).write();
  page.open("nav", {{"aria-label", "sections"}});
  for (auto [id, what] :
       {std::pair("strategy", "Strategy"), std::pair("topology", "Devices"),
        std::pair("step", "The step"), std::pair("times", "Where time goes"),
        std::pair("memory", "Memory"), std::pair("communication", "Communication"),
        std::pair("alternatives", "Alternatives"), std::pair("cost", "Cost")}) {
    std::string section = id;
    if (section == "alternatives" && input.options.alternatives.empty() &&
        !input.options.lowerBoundSeconds)
      continue;
    if (section == "cost" && !simulation.hasPower && !simulation.hasPrice)
      continue;
    page.element("a", what, {{"href", "#" + section}});
  }
  page.close().close();
}

void addStrategy(HtmlWriter &page, const PageInput &input) {
  const Simulation &simulation = input.simulation;
  const Timeline &timeline = simulation.step.timeline;
  openSection(page, "strategy", "Strategy");
  page.open("ul", {{"class", "mesh"}});
  for (const plan::Axis &axis : input.plan.axes()) {
    const char *what = axis.temporal() ? ", in time" : axis.pipeline() ? ", pipeline" : "";
    page.open("li").element("strong", axis.name());
    page.text(fmt::format(" = {}{}", axis.size(), what)).close();
  }
  if (input.plan.axes().empty())
    page.element("li", "one device");
  page.close();
  std::vector<StrategyItem> choices = {
      {"microbatches", withCommas(static_cast<double>(simulation.microbatches)), ""}};
  if (!timeline.axis.empty()) {
    choices.push_back(
        {"schedule", timeline.schedule.empty() ? "not named" : timeline.schedule, ""});
    choices.push_back({"stages",
                       fmt::format("{} ({} for each coordinate of {})", timeline.stages,
                                   timeline.chunks(), timeline.axis),
                       ""});
  }
  choices.push_back({"products in", simulation.peakDtype, ""});
  choices.insert(choices.end(), input.options.strategy.begin(), input.options.strategy.end());
  bool hasReasons = std::any_of(choices.begin(), choices.end(),
                                [](const StrategyItem &choice) { return !choice.reason.empty(); });
  std::vector<std::string> columns = {"choice", "value"};
  if (hasReasons)
    columns.emplace_back("why");
  page.openTable("What the plan does", columns);
  for (const StrategyItem &choice : choices) {
    page.open("tr").element("th", choice.name, {{"scope", "row"}}).element("td", choice.value);
    if (hasReasons)
      page.element("td", choice.reason);
    page.close();
  }
  page.closeTable().close();
}

void addAlternatives(HtmlWriter &page, const PageInput &input) {
  const SimulationPageOptions &options = input.options;
  if (options.alternatives.empty() && !options.lowerBoundSeconds)
    return;
  double step = input.simulation.stepSeconds;
  openSection(page, "alternatives", "Alternatives");
  if (options.lowerBoundSeconds && *options.lowerBoundSeconds > 0)
    page.element("p",
                 fmt::format("No plan of this model can take less than {} here{}{}. This one "
                             "takes {}, {:.2f} times as long.",
                             formatDuration(*options.lowerBoundSeconds),
                             options.lowerBoundReason.empty() ? "" : ": ", options.lowerBoundReason,
                             formatDuration(step), step / *options.lowerBoundSeconds));
  if (!options.alternatives.empty()) {
    double longest = step;
    for (const AlternativeStrategy &plan : options.alternatives)
      longest = std::max(longest, plan.seconds);
    page.openTable(
        "Plans that were looked at beside this one",
        {"plan", "#step", "compared", "#to this plan", "#memory", "what makes it slower"});
    auto row = [&](const std::string &name, double seconds, uint64_t bytes,
                   const std::string &reason) {
      page.open("tr").element("th", name, {{"scope", "row"}});
      page.number(seconds > 0 ? formatDuration(seconds) : "-").open("td");
      if (seconds > 0 && longest > 0)
        page.open("span", {{"class", "meter"},
                           {"style", "width:" + svgNumber(120 * seconds / longest) + "px"}})
            .close();
      page.close().number(seconds > 0 && step > 0 ? fmt::format("{:.2f}x", seconds / step) : "-");
      page.number(bytes > 0 ? formatBytes(bytes) : "-").element("td", reason).close();
    };
    uint64_t arena = 0;
    for (const StageSimulation &stage : input.simulation.stages)
      arena = std::max(arena, stage.arenaBytes);
    row("this plan", step, arena, "");
    for (const AlternativeStrategy &plan : options.alternatives)
      row(plan.name, plan.seconds, plan.memoryBytes, plan.reason);
    page.closeTable();
  }
  page.close();
}

void addCosts(HtmlWriter &page, const PageInput &input) {
  const Simulation &simulation = input.simulation;
  if (!simulation.hasPower && !simulation.hasPrice)
    return;
  openSection(page, "cost", "Cost and energy");
  double steps = simulation.trainingSteps().value_or(0);
  std::vector<std::string> columns = {"", "#a step", "#a million tokens"};
  if (steps > 0)
    columns.push_back("#" + largeNumber(simulation.trainingTokens) + " tokens");
  page.openTable("What the devices cost and the site draws, at the prices and rates of the cluster "
                 "file",
                 columns);
  double millions = simulation.tokens / 1e6;
  auto row = [&](const char *what, double step, const char *unit) {
    page.open("tr").element("th", what, {{"scope", "row"}});
    page.number(fmt::format("{:.4g}{}", step, unit));
    page.number(millions > 0 ? fmt::format("{:.4g}{}", step / millions, unit) : "-");
    if (steps > 0)
      page.number(fmt::format("{}{}",
                              step * steps >= 1e4 ? withCommas(step * steps)
                                                  : fmt::format("{:.4g}", step * steps),
                              unit));
    page.close();
  };
  row("time", simulation.stepSeconds / 3600, " h");
  if (simulation.hasPower)
    row("energy", simulation.joules / 3.6e6, " kWh");
  if (simulation.hasCarbon)
    row("CO2", simulation.grams / 1e3, " kg");
  if (simulation.hasPrice)
    row("price", simulation.cost, "");
  page.closeTable().close();
}

} // namespace dtc
