//===- SessionSteps.cpp - Start and finish of steps of a session ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
#include "runtime/executor/Bindings.h"
#include "runtime/executor/StallDetector.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

const plan::Input *Session::findInput(plan::Input::Role role) const {
  for (const plan::Program &program : plan().programs())
    for (const plan::Input &input : program.inputs())
      if (input.role() == role)
        return &input;
  return nullptr;
}

const plan::Output *Session::findOutput(const std::string &name) const {
  for (const plan::Program &program : plan().programs())
    if (const plan::Output *output = findByName(program.outputs(), name))
      return output;
  return nullptr;
}

static MaybeError checkIndices(const plan::Input &input, const HostTensor &value) {
  if (input.index_limit() == 0)
    return std::nullopt;
  const int32_t *values = value.as<int32_t>();
  for (int64_t i = 0; i < value.type.numElements(); ++i)
    if ((values[i] < 0 || values[i] >= input.index_limit()) &&
        !(input.has_ignored_index() && values[i] == input.ignored_index()))
      return Error{fmt::format("input \"{}\": element {} is {}; expected an index from 0 to {}",
                               input.name(), i, values[i], input.index_limit() - 1)};
  return std::nullopt;
}

MaybeError Session::checkBatch(const std::string &what, int64_t batch) const {
  auto count = static_cast<int64_t>(inputs.size());
  if (batch >= 0 && batch < count)
    return std::nullopt;
  return Error{fmt::format("{} is set for batch {}; a step has {} batch{}, the first is 0", what,
                           batch, count, count == 1 ? "" : "es")};
}

MaybeError Session::setInput(const std::string &name, HostTensor value, int64_t batch) {
  if (MaybeError error = checkBatch(fmt::format("input \"{}\"", name), batch))
    return error;
  bool found = false;
  for (const plan::Program &program : plan().programs()) {
    const plan::Input *input = findByName(program.inputs(), name);
    if (!input)
      continue;
    found = true;
    if (MaybeError error = checkType("input", name, value, typeOf(*input)))
      return error;
    if (MaybeError error = checkIndices(*input, value))
      return error;
  }
  if (!found)
    return Error{fmt::format("the plan has no input \"{}\"", name)};
  inputs[static_cast<size_t>(batch)].insert_or_assign(name, std::move(value));
  return std::nullopt;
}

/// Sets all inputs of the role to these elements, and those for which there are none to 0.
MaybeError Session::setRole(plan::Input::Role role, std::span<const double> values) {
  for (const plan::Input *input : distinctInputs(plan())) {
    if (input->role() != role)
      continue;
    HostTensor tensor(typeOf(*input));
    int64_t next = 0;
    for (double value : values)
      setElement(tensor, next++, value);
    if (MaybeError error = setInput(input->name(), std::move(tensor)))
      return error;
  }
  return std::nullopt;
}

int64_t Session::numLearningRates() const {
  const plan::Input *input = findInput(plan::Input::LEARNING_RATES);
  return input ? typeOf(*input).numElements() : 0;
}

MaybeError Session::setLearningRates(int64_t stepsDone, std::span<const double> rates) {
  auto given = static_cast<int64_t>(rates.size()), most = numLearningRates();
  if (most == 0)
    return std::nullopt;
  if (given == 0 || given > most)
    return Error{fmt::format("{} learning rates are given; the plan takes 1 to {}", given, most)};
  if (stepsDone < 0 || stepsDone > std::numeric_limits<int32_t>::max() - given)
    return Error{fmt::format("learning rates are given for the steps after step {}; a run has at "
                             "most {} steps",
                             stepsDone, std::numeric_limits<int32_t>::max())};
  if (MaybeError error = setRole(plan::Input::LEARNING_RATES, rates))
    return error;
  const double first[] = {static_cast<double>(stepsDone)};
  if (MaybeError error = setRole(plan::Input::FIRST_STEP, first))
    return error;
  ratesLeft = given;
  return std::nullopt;
}

MaybeError Session::loadInputs(DeviceExecutor &device, int64_t batch) const {
  const auto &own = inputs[static_cast<size_t>(batch)];
  const plan::Program &program = *device.getProgram().program;
  // Every step, because the plan may use the bytes for other things once an input is not needed.
  for (size_t i = 0; i < static_cast<size_t>(program.inputs_size()); ++i) {
    const plan::Input &input = program.inputs(static_cast<int>(i));
    auto found = own.find(input.name());
    const HostTensor &value = found != own.end() ? found->second : inputs.front().at(input.name());
    copyToShard(regionOf(prepared->mesh, input, device.index()), byteWidth(value.type.dtype),
                value.bytes.data(), device.inputPlace(i, batch));
    if (MaybeError error = device.enqueueInput(i, batch))
      return error;
  }
  return std::nullopt;
}

MaybeError Session::checkAtRest(const std::string &what) const {
  if (!shared->stepping)
    return std::nullopt;
  return Error{fmt::format("{} while a step is in flight; call finishStep() before", what)};
}

/// Checks that the caller has given everything that a step needs.
MaybeError Session::checkStep() const {
  if (numLearningRates() > 0 && ratesLeft == 0)
    return Error{"there is no learning rate for the step: all that were given have been used"};
  for (const plan::Input *input : distinctInputs(plan()))
    if (!inputs.front().count(input->name()))
      return Error{fmt::format("input \"{}\" has no value", input->name())};
  if (shared->stepping && shared->stepping != this)
    return checkAtRest("a step of another entry point is started");
  if (stepsInFlight() == mostInFlight)
    return Error{fmt::format("{} step{} in flight, as many as the session may have; call "
                             "finishStep() before the next one is started",
                             mostInFlight, mostInFlight == 1 ? " is" : "s are")};
  // While steps are in flight, the error is for the one that has failed.
  return shared->stepping ? std::nullopt : shared->failure;
}

MaybeError Session::startStep() {
  const double batches[] = {static_cast<double>(inputs.size())};
  if (MaybeError error = setRole(plan::Input::BATCHES, batches))
    return error;
  if (MaybeError error = checkStep())
    return error;
  ratesLeft -= ratesLeft > 0;
  hasRun = true;
  shared->lastRun = shared->stepping = this;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    device->beginStep();
  // An error may belong to the step before: finishStep() gives it to the right step.
  (void)runOnDevices(
      [&](DeviceExecutor &device) {
        return device.enqueueStep([&](int64_t batch) { return loadInputs(device, batch); });
      },
      stallDetector ? &stallDetector->begin() : nullptr);
  return std::nullopt;
}

MaybeError Session::finishStep() {
  if (stepsInFlight() == 0)
    return Error{"no step is in flight that could be finished"};
  auto all = [&](bool (DeviceExecutor::*what)() const) {
    return std::all_of(devices.begin(), devices.end(),
                       [&](const auto &device) { return (*device.*what)(); });
  };
  if (!shared->failure && !all(&DeviceExecutor::stepIsOver))
    (void)runOnDevices([](DeviceExecutor &device) { return device.awaitStep(); },
                       stallDetector ? &stallDetector->begin() : nullptr);
  // The failed step is the first one that a device has not completed. A step that was given up may
  // be completed all the same.
  bool isLast = stepsInFlight() == 1, isOver = all(&DeviceExecutor::stepIsOver);
  bool isGivenUp = stallDetector && devices.front()->oldestStep() >= stallDetector->stalledStep();
  bool hasFailed = shared->failure && (isLast || isGivenUp || !all(&DeviceExecutor::stepHasEnded));
  endOfLast = {};
  for (const std::unique_ptr<DeviceExecutor> &device : devices) {
    device->endStep();
    endOfLast = std::max(endOfLast, device->lastEnd());
  }
  if (isLast)
    shared->stepping = nullptr;
  if (hasFailed)
    return shared->failure;
  if (isOver)
    addPipelineTime();
  return std::nullopt;
}

bool Session::stepIsDone() const {
  return shared->failure || std::all_of(devices.begin(), devices.end(), [](const auto &device) {
           Expected<bool> done = device->stepIsDone();
           return !done || *done;
         });
}

MaybeError Session::step() {
  if (MaybeError error = checkAtRest("step() is called"))
    return error;
  if (MaybeError error = startStep())
    return error;
  return finishStep();
}

} // namespace dtc::runtime
