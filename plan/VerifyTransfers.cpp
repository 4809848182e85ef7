//===- VerifyTransfers.cpp - Verification of transfers between programs -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/OperandOverlap.h"
#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"

#include <fmt/format.h>
#include <map>

namespace dtc {

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

static MaybeError checkTransfer(const PlanContext &context, const plan::Transfer &transfer) {
  const MeshAxis *pipeline = context.mesh.pipelineAxis();
  if (!pipeline)
    return Error{"the mesh has no pipeline axis, along which alone tensors are sent"};
  if (kindOf(transfer) != TransferKind::Send && kindOf(transfer) != TransferKind::Receive)
    return Error{fmt::format("unknown kind of transfer {}", static_cast<int>(transfer.kind()))};
  if (static_cast<int64_t>(transfer.peer()) >= pipeline->size)
    return Error{fmt::format("its peer is {}, but the pipeline axis \"{}\" has {} devices "
                             "(coordinates count from 0)",
                             transfer.peer(), pipeline->name, pipeline->size)};
  if (static_cast<int64_t>(transfer.peer()) == context.number)
    return Error{fmt::format("its peer is {}, the program itself; expected another program",
                             transfer.peer())};
  if (transfer.buffers().empty())
    return Error{"moves no tensor"};
  for (uint32_t buffer : transfer.buffers()) {
    if (MaybeError error = checkBufferIndex(context, buffer))
      return error;
    if (MaybeError error = checkOnDevice(context, buffer, "the tensors of a transfer"))
      return error;
    if (!context.program.buffers(static_cast<int>(buffer)).has_value())
      return Error{fmt::format("moves buffer {}, which has no number of a value; expected the one "
                               "that it has at the other end too",
                               buffer)};
  }
  return kindOf(transfer) == TransferKind::Receive ? checkReceivedApart(context, transfer)
                                                   : std::nullopt;
}

MaybeError checkTransfers(const PlanContext &context) {
  for (int t = 0; t < context.program.transfers_size(); ++t)
    if (MaybeError error = checkTransfer(context, context.program.transfers(t)))
      return error->inContext(fmt::format("transfer {}", t));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

namespace {
/// A transfer as one end of a channel.
struct End {
  const PlanContext *context;
  int number;

  const plan::Transfer &transfer() const { return context->program.transfers(number); }
  uint32_t value(int tensor) const {
    return context->program.buffers(static_cast<int>(transfer().buffers(tensor))).value();
  }
  const char *kind() const { return kindOf(transfer()) == TransferKind::Send ? "send" : "receive"; }
  std::string str() const {
    return fmt::format("transfer {} of program {} (a {}, peer {})", number, context->number, kind(),
                       transfer().peer());
  }
};
} // namespace

static MaybeError checkEnds(const End &a, const End &b) {
  auto error = [&](const std::string &problem) {
    return Error{fmt::format("{} and {} {}", a.str(), b.str(), problem)};
  };
  if (static_cast<int>(a.transfer().peer()) != b.context->number ||
      static_cast<int>(b.transfer().peer()) != a.context->number)
    return error("do not name each other's programs as their peers");
  if (a.transfer().kind() == b.transfer().kind())
    return error("are of one kind; expected a send and a receive");
  if (a.transfer().buffers_size() != b.transfer().buffers_size())
    return error(fmt::format("have {} and {} tensors; expected as many",
                             a.transfer().buffers_size(), b.transfer().buffers_size()));
  for (int i = 0; i < a.transfer().buffers_size(); ++i) {
    const TensorType &left = a.context->types[a.transfer().buffers(i)];
    const TensorType &right = b.context->types[b.transfer().buffers(i)];
    if (left != right)
      return error(fmt::format("differ in tensor {}: {} and {}", i, left.str(), right.str()));
    if (a.value(i) != b.value(i))
      return error(
          fmt::format("differ in tensor {}: value {} and value {}; expected the same value "
                      "at both ends",
                      i, a.value(i), b.value(i)));
  }
  return std::nullopt;
}

MaybeError checkChannels(const std::vector<PlanContext> &programs) {
  std::map<uint32_t, std::vector<End>> channels;
  for (const PlanContext &context : programs)
    for (int t = 0; t < context.program.transfers_size(); ++t)
      channels[context.program.transfers(t).channel()].push_back({&context, t});
  for (const auto &[channel, ends] : channels) {
    std::string place = fmt::format("channel {}", channel);
    if (ends.size() == 1)
      return Error{fmt::format("has one end, {}; expected another one in program {}", ends[0].str(),
                               ends[0].transfer().peer())}
          .inContext(place);
    if (ends.size() > 2)
      return Error{fmt::format("has {} ends, among them {}, {} and {}; expected two", ends.size(),
                               ends[0].str(), ends[1].str(), ends[2].str())}
          .inContext(place);
    if (MaybeError error = checkEnds(ends[0], ends[1]))
      return error->inContext(place);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// States, inputs and outputs
//===----------------------------------------------------------------------===//

namespace {
/// Bindings of one name, without the fields that are each program's own.
template <typename T> struct Seen {
  T binding;
  int program;
};
} // namespace

/// Takes away the numbers of buffers, which are each program's own. Whether a state is updated
/// stays: where one program does and another does not, the copies drift apart.
static void dropBuffers(plan::State &state) {
  state.clear_buffer();
  if (state.has_update())
    state.set_update(0);
}
static void dropBuffers(plan::Input &input) { input.clear_buffer(); }

/// Compares the fields, all but the buffers, and names the first that differs.
template <typename T>
static MaybeError checkAlike(const char *what, T binding, int program,
                             std::map<std::string, Seen<T>> &all) {
  dropBuffers(binding);
  auto [it, isNew] = all.try_emplace(binding.name(), Seen<T>{binding, program});
  if (isNew || it->second.binding.SerializeAsString() == binding.SerializeAsString())
    return std::nullopt;
  std::string differs;
  const auto *reflection = binding.GetReflection();
  for (int f = 0; f < T::descriptor()->field_count() && differs.empty(); ++f) {
    // A message with this field alone.
    T left = it->second.binding, right = binding;
    for (int other = 0; other < T::descriptor()->field_count(); ++other)
      if (other != f)
        for (T *message : {&left, &right})
          reflection->ClearField(message, T::descriptor()->field(other));
    if (left.SerializeAsString() != right.SerializeAsString())
      differs = T::descriptor()->field(f)->name();
  }
  return Error{fmt::format("{} \"{}\" has another {} in program {} than in program {}; what "
                           "several programs have must be the same in each",
                           what, binding.name(), differs, program, it->second.program)};
}

MaybeError checkSharedBindings(const std::vector<PlanContext> &programs) {
  std::map<std::string, Seen<plan::State>> states;
  std::map<std::string, Seen<plan::Input>> inputs;
  std::map<std::string, int> outputs;
  std::map<int, std::string> scalars; // by role
  for (const PlanContext &context : programs) {
    for (const plan::State &state : context.program.states())
      if (MaybeError error = checkAlike("state", state, context.number, states))
        return error;
    for (const plan::Input &input : context.program.inputs()) {
      if (MaybeError error = checkAlike("input", input, context.number, inputs))
        return error;
      if (input.role() == plan::Input::DATA)
        continue;
      auto [it, isNew] = scalars.try_emplace(input.role(), input.name());
      if (!isNew && it->second != input.name())
        return Error{fmt::format("inputs \"{}\" and \"{}\" of two programs have the same role, "
                                 "which one input has",
                                 it->second, input.name())};
    }
    for (const plan::Output &output : context.program.outputs()) {
      auto [it, isNew] = outputs.try_emplace(output.name(), context.number);
      if (!isNew)
        return Error{fmt::format("programs {} and {} both have an output \"{}\"; an output belongs "
                                 "to one program",
                                 it->second, context.number, output.name())};
    }
  }
  return std::nullopt;
}

} // namespace dtc
