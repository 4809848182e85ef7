//===- DevicePlaces.cpp - Current instructions of devices, as text --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DevicePlaces.h"

#include "plan/PlanTypes.h"
#include "support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::runtime {

/// "[0, 1, 2]", shortened.
static std::string listDevices(const std::vector<int64_t> &devices) {
  constexpr size_t shown = 8;
  std::vector<int64_t> some(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                   devices.size(), shown)));
  return fmt::format("[{}{}]", fmt::join(some, ", "), devices.size() > shown ? ", ..." : "");
}

/// "all_reduce of devices [0, 1]".
static std::string describeCollective(const PreparedPlan &plan, const DeviceExecutor &device,
                                      const PreparedCollective &collective) {
  return fmt::format("{} of devices {}", name(collective.specs.front().kind),
                     listDevices(plan.mesh.group(device.index(), plan.groups[collective.group])));
}

/// "receive from device 0 on channel 2".
static std::string describeTransfer(const DeviceExecutor &device, size_t transfer) {
  const PreparedTransfer &prepared = device.getProgram().transfers[transfer];
  return fmt::format("{} device {} on channel {}", prepared.sends ? "send to" : "receive from",
                     device.transferPeer(transfer), prepared.channel);
}

/// "kernel adamw of the host".
static std::string describeHostCall(const PreparedProgram &program, size_t index,
                                    const PreparedHostCall &call) {
  return call.lane == Lane::Host
             ? fmt::format("kernel {} of the host", program.instruction(index).kernel().kernel())
             : fmt::format("one of the {}", dtc::describe(call.lane));
}

static std::string describeWait(const PreparedPlan &plan, const DeviceExecutor &device,
                                size_t index) {
  const PreparedProgram &program = device.getProgram();
  const PreparedInstruction &instruction = program.instructions[index];
  if (std::holds_alternative<PreparedKernel>(instruction))
    return fmt::format("runs kernel {}", program.instruction(index).kernel().kernel());
  if (const auto *call = std::get_if<PreparedHostCall>(&instruction))
    return fmt::format("starts {}", describeHostCall(program, index, *call));
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return "waits in " + describeCollective(plan, device, *collective);
  if (const auto *wait = std::get_if<PreparedWait>(&instruction)) {
    const PreparedInstruction &started = program.instructions[wait->started];
    if (const auto *call = std::get_if<PreparedHostCall>(&started))
      return "waits for " + describeHostCall(program, wait->started, *call);
    return "waits in " + describeCollective(plan, device, std::get<PreparedCollective>(started));
  }
  if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction))
    return "starts to " + describeTransfer(device, start->transfer);
  return "waits to " +
         describeTransfer(device, std::get<PreparedFinishTransfer>(instruction).transfer);
}

/// ", instruction 3, from model.mlir:7".
static std::string describeNumber(const PreparedPlan &plan, const PreparedProgram &program,
                                  size_t index) {
  std::string text =
      fmt::format(", instruction {}", index - program.taskBegin[program.taskOf(index)]);
  auto location = static_cast<int>(program.instruction(index).location());
  if (location > 0 && location < plan.plan->locations_size())
    text += ", from " + plan.plan->locations(location);
  return text;
}

static std::string describeCommunication(const PreparedPlan &plan, const DeviceExecutor &device,
                                         size_t index) {
  const PreparedInstruction &instruction = device.getProgram().instructions[index];
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return describeCollective(plan, device, *collective);
  if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction))
    return describeTransfer(device, start->transfer);
  return describeTransfer(device, std::get<PreparedFinishTransfer>(instruction).transfer);
}

std::string describeInstruction(const PreparedPlan &plan, const DeviceExecutor &device,
                                size_t index) {
  const PreparedProgram &program = device.getProgram();
  return fmt::format("{}, in task \"{}\"{}", describeCommunication(plan, device, index),
                     program.program->tasks(static_cast<int>(program.taskOf(index))).name(),
                     describeNumber(plan, program, index));
}

static std::string describePlace(const PreparedPlan &plan, const DeviceExecutor &device,
                                 uint64_t stalled) {
  std::optional<DeviceExecutor::Position> position = device.position();
  if (!position)
    return device.hasFinished() ? "has finished the step" : "has not begun the step";
  const char *ahead = position->step > stalled ? ", a step ahead of others" : "";
  const PreparedProgram &program = device.getProgram();
  const PreparedProgram::ScheduleEntry &entry = program.schedule[position->entry];
  const plan::Task &task = program.program->tasks(static_cast<int>(entry.task));
  if (position->instruction)
    return fmt::format("{}, in task \"{}\" for microbatch {}{}{}",
                       describeWait(plan, device, *position->instruction), task.name(),
                       entry.microbatch, describeNumber(plan, program, *position->instruction),
                       ahead);
  std::string text =
      fmt::format("runs task \"{}\" for microbatch {}{}", task.name(), entry.microbatch, ahead);
  for (std::optional<size_t> come : {position->reached.collective, position->reached.transfer})
    if (come)
      text += fmt::format(", has come to {}{}", describeCommunication(plan, device, *come),
                          describeNumber(plan, program, *come));
  return text;
}

std::string nameDevice(const PreparedPlan &plan, const DeviceExecutor &device) {
  std::vector<std::string> place;
  std::vector<int64_t> coordinates = plan.mesh.coordinates(device.index());
  for (size_t i = 0; i < coordinates.size(); ++i)
    if (!plan.mesh.axes()[i].temporal)
      place.push_back(fmt::format("{}={}", plan.mesh.axes()[i].name, coordinates[i]));
  return fmt::format("device {}{}", device.index(),
                     place.empty() ? "" : fmt::format(" ({})", fmt::join(place, ", ")));
}

std::string describeDevice(const PreparedPlan &plan, const DeviceExecutor &device,
                           uint64_t stalledStep) {
  return nameDevice(plan, device) + " " + describePlace(plan, device, stalledStep);
}

DevicePlaces::DevicePlaces(const PreparedPlan &plan,
                           const std::vector<std::unique_ptr<DeviceExecutor>> &devices,
                           PredictTime predict)
    : plan(plan), devices(devices), predict(std::move(predict)), seen(devices.size()) {}

/// " (predicted: 12 us)"; empty where the device does not communicate.
std::string DevicePlaces::prediction(const DeviceExecutor &device) const {
  std::optional<DeviceExecutor::Position> position = device.position();
  if (!position || !position->instruction)
    return "";
  std::optional<FlightOperation> operation =
      operationAt(device, position->entry, *position->instruction);
  if (!operation || !operation->predictedSeconds)
    return "";
  return fmt::format(" (predicted: {})", formatDuration(*operation->predictedSeconds));
}

std::string DevicePlaces::describe() {
  constexpr size_t most = 4;
  std::vector<std::string> texts;
  Clock::time_point now = Clock::now();
  for (size_t i = 0; i < devices.size(); ++i) {
    uint64_t advances = devices[i]->advances();
    if (std::exchange(seen[i].advances, advances) != advances ||
        seen[i].since == Clock::time_point())
      seen[i].since = now;
    if (!devices[i]->position())
      continue;
    if (texts.size() < most)
      texts.push_back(fmt::format("{}, for {:.1f} s{}", describeDevice(plan, *devices[i]),
                                  std::chrono::duration<double>(now - seen[i].since).count(),
                                  prediction(*devices[i])));
    else if (texts.size() == most)
      texts.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// The instruction, if it communicates.
std::optional<FlightOperation> DevicePlaces::operationAt(const DeviceExecutor &device,
                                                         size_t entryIndex, size_t index) const {
  const PreparedProgram &program = device.getProgram();
  const PreparedInstruction &instruction = program.instructions[index];
  FlightOperation operation;
  auto setTransfer = [&](size_t number) {
    const PreparedTransfer &transfer = program.transfers[number];
    operation.operation = transfer.sends ? "send" : "receive";
    operation.devices = {device.transferPeer(number)};
    operation.axes = {plan.mesh.pipelineAxis()->name};
    for (const PreparedTransfer::Tensor &tensor : transfer.tensors)
      operation.bytes += tensor.bytes;
  };
  const auto *collective = std::get_if<PreparedCollective>(&instruction);
  if (const auto *wait = std::get_if<PreparedWait>(&instruction)) {
    collective = std::get_if<PreparedCollective>(&program.instructions[wait->started]);
    operation.isWait = true;
  }
  if (collective) {
    operation.kind = collective->specs.front().kind;
    operation.operation = name(*operation.kind);
    operation.axes = plan.groups[collective->group];
    operation.devices = plan.mesh.group(device.index(), plan.groups[collective->group]);
    for (const CollectiveSpec &spec : collective->specs)
      operation.bytes += spec.input.numBytes();
  } else if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction)) {
    setTransfer(start->transfer);
  } else if (const auto *finish = std::get_if<PreparedFinishTransfer>(&instruction)) {
    operation.isWait = true;
    setTransfer(finish->transfer);
  } else {
    return std::nullopt;
  }
  const PreparedProgram::ScheduleEntry &entry = program.schedule[entryIndex];
  operation.task = program.program->tasks(static_cast<int>(entry.task)).name();
  operation.microbatch = entry.microbatch;
  operation.instruction = index - program.taskBegin[entry.task];
  auto location = static_cast<int>(program.instruction(index).location());
  if (location > 0 && location < plan.plan->locations_size())
    operation.location = plan.plan->locations(location);
  if (predict)
    operation.predictedSeconds = predict(operation);
  return operation;
}

DeviceFlight DevicePlaces::flightOf(const DeviceExecutor &device) const {
  constexpr size_t mostNext = 16;
  DeviceFlight flight{device.index(), describeDevice(plan, device), {}, {}};
  for (const FlightRing::Record &record : device.getFlight().last())
    if (auto operation = operationAt(device, record.entry, record.instruction)) {
      operation->step = record.step;
      operation->begin = record.begin;
      operation->end = record.end;
      flight.last.push_back(std::move(*operation));
    }
  std::optional<DeviceExecutor::Position> position = device.position();
  if (!position)
    return flight;
  const PreparedProgram &program = device.getProgram();
  for (size_t entry = position->entry; entry < program.schedule.size(); ++entry) {
    size_t task = program.schedule[entry].task;
    size_t begin = program.taskBegin[task];
    if (entry == position->entry)
      begin = position->instruction.value_or(begin);
    for (size_t index = begin; index < program.taskBegin[task + 1] && flight.next.size() < mostNext;
         ++index)
      if (program.runsFor(index, program.schedule[entry].microbatch, /*repetition=*/0,
                          /*batches=*/1))
        if (auto operation = operationAt(device, entry, index))
          flight.next.push_back(std::move(*operation));
  }
  return flight;
}

std::vector<DeviceFlight> DevicePlaces::flight() const {
  std::vector<DeviceFlight> flights;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    flights.push_back(flightOf(*device));
  return flights;
}

} // namespace dtc::runtime
