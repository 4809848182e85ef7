//===- SimulationReport.cpp - Simulations as text and as JSON -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/SimulationReport.h"

#include "support/Format.h"
#include "support/Printable.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace dtc {

using Json = nlohmann::ordered_json;

const char *name(KernelClass kernel) {
  static constexpr const char *names[] = {"product", "attention", "other", "optimizer", "launch"};
  return names[static_cast<size_t>(kernel)];
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// "12,345", and "1.234" for small values.
static std::string grouped(double value) {
  if (value != std::floor(value) && std::abs(value) < 1000)
    return fmt::format("{:.4g}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (auto i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

static void addUtilization(std::string &text, const Simulation &simulation) {
  if (simulation.peakFlops <= 0)
    return;
  text += fmt::format("  HFU {:.1f} % (all that is computed)", 100 * simulation.hfu());
  if (simulation.modelFlops > 0) {
    text += fmt::format(", MFU {:.1f} % (full attention)", 100 * simulation.mfu());
    if (simulation.causalModelFlops < simulation.modelFlops)
      text += fmt::format(", {:.1f} % (causal attention)", 100 * simulation.causalMfu());
  }
  text += fmt::format(", of {:.1f} TFLOP/s {} a device\n",
                      simulation.peakFlops / static_cast<double>(simulation.devices) / 1e12,
                      simulation.peakDtype);
}

static void addTraining(std::string &text, const Simulation &simulation) {
  double steps = simulation.trainingSteps().value_or(0);
  if (simulation.hasPower || simulation.hasPrice) {
    text += "  A step";
    if (simulation.hasPower)
      text += fmt::format(" draws {:.3g} kWh", simulation.joules / 3.6e6);
    if (simulation.hasCarbon)
      text += fmt::format(", {:.3g} kg CO2", simulation.grams / 1e3);
    if (simulation.hasPrice)
      text += fmt::format("{}costs {:.4g}", simulation.hasPower ? ", " : " ", simulation.cost);
    text += "\n";
  }
  if (steps == 0)
    return;
  text += fmt::format("  {:.4g} tokens: {} steps, {:.4g} days", simulation.trainingTokens,
                      grouped(steps), steps * simulation.stepSeconds / 86400);
  if (simulation.hasPower)
    text += fmt::format(", {:.4g} MWh", steps * simulation.joules / 3.6e9);
  if (simulation.hasCarbon)
    text += fmt::format(", {:.4g} t CO2", steps * simulation.grams / 1e6);
  if (simulation.hasPrice)
    text += fmt::format(", cost {}", grouped(steps * simulation.cost));
  text += "\n";
}

/// Adds the bytes that devices keep in the memory of their hosts, where one does.
static void addHostMemory(std::string &text, const Simulation &simulation) {
  constexpr const char *line = "  {:>5} {:>10} {:>12} {:>10}\n";
  auto usesHost = [](const StageSimulation &stage) { return stage.hostArenaBytes > 0; };
  if (std::none_of(simulation.stages.begin(), simulation.stages.end(), usesHost))
    return;
  text += "\nMemory of the host\n";
  text += fmt::format(line, "stage", "a device", "all of node", "usable");
  for (size_t p = 0; p < simulation.stages.size(); ++p)
    if (const StageSimulation &stage = simulation.stages[p]; usesHost(stage))
      text += fmt::format(line, p, formatBytes(stage.hostArenaBytes),
                          formatBytes(static_cast<uint64_t>(stage.nodeHostBytes)),
                          formatBytes(static_cast<uint64_t>(stage.hostMemoryBytes)));
}

static void addMemory(std::string &text, const Simulation &simulation) {
  constexpr const char *line =
      "  {:>5} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10} {:>10}  {}\n";
  text += "\nMemory of a device\n";
  text += fmt::format(line, "stage", "parameters", "masters", "gradients", "optimizer",
                      "activations", "other", "arena", "usable", "device");
  for (size_t p = 0; p < simulation.stages.size(); ++p) {
    const StageSimulation &stage = simulation.stages[p];
    const PeakMemory &memory = stage.memory;
    std::string device = printable(fmt::format("{}", fmt::join(stage.deviceKinds, "+")));
    if (!stage.fits())
      device += ": does not fit";
    text += fmt::format(
        line, p, formatBytes(memory.parameters), formatBytes(memory.masterWeights),
        formatBytes(memory.gradients), formatBytes(memory.optimizerState),
        formatBytes(memory.activations),
        formatBytes(memory.caches + memory.constants + memory.inputsAndOutputs + memory.other),
        formatBytes(stage.arenaBytes), formatBytes(static_cast<uint64_t>(stage.memoryBytes)),
        device);
  }
}

/// Says how long the steps of a round take with its outer steps.
static void addOuterRound(std::string &text, const Simulation &simulation) {
  if (!simulation.outerRound)
    return;
  const OuterRound &round = *simulation.outerRound;
  text += fmt::format("  {} steps with their outer steps take {}", round.steps,
                      formatDuration(round.seconds));
  if (simulation.tokens > 0 && round.seconds > 0)
    text += fmt::format(": {} tokens/s", grouped(simulation.tokens *
                                                 static_cast<double>(round.steps) / round.seconds));
  text += fmt::format("\n  Outer steps take {}: {} exposed, {} beside steps\n",
                      formatDuration(round.outerSeconds), formatDuration(round.exposed),
                      formatDuration(round.hidden()));
}

std::string formatSimulation(const Simulation &simulation) {
  double step = simulation.stepSeconds;
  std::string text = fmt::format("{} on {} device{} of {} ({} node{}), {} microbatch{}\n",
                                 printable(simulation.model), simulation.devices,
                                 simulation.devices == 1 ? "" : "s", printable(simulation.cluster),
                                 simulation.nodes, simulation.nodes == 1 ? "" : "s",
                                 simulation.microbatches, simulation.microbatches == 1 ? "" : "es");
  text += fmt::format("  A step takes {}", formatDuration(step));
  if (simulation.tokens > 0 && step > 0)
    text +=
        fmt::format(": {} tokens/s, {} a device", grouped(simulation.tokens / step),
                    grouped(simulation.tokens / step / static_cast<double>(simulation.devices)));
  text += "\n";
  addOuterRound(text, simulation);
  addUtilization(text, simulation);
  text += "\nWhere the time goes (mean over the stages)\n";
  auto row = [&](const std::string &what, double seconds) {
    if (seconds > 1e-9 * step) // beyond rounding errors
      text += fmt::format("  {:<36} {:>10} {:>6.1f} %\n", what, formatDuration(seconds),
                          percent(seconds, step));
  };
  row("computing", simulation.computing);
  for (size_t c = 0; c < kNumKernelClasses; ++c)
    row(fmt::format("  {}", name(static_cast<KernelClass>(c))), simulation.kernels[c]);
  row("  slowed down", simulation.slowedDown());
  for (const AxesSeconds &exposed : simulation.exposed)
    row(printable(fmt::format("exposed collectives over {}", exposed.axes)), exposed.seconds);
  row("exposed transfers between stages", simulation.exposedTransfers);
  row("exposed work of the host", simulation.exposedHost);
  row("idle", simulation.idle);
  if (simulation.stages.size() > 1)
    text += fmt::format("  The bubble is {:.1f} % of the pipelined part.\n",
                        100 * simulation.bubbleShare);

  addMemory(text, simulation);
  addHostMemory(text, simulation);
  std::string training;
  addTraining(training, simulation);
  if (!training.empty())
    text += "\nEnergy and cost\n" + training;
  return text;
}

static Json kernelsToJson(const KernelSeconds &kernels) {
  Json json;
  for (size_t c = 0; c < kNumKernelClasses; ++c)
    json[name(static_cast<KernelClass>(c))] = kernels[c];
  return json;
}

static Json stageToJson(const Simulation &simulation, const StageSimulation &stage) {
  Json exposed = Json::array();
  for (size_t a = 0; a < simulation.axes.size(); ++a)
    exposed.push_back({{"axes", simulation.axes[a]}, {"seconds", stage.times.exposed[a]}});
  const PeakMemory &memory = stage.memory;
  return {{"devices", stage.deviceKinds},
          {"computing_seconds", stage.times.computing},
          {"kernel_seconds", kernelsToJson(stage.kernels)},
          {"exposed_collectives", exposed},
          {"exposed_transfer_seconds", stage.times.exposedTransfers},
          {"exposed_host_seconds", stage.times.exposedHost},
          {"idle_seconds", stage.times.idle},
          {"flops", stage.flops},
          {"memory",
           {{"arena_bytes", stage.arenaBytes},
            {"usable_bytes", stage.memoryBytes},
            {"fits", stage.fits()},
            {"host_arena_bytes", stage.hostArenaBytes},
            {"node_host_bytes", stage.nodeHostBytes},
            {"usable_host_bytes", stage.hostMemoryBytes},
            {"parameters", memory.parameters},
            {"master_weights", memory.masterWeights},
            {"gradients", memory.gradients},
            {"optimizer_state", memory.optimizerState},
            {"activations", memory.activations},
            {"other", memory.caches + memory.constants + memory.inputsAndOutputs + memory.other}}}};
}

std::string simulationToJson(const Simulation &simulation) {
  Json exposed = Json::array(), stages = Json::array();
  for (const AxesSeconds &entry : simulation.exposed)
    exposed.push_back({{"axes", entry.axes}, {"seconds", entry.seconds}});
  for (const StageSimulation &stage : simulation.stages)
    stages.push_back(stageToJson(simulation, stage));
  double step = simulation.stepSeconds;
  Json json = {{"model", simulation.model},
               {"cluster", simulation.cluster},
               {"devices", simulation.devices},
               {"nodes", simulation.nodes},
               {"microbatches", simulation.microbatches},
               {"step_seconds", step},
               {"tokens_per_step", simulation.tokens},
               {"tokens_per_second", step > 0 ? simulation.tokens / step : 0},
               {"model_flops", simulation.modelFlops},
               {"causal_model_flops", simulation.causalModelFlops},
               {"executed_flops", simulation.executedFlops},
               {"peak_flops", simulation.peakFlops},
               {"peak_dtype", simulation.peakDtype},
               {"mfu", simulation.mfu()},
               {"mfu_causal", simulation.causalMfu()},
               {"hfu", simulation.hfu()},
               {"bubble_share", simulation.bubbleShare},
               {"computing_seconds", simulation.computing},
               {"kernel_seconds", kernelsToJson(simulation.kernels)},
               {"slowed_down_seconds", std::max(0.0, simulation.slowedDown())},
               {"exposed_collectives", exposed},
               {"exposed_transfer_seconds", simulation.exposedTransfers},
               {"exposed_host_seconds", simulation.exposedHost},
               {"idle_seconds", simulation.idle}};
  if (const std::optional<OuterRound> &round = simulation.outerRound)
    json["outer_round"] = {{"steps", round->steps},
                           {"seconds", round->seconds},
                           {"outer_seconds", round->outerSeconds},
                           {"exposed_seconds", round->exposed}};
  json["step_cost"] = simulation.hasPrice ? Json(simulation.cost) : Json();
  json["step_joules"] = simulation.hasPower ? Json(simulation.joules) : Json();
  json["step_grams_co2"] = simulation.hasCarbon ? Json(simulation.grams) : Json();
  if (auto steps = simulation.trainingSteps())
    json["training"] = {
        {"tokens", simulation.trainingTokens},
        {"steps", *steps},
        {"days", *steps * step / 86400},
        {"cost", simulation.hasPrice ? Json(*steps * simulation.cost) : Json()},
        {"joules", simulation.hasPower ? Json(*steps * simulation.joules) : Json()},
        {"grams_co2", simulation.hasCarbon ? Json(*steps * simulation.grams) : Json()}};
  json["stages"] = stages;
  // Names come from users' files and may be no valid UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dtc
