//===- VerifyBindings.cpp - Verification of states, inputs and outputs --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"
#include "plan/StepStates.h"
#include "support/ShardExtent.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

namespace dtc {

/// Checks a sharding of `global` and returns the type of the buffers that it gives, padding
/// included.
static Expected<TensorType> shardType(const PlanContext &context, const plan::Sharding &sharding,
                                      const TensorType &global, bool isInput) {
  if (sharding.dims_size() != global.rank())
    return Error{fmt::format("the sharding has {} dimensions, the tensor {} has {}",
                             sharding.dims_size(), global.str(), global.rank())};
  std::set<std::string> seen;
  TensorType local = global;
  for (int d = 0; d < sharding.dims_size(); ++d) {
    for (const std::string &name : sharding.dims(d).axes()) {
      const MeshAxis *axis = context.mesh.find(name);
      if (!axis)
        return Error{
            fmt::format("the sharding names axis \"{}\", which the mesh does not have", name)};
      if (axis->temporal && !(isInput && d == 0))
        return Error{fmt::format("the sharding names the temporal axis \"{}\"; what outlives a "
                                 "microbatch is split over spatial axes only",
                                 name)};
      if (axis->pipeline)
        return Error{fmt::format("the sharding names the pipeline axis \"{}\", which splits no "
                                 "tensor",
                                 name)};
      if (!seen.insert(name).second)
        return Error{fmt::format("the sharding names axis \"{}\" twice", name)};
    }
    std::vector<std::string> axes = toVector(sharding.dims(d).axes());
    int64_t blocks = context.mesh.groupSize(axes);
    if (auto temporal = std::ranges::find_if(
            axes, [&](const std::string &axis) { return context.mesh.find(axis)->temporal; });
        temporal != axes.end()) {
      // The shard has a piece of each microbatch.
      if (temporal + 1 == axes.end() || global.shape[d] % blocks != 0)
        return Error{
            fmt::format("the sharding splits dimension {} of {} over the temporal axis "
                        "\"{}\"; expected other axes after it, and a size that all of them "
                        "divide",
                        d, global.str(), *temporal)};
      blocks /= context.mesh.find(*temporal)->size;
    }
    if (!paddedShardsFit(global.shape[d], blocks))
      return Error{fmt::format("{} blocks of dimension {} of {} have more elements with their "
                               "padding than 64 bits count",
                               blocks, d, global.str())};
    local.shape[d] = paddedShardSize(global.shape[d], blocks);
  }
  return local;
}

/// The common checks of states, inputs and outputs: T has shape, dtype, sharding and buffer.
template <typename T> static MaybeError checkBinding(const PlanContext &context, const T &binding) {
  if (MaybeError error = checkTensor(binding.dtype(), binding.shape()))
    return error;
  if (isFloat8(toDType(binding.dtype())))
    return Error{fmt::format("the elements are {}, whose scale is elsewhere; expected a type that "
                             "outlives a step",
                             name(toDType(binding.dtype())))};
  if (MaybeError error = checkBufferIndex(context, binding.buffer()))
    return error;
  if (uint32_t slots = context.copies[binding.buffer()].slots; slots != 0)
    return Error{fmt::format("buffer {} has {} slots; what outlives a microbatch has none",
                             binding.buffer(), slots)};
  Expected<TensorType> local =
      shardType(context, binding.sharding(), typeOf(binding), std::is_same_v<T, plan::Input>);
  if (!local)
    return local.error();
  const TensorType &buffer = context.types[binding.buffer()];
  if (*local != buffer)
    return Error{fmt::format("the shard is {}, but buffer {} is {}; the tensor is {}, and every "
                             "shard has room for its size over the number of blocks, rounded up",
                             local->str(), binding.buffer(), buffer.str(), typeOf(binding).str())};
  return std::nullopt;
}

static MaybeError checkState(const PlanContext &context, const plan::State &state) {
  if (MaybeError error = checkBinding(context, state))
    return error;
  if (MaybeError error = checkTensor(state.dtype(), state.file_shape()))
    return error->inContext("file_shape");
  if (typeOf(state).numElements() != fileTypeOf(state).numElements())
    return Error{fmt::format("{} in the file and {} in the program differ in the number of "
                             "elements",
                             fileTypeOf(state).str(), typeOf(state).str())};
  if (state.has_update()) {
    if (MaybeError error = checkBufferIndex(context, state.update()))
      return error->inContext("update");
    if (!context.areSameBytes(state.update(), state.buffer()) ||
        context.types[state.update()] != context.types[state.buffer()])
      return Error{fmt::format(
          "its update is buffer {}, {} at offset {}; expected what it is before "
          "the step, buffer {}, {} at offset {}",
          state.update(), context.types[state.update()].str(),
          context.copies[state.update()].first.begin, state.buffer(),
          context.types[state.buffer()].str(), context.copies[state.buffer()].first.begin)};
  }
  const plan::Init &init = state.init();
  if (init.kind() < plan::Init::ZEROS || init.kind() > plan::Init::UNIFORM)
    return Error{fmt::format("unknown kind of initial value {}", static_cast<int>(init.kind()))};
  bool random = init.kind() == plan::Init::NORMAL || init.kind() == plan::Init::UNIFORM;
  if (random && !isFloat(toDType(state.dtype())))
    return Error{fmt::format("random initial values need a float type, found {}",
                             name(toDType(state.dtype())))};
  if (random && !(std::isfinite(init.scale()) && init.scale() >= 0))
    return Error{
        fmt::format("the scale of the initial values is {}; expected 0 or more", init.scale())};
  return std::nullopt;
}

/// Whether every device has all of it.
static bool isReplicated(const plan::Sharding &sharding) {
  return std::all_of(sharding.dims().begin(), sharding.dims().end(),
                     [](const plan::DimSharding &dim) { return dim.axes().empty(); });
}

static MaybeError checkRole(const plan::Input &input) {
  TensorType type = typeOf(input);
  auto expect = [&](bool valid, const char *what) -> MaybeError {
    if (!valid)
      return Error{fmt::format("{}, found {}", what, type.str())};
    if (!isReplicated(input.sharding()))
      return Error{"is split over devices; expected all of it on each"};
    return std::nullopt;
  };
  switch (input.role()) {
  case plan::Input::DATA:
    return std::nullopt;
  case plan::Input::BATCHES:
    return expect(type.rank() == 0 && isFloat(type.dtype),
                  "the number of batches is a scalar of a float type");
  case plan::Input::LEARNING_RATES:
    return expect(type.rank() == 1 && type.numElements() > 0 && isFloat(type.dtype) &&
                      type.dtype == wideType(type.dtype),
                  "learning rates are a vector of f32 or f64");
  case plan::Input::FIRST_STEP:
    return expect(type == TensorType{DType::I32, {}},
                  "the step of the first learning rate is a scalar of i32");
  default:
    return Error{fmt::format("unknown role {}", static_cast<int>(input.role()))};
  }
}

static MaybeError checkInput(const PlanContext &context, const plan::Input &input) {
  if (MaybeError error = checkBinding(context, input))
    return error;
  if (MaybeError error = checkOnDevice(context, input.buffer(), "an input"))
    return error;
  if (MaybeError error = checkRole(input))
    return error;
  if (input.index_limit() < 0 || input.index_limit() > int64_t{1} << 31)
    return Error{fmt::format("index_limit is {}; expected 0 to 2^31", input.index_limit())};
  if (input.has_ignored_index() && !std::in_range<int32_t>(input.ignored_index()))
    return Error{
        fmt::format("ignored_index is {}; expected a number of i32", input.ignored_index())};
  for (auto [isGiven, field] : {std::pair(input.index_limit() > 0, "index_limit"),
                                std::pair(input.has_ignored_index(), "ignored_index")}) {
    if (isGiven && input.role() != plan::Input::DATA)
      return Error{fmt::format("{} is for inputs of role DATA, found {}", field,
                               plan::Input::Role_Name(input.role()))};
    if (isGiven && toDType(input.dtype()) != DType::I32)
      return Error{fmt::format("{} is for elements of type i32, found {}", field,
                               name(toDType(input.dtype())))};
  }
  return std::nullopt;
}

static MaybeError checkName(const char *what, const std::string &name, int index,
                            std::set<std::string> &names) {
  if (name.empty())
    return Error{fmt::format("{} {} has no name", what, index)};
  if (!names.insert(name).second)
    return Error{fmt::format("two {}s are named \"{}\"; names must be distinct", what, name)};
  return std::nullopt;
}

/// States and inputs all hold their values when a step begins, so no two may share bytes.
static MaybeError checkDisjoint(const PlanContext &context) {
  struct Held {
    ByteRange range;
    std::string what;
  };
  std::vector<Held> held;
  for (const plan::State &state : context.program.states())
    held.push_back({context.ranges[state.buffer()], fmt::format("state \"{}\"", state.name())});
  for (const plan::Input &input : context.program.inputs())
    held.push_back({context.ranges[input.buffer()], fmt::format("input \"{}\"", input.name())});
  std::erase_if(held, [](const Held &h) { return h.range.empty(); });
  std::sort(held.begin(), held.end(),
            [](const Held &a, const Held &b) { return a.range.begin < b.range.begin; });
  for (size_t i = 1; i < held.size(); ++i)
    if (held[i - 1].range.overlaps(held[i].range))
      return Error{
          fmt::format("{} and {} share bytes of the arena", held[i - 1].what, held[i].what)};
  return std::nullopt;
}

/// A state that holds `parameter` in full precision.
static MaybeError checkMaster(const plan::State &master, const plan::State &parameter) {
  DType dtype = toDType(master.dtype()), rounded = toDType(parameter.dtype());
  if (!isFloat(dtype) || dtype != wideType(dtype))
    return Error{fmt::format("master weights are f32 or f64, found {}", name(dtype))};
  if (!isFloat(rounded))
    return Error{fmt::format("the parameter \"{}\" is {}; only parameters of float types have "
                             "master weights",
                             parameter.name(), name(rounded))};
  if (byteWidth(dtype) < byteWidth(rounded))
    return Error{fmt::format("the master weights are {}, less precise than the parameter \"{}\", "
                             "which is {}",
                             name(dtype), parameter.name(), name(rounded))};
  auto inMasterType = [&](TensorType type) {
    type.dtype = dtype;
    return type.str();
  };
  if (toVector(master.shape()) != toVector(parameter.shape()))
    return Error{fmt::format("the master weights are {}, expected {}, the shape of the parameter "
                             "\"{}\"",
                             typeOf(master).str(), inMasterType(typeOf(parameter)),
                             parameter.name())};
  if (toVector(master.file_shape()) != toVector(parameter.file_shape()))
    return Error{fmt::format("the master weights are {} in the file, expected {}, as the parameter "
                             "\"{}\"",
                             fileTypeOf(master).str(), inMasterType(fileTypeOf(parameter)),
                             parameter.name())};
  return std::nullopt;
}

/// A part of the step state.
static MaybeError checkStepState(const plan::State &state) {
  const StepStateKind &kind = *stepStateKindOf(state.kind());
  TensorType type = typeOf(state);
  TensorType expected = kind.typeWith(type.dtype == DType::F64 ? DType::F64 : DType::F32);
  if (type != expected || fileTypeOf(state) != expected)
    return Error{fmt::format("{} of step state is {}{}, found {}",
                             plan::State::Kind_Name(state.kind()), expected.str(),
                             kind.isFloat ? " or f64[]" : "", type.str())};
  if (!isReplicated(state.sharding()))
    return Error{"is step state and split over devices; expected all of it on each"};
  if (state.init().kind() != plan::Init::ZEROS && state.init().kind() != plan::Init::ONES)
    return Error{"is step state and starts as random numbers; expected zeros or ones"};
  if (!kind.isUpdated && state.has_update())
    return Error{fmt::format("is the step state {} and updated by the step; expected that it stays",
                             kind.name)};
  return std::nullopt;
}

static MaybeError checkCache(const plan::State &state) {
  if (state.init().kind() == plan::Init::ZEROS)
    return std::nullopt;
  return Error{"is a cache; expected that it starts as zeros"};
}

/// The requirements of the kinds of states. All states have passed checkState.
static MaybeError checkKinds(const plan::Program &program) {
  std::map<std::string, const plan::State *> parameters;
  for (const plan::State &state : program.states())
    if (state.kind() == plan::State::PARAMETER)
      parameters.emplace(state.name(), &state);
  std::map<std::string, std::string> masters; // of each parameter
  std::map<int, std::string> stepStates;      // by kind
  for (const plan::State &state : program.states()) {
    auto error = [&](const MaybeError &found) {
      return found->inContext(fmt::format("state \"{}\"", state.name()));
    };
    if (!plan::State::Kind_IsValid(state.kind()))
      return Error{fmt::format("state \"{}\" is of the unknown kind {}", state.name(),
                               static_cast<int>(state.kind()))};
    const std::string &kind = plan::State::Kind_Name(state.kind());
    bool belongs =
        state.kind() == plan::State::OPTIMIZER || state.kind() == plan::State::MASTER_WEIGHTS;
    if (belongs == state.parameter().empty())
      return Error{belongs
                       ? fmt::format("state \"{}\" is of kind {}, but names no parameter that it "
                                     "belongs to",
                                     state.name(), kind)
                       : fmt::format("state \"{}\" is of kind {} and belongs to parameter \"{}\"; "
                                     "only OPTIMIZER and MASTER_WEIGHTS do",
                                     state.name(), kind, state.parameter())};
    if (isStepState(state.kind())) {
      if (MaybeError found = checkStepState(state))
        return error(found);
      if (auto [other, isFirst] = stepStates.try_emplace(state.kind(), state.name()); !isFirst)
        return Error{fmt::format("states \"{}\" and \"{}\" are both of kind {}; expected one at "
                                 "most",
                                 other->second, state.name(), kind)};
    }
    if (state.kind() == plan::State::CACHE)
      if (MaybeError found = checkCache(state))
        return error(found);
    if (!belongs)
      continue;
    auto parameter = parameters.find(state.parameter());
    if (parameter == parameters.end())
      return Error{fmt::format("state \"{}\" belongs to parameter \"{}\", which does not exist",
                               state.name(), state.parameter())};
    if (state.kind() != plan::State::MASTER_WEIGHTS)
      continue;
    if (MaybeError found = checkMaster(state, *parameter->second))
      return error(found);
    auto [other, isFirst] = masters.try_emplace(state.parameter(), state.name());
    if (!isFirst)
      return Error{fmt::format("states \"{}\" and \"{}\" both hold master weights of parameter "
                               "\"{}\"; expected one at most",
                               other->second, state.name(), state.parameter())};
  }
  return std::nullopt;
}

static MaybeError checkStates(const PlanContext &context) {
  const plan::Program &program = context.program;
  std::set<std::string> names;
  for (int i = 0; i < program.states_size(); ++i) {
    const plan::State &state = program.states(i);
    if (MaybeError error = checkName("state", state.name(), i, names))
      return error;
    MaybeError error = checkState(context, state);
    if (!error && isStepState(state.kind()))
      error = checkOnDevice(context, state.buffer(), "the step state");
    if (error)
      return error->inContext(fmt::format("state \"{}\"", state.name()));
  }
  return checkKinds(program);
}

static MaybeError checkInputs(const PlanContext &context) {
  const plan::Program &program = context.program;
  std::set<std::string> names;
  std::set<int> roles;
  for (int i = 0; i < program.inputs_size(); ++i) {
    const plan::Input &input = program.inputs(i);
    if (MaybeError error = checkName("input", input.name(), i, names))
      return error;
    if (MaybeError error = checkInput(context, input))
      return error->inContext(fmt::format("input \"{}\"", input.name()));
    if (input.role() != plan::Input::DATA && !roles.insert(input.role()).second)
      return Error{fmt::format("input \"{}\" is the second one of its role", input.name())};
  }
  if (roles.count(plan::Input::LEARNING_RATES) != roles.count(plan::Input::FIRST_STEP))
    return Error{"the program has one of LEARNING_RATES and FIRST_STEP; expected both inputs, the "
                 "second says which steps the first is for, or none"};
  for (plan::State::Kind kind : {plan::State::APPLIED_STEPS, plan::State::SKIPPED_STEPS})
    if (roles.count(plan::Input::LEARNING_RATES) > 0 &&
        std::none_of(program.states().begin(), program.states().end(),
                     [&](const plan::State &state) { return state.kind() == kind; }))
      return Error{fmt::format("the program has learning rates and no state of kind {}; expected "
                               "one, which says with them which rate a step has",
                               plan::State::Kind_Name(kind))};
  return std::nullopt;
}

MaybeError checkBindings(const PlanContext &context) {
  if (MaybeError error = checkStates(context))
    return error;
  if (MaybeError error = checkInputs(context))
    return error;
  std::set<std::string> names;
  for (int i = 0; i < context.program.outputs_size(); ++i) {
    const plan::Output &output = context.program.outputs(i);
    if (MaybeError error = checkName("output", output.name(), i, names))
      return error;
    if (MaybeError error = checkBinding(context, output))
      return error->inContext(fmt::format("output \"{}\"", output.name()));
    if (MaybeError error = checkOnDevice(context, output.buffer(), "an output"))
      return error->inContext(fmt::format("output \"{}\"", output.name()));
    if (output.must_be_zero() && (!output.metric() || !isFloat(toDType(output.dtype()))))
      return Error{fmt::format("output \"{}\" must be zero, and is {}; expected a metric of floats",
                               output.name(), output.metric() ? "not of floats" : "no metric")};
  }
  return checkDisjoint(context);
}

} // namespace dtc
