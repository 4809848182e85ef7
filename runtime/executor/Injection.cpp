//===- Injection.cpp - Injection of non-finite numbers --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Injection.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Parsing of the user's text
//===----------------------------------------------------------------------===//

static constexpr const char *kForm =
    "expected op=NAME,step=S,device=D and, if wanted, kernel=NAME, "
    "match=N, microbatch=M, element=I, value=inf|-inf|nan";

/// The whole text as a number of at least `lowest`.
static std::optional<int64_t> parseNumber(std::string_view text, int64_t lowest) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest)
    return std::nullopt;
  return value;
}

/// The text by "name" of "name=value,name=value"; each at most once.
static Expected<std::map<std::string, std::string>> splitFields(const std::string &text) {
  std::map<std::string, std::string> fields;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    size_t equals = part.find('=');
    if (equals == std::string::npos)
      return Error{fmt::format("\"{}\" has no value; {}", part, kForm)};
    if (!fields.try_emplace(part.substr(0, equals), part.substr(equals + 1)).second)
      return Error{fmt::format("\"{}\" is there twice", part.substr(0, equals))};
    begin = end + 1;
  }
  return fields;
}

Expected<InjectedDelay> parseDelay(const std::string &text) {
  constexpr const char *form = "expected device=D,seconds=S";
  Expected<std::map<std::string, std::string>> fields = splitFields(text);
  if (!fields || fields->size() != 2 || !fields->count("device") || !fields->count("seconds"))
    return Error{fmt::format("\"{}\": {}", text, form)};
  std::optional<int64_t> device = parseNumber(fields->at("device"), 0);
  const std::string &seconds = fields->at("seconds");
  InjectedDelay delay;
  auto [end, error] =
      std::from_chars(seconds.data(), seconds.data() + seconds.size(), delay.seconds);
  if (!device || error != std::errc() || end != seconds.data() + seconds.size() ||
      !(delay.seconds >= 0 && delay.seconds <= 3600))
    return Error{fmt::format("\"{}\": {}, a device from 0 and 0 to 3600 seconds", text, form)};
  delay.device = *device;
  return delay;
}

Expected<Injection> parseInjection(const std::string &text) {
  Expected<std::map<std::string, std::string>> fields = splitFields(text);
  if (!fields)
    return fields.error();
  for (const char *name : {"op", "step", "device"})
    if (!fields->count(name))
      return Error{fmt::format("\"{}\" has no {}; {}", text, name, kForm)};
  Injection injection;
  struct Number {
    const char *name;
    int64_t *field;
    int64_t lowest;
  };
  const Number numbers[] = {{"match", &injection.match, std::numeric_limits<int64_t>::min()},
                            {"step", &injection.step, 1},
                            {"device", &injection.device, 0},
                            {"microbatch", &injection.microbatch, 0},
                            {"element", &injection.element, 0}};
  for (const auto &[name, value] : *fields) {
    if (name == "op" || name == "kernel") {
      (name == "op" ? injection.op : injection.kernel) = value;
      continue;
    }
    if (name == "value") {
      if (value != "inf" && value != "-inf" && value != "nan")
        return Error{fmt::format("value is \"{}\"; expected inf, -inf or nan", value)};
      injection.value = value == "nan"    ? std::numeric_limits<double>::quiet_NaN()
                        : value == "-inf" ? -std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::infinity();
      continue;
    }
    const auto *number = std::find_if(std::begin(numbers), std::end(numbers),
                                      [&](const Number &each) { return name == each.name; });
    if (number == std::end(numbers))
      return Error{fmt::format("\"{}\" is not known; {}", name, kForm)};
    std::optional<int64_t> parsed = parseNumber(value, number->lowest);
    if (!parsed || (name == "match" && *parsed == 0))
      return Error{fmt::format("{} is \"{}\"; expected a whole number{}", name, value,
                               name == "match"      ? " other than 0, less than 0 from the end"
                               : number->lowest > 0 ? " of 1 or more"
                                                    : " of 0 or more")};
    *number->field = *parsed;
  }
  return injection;
}

//===----------------------------------------------------------------------===//
// Where that is
//===----------------------------------------------------------------------===//

/// The first output of floats, if there is one.
static std::optional<uint32_t> floatOutput(const PreparedProgram &program,
                                           const plan::KernelCall &call) {
  for (uint32_t buffer : call.outputs())
    if (isFloat(toDType(program.program->buffers(static_cast<int>(buffer)).dtype())))
      return buffer;
  return std::nullopt;
}

/// The place in the model that the instruction comes from; a plan need not say it.
static std::string locationOf(const PreparedPlan &plan, const plan::Instruction &instruction) {
  auto index = static_cast<int>(instruction.location());
  return index < plan.plan->locations_size() ? plan.plan->locations(index) : "unknown";
}

/// "h.1.mlp" of "h.1.mlp (model.mlir:12:8)".
static std::string layerOf(const std::string &location) {
  return location.substr(0, location.find(' '));
}

/// Whether the layer is the op, or a part of it: "h.1" has "h.1.mlp", but not "h.10".
static bool isOf(const std::string &layer, const std::string &op) {
  return layer.compare(0, op.size(), op) == 0 &&
         (layer.size() == op.size() || layer[op.size()] == '.' || layer[op.size()] == ':');
}

/// The names that the user may have meant.
static std::string describeSources(const PreparedPlan &plan, const PreparedProgram &program) {
  constexpr size_t shown = 24;
  std::vector<std::string> names;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const plan::Instruction &instruction = program.instruction(i);
    if (!std::holds_alternative<PreparedKernel>(program.instructions[i]) ||
        !floatOutput(program, instruction.kernel()))
      continue;
    std::string name = layerOf(locationOf(plan, instruction));
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  bool tooMany = names.size() > shown;
  names.resize(std::min(names.size(), shown));
  return fmt::format("{}{}", fmt::join(names, ", "), tooMany ? ", ..." : "");
}

Expected<PreparedInjection> prepareInjection(const PreparedPlan &plan, const Injection &injection) {
  if (injection.device < 0 || injection.device >= plan.mesh.numDevices())
    return Error{fmt::format("device is {}; expected one of the plan's devices, 0 to {}",
                             injection.device, plan.mesh.numDevices() - 1)};
  const PreparedProgram &program = plan.programOf(injection.device);
  std::vector<size_t> matches;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const plan::Instruction &instruction = program.instruction(i);
    if (std::holds_alternative<PreparedKernel>(program.instructions[i]) &&
        floatOutput(program, instruction.kernel()) &&
        (injection.kernel.empty() || instruction.kernel().kernel() == injection.kernel) &&
        isOf(layerOf(locationOf(plan, instruction)), injection.op))
      matches.push_back(i);
  }
  std::string wanted =
      fmt::format("{}kernels of \"{}\" that make floats",
                  injection.kernel.empty() ? "" : injection.kernel + " ", injection.op);
  if (matches.empty())
    return Error{fmt::format("device {} runs no {}; it runs kernels of {}", injection.device,
                             wanted, describeSources(plan, program))};
  auto count = static_cast<int64_t>(matches.size());
  int64_t index = injection.match > 0 ? injection.match - 1 : count + injection.match;
  if (injection.match == 0 || index < 0 || index >= count)
    return Error{fmt::format("match is {}, but device {} has {} {}; expected 1 to {}, or -1 for "
                             "the last",
                             injection.match, injection.device, count, wanted, count)};

  PreparedInjection prepared;
  prepared.instruction = matches[static_cast<size_t>(index)];
  size_t task = program.taskOf(prepared.instruction);
  if (std::none_of(program.schedule.begin(), program.schedule.end(),
                   [&](const PreparedProgram::ScheduleEntry &entry) {
                     return entry.task == task && entry.microbatch == injection.microbatch;
                   }))
    return Error{fmt::format("microbatch is {}, for which device {} does not run the task \"{}\"",
                             injection.microbatch, injection.device,
                             program.program->tasks(static_cast<int>(task)).name())};
  if (!program.runsFor(prepared.instruction, static_cast<uint32_t>(injection.microbatch),
                       /*repetition=*/0, /*batches=*/1))
    return Error{fmt::format("microbatch is {}, but match {} of {} runs for the last microbatch "
                             "alone; expected {}",
                             injection.microbatch, index + 1, wanted, program.lastMicrobatch)};
  const auto &call = std::get<PreparedKernel>(program.instructions[prepared.instruction]);
  const plan::KernelCall &kernel = program.instruction(prepared.instruction).kernel();
  uint32_t output = *floatOutput(program, kernel);
  TensorType type = typeOf(program.program->buffers(static_cast<int>(output)));
  if (injection.element < 0 || injection.element >= type.numElements())
    return Error{fmt::format("element is {}; the kernel {} makes {}, so expected 0 to {}",
                             injection.element, kernel.kernel(), type.str(),
                             type.numElements() - 1)};
  auto operand = std::find(kernel.outputs().begin(), kernel.outputs().end(), output);
  prepared.range = call.outputs[static_cast<size_t>(operand - kernel.outputs().begin())];
  prepared.step = static_cast<uint64_t>(injection.step);
  prepared.microbatch = static_cast<uint32_t>(injection.microbatch);
  prepared.width = byteWidth(type.dtype);
  prepared.byteOffset = static_cast<uint64_t>(injection.element) * prepared.width;
  HostTensor scalar(TensorType{type.dtype, {}});
  setElement(scalar, 0, injection.value);
  std::memcpy(prepared.bytes.data(), scalar.bytes.data(), prepared.width);
  return prepared;
}

} // namespace dtc::runtime
