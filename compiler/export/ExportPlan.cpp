//===- ExportPlan.cpp - From exec IR to a plan ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/export/ExportPlan.h"

#include "compiler/analysis/DescribeLocation.h"
#include "dialects/dtc/LoraAttribute.h"
#include "dialects/exec/Exec.h"
#include "plan/KernelTable.h"
#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "plan/StepStates.h"
#include "plan/plan.pb.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace dtc;

namespace {

class Exporter {
public:
  Exporter(ModuleOp module, plan::Plan &plan) : module(module), plan(plan) {}
  /// Exports the programs of an entry point; null: those of the plan's own.
  LogicalResult run(StringRef modelName, StringAttr entry);

private:
  LogicalResult exportProgram(exec::ProgramOp op);
  LogicalResult exportInstruction(Operation &op, plan::Instruction &out);
  void exportAfter(ValueRange tokens, plan::Instruction &out);
  LogicalResult exportAttribute(Operation &at, Attribute attr, plan::Attribute &out);
  void exportSharding(dist::ShardingAttr attr, plan::Sharding &out);
  void exportBuffer(exec::BufferOp buffer);
  /// A view, or a value that takes the place of another one.
  void exportPlace(Operation &entry);
  void exportState(exec::StateOp state);
  void exportInput(exec::InputOp input);
  void exportOutput(exec::OutputOp output);
  LogicalResult exportTransfer(exec::TransferOp transfer);
  void exportValueNumbers();
  LogicalResult exportTask(exec::TaskOp task);
  void exportRun(exec::RunOp run);
  void exportSlotMap(DenseI64ArrayAttr map, plan::Buffer &out);
  uint32_t locationIndex(const Twine &text);
  uint32_t reasonIndex(DictionaryAttr reason);
  uint32_t indexOf(Value buffer) const { return buffers.at(buffer); }

  ModuleOp module;
  plan::Plan &plan;
  plan::Program *program = nullptr;
  llvm::DenseMap<Value, uint32_t> buffers;
  // The numbers that the program gives to:
  llvm::StringMap<uint32_t> transfers;
  llvm::DenseMap<Attribute, uint32_t> slotMaps;
  llvm::StringMap<uint32_t> tasks;
  llvm::StringMap<int> states;
  llvm::StringMap<uint32_t> locations;
  llvm::DenseMap<Attribute, uint32_t> reasons;
  llvm::DenseMap<Operation *, uint32_t> instructions; ///< numbers within the task

  /// A tensor of a transfer: its buffer, and the number that the IR gives its value.
  struct Moved {
    int program;
    uint32_t buffer;
    int64_t number;
  };
  SmallVector<Moved> moved; ///< of all programs
};

} // namespace

uint32_t Exporter::locationIndex(const Twine &text) {
  auto [it, fresh] = locations.try_emplace(text.str(), plan.locations_size());
  if (fresh)
    plan.add_locations(it->first().str());
  return it->second;
}

uint32_t Exporter::reasonIndex(DictionaryAttr reason) {
  if (reason.empty())
    return 0;
  auto [it, fresh] = reasons.try_emplace(reason, static_cast<uint32_t>(plan.reasons_size()));
  if (!fresh)
    return it->second;
  auto text = [&](StringRef key) {
    auto attr = reason.getAs<StringAttr>(key);
    return attr ? attr.str() : std::string();
  };
  auto place = [&](StringRef key) {
    std::string name = text(key);
    return name.empty() ? 0 : locationIndex(name);
  };
  plan::Reason *out = plan.add_reasons();
  out->set_value(text("value"));
  out->set_from(text("from"));
  out->set_to(text("to"));
  out->set_producer(place("producer"));
  out->set_consumer(place("consumer"));
  out->set_remedy(text("remedy"));
  return it->second;
}

static DType dtypeOf(Type elementType) {
  return isa<Float8E4M3FNType>(elementType) ? DType::F8E4M3
         : isa<Float8E5M2Type>(elementType) ? DType::F8E5M2
         : elementType.isF32()              ? DType::F32
         : elementType.isF64()              ? DType::F64
         : elementType.isBF16()             ? DType::BF16
         : elementType.isF16()              ? DType::F16
         : elementType.isInteger(32)        ? DType::I32
                                            : DType::Bool;
}

void Exporter::exportSharding(dist::ShardingAttr attr, plan::Sharding &out) {
  for (auto dim : attr.getDims().getAsRange<ArrayAttr>()) {
    plan::DimSharding *entry = out.add_dims();
    for (auto axis : dim.getAsRange<StringAttr>())
      entry->add_axes(axis.str());
  }
}

void Exporter::exportBuffer(exec::BufferOp buffer) {
  buffers[buffer] = program->buffers_size();
  auto type = cast<MemRefType>(buffer.getType());
  plan::Buffer *out = program->add_buffers();
  out->set_dtype(toPlan(dtypeOf(type.getElementType())));
  for (int64_t size : type.getShape())
    out->add_shape(size);
  out->set_offset(*buffer.getOffset());
  out->set_kind(toPlan(buffer.getKind()));
  out->set_slots(buffer.getSlots().value_or(0));
  out->set_memory(exec::isOnHost(buffer) ? plan::Buffer::HOST : plan::Buffer::DEVICE);
  if (DenseI64ArrayAttr map = buffer.getSlotMapAttr())
    exportSlotMap(map, *out);
}

void Exporter::exportSlotMap(DenseI64ArrayAttr map, plan::Buffer &out) {
  auto [it, fresh] = slotMaps.try_emplace(map, program->slot_maps_size());
  if (fresh)
    for (plan::SlotMap *to = program->add_slot_maps(); int64_t slot : map.asArrayRef())
      to->add_slots(slot);
  out.set_slot_map(it->second);
}

LogicalResult Exporter::exportAttribute(Operation &at, Attribute attr, plan::Attribute &out) {
  return llvm::TypeSwitch<Attribute, LogicalResult>(attr)
      .Case<BoolAttr>([&](auto value) { return out.set_b(value.getValue()), success(); })
      .Case<IntegerAttr>([&](auto value) { return out.set_i(value.getInt()), success(); })
      .Case<FloatAttr>([&](auto value) { return out.set_f(value.getValueAsDouble()), success(); })
      .Case<StringAttr>([&](auto value) { return out.set_s(value.str()), success(); })
      .Case<DenseI64ArrayAttr>([&](auto value) {
        out.mutable_ints();
        for (int64_t element : value.asArrayRef())
          out.mutable_ints()->add_values(element);
        return success();
      })
      .Case<DenseF64ArrayAttr>([&](auto value) {
        ArrayRef<char> raw = value.getRawData();
        out.set_data(raw.data(), raw.size());
        return success();
      })
      .Case<ArrayAttr>([&](ArrayAttr value) -> LogicalResult {
        out.mutable_strings();
        for (Attribute element : value) {
          auto string = dyn_cast<StringAttr>(element);
          if (!string)
            return at.emitOpError()
                   << "has the attribute " << value << ", expected an array of strings";
          out.mutable_strings()->add_values(string.str());
        }
        return success();
      })
      .Case<DenseElementsAttr>([&](DenseElementsAttr value) -> LogicalResult {
        std::string bytes;
        if (value.getElementType().isInteger(1)) {
          for (bool element : value.getValues<bool>())
            bytes.push_back(element);
        } else {
          size_t width = value.getElementType().getIntOrFloatBitWidth() / 8;
          ArrayRef<char> raw = value.getRawData();
          for (int64_t copy = 0, n = value.isSplat() ? value.getNumElements() : 1; copy < n; ++copy)
            bytes.append(raw.data(), value.isSplat() ? width : raw.size());
        }
        out.set_data(bytes);
        return success();
      })
      .Default([&](Attribute other) {
        return at.emitOpError() << "has the attribute " << other << ", which a plan cannot hold";
      });
}

void Exporter::exportAfter(ValueRange tokens, plan::Instruction &out) {
  for (Value token : tokens)
    out.add_after(instructions.at(token.getDefiningOp()));
}

LogicalResult Exporter::exportInstruction(Operation &op, plan::Instruction &out) {
  out.set_location(locationIndex(describeLocation(op.getLoc())));
  if (auto kernel = dyn_cast<exec::KernelOp>(op)) {
    plan::KernelCall &call = *out.mutable_kernel();
    call.set_kernel(kernel.getKernel().str());
    for (Value input : kernel.getInputs())
      call.add_inputs(indexOf(input));
    for (Value output : kernel.getOutputs())
      call.add_outputs(indexOf(output));
    for (NamedAttribute attr : kernel.getSettings())
      if (failed(exportAttribute(op, attr.getValue(),
                                 (*call.mutable_attributes())[attr.getName().str()])))
        return failure();
    out.set_flops(kernel.getFlops().convertToDouble());
    call.set_async(bool(kernel.getToken()));
    exportAfter(kernel.getAfter(), out);
    if (auto problem = checkKernelCall(call))
      return op.emitOpError() << "cannot be in a plan: " << problem->message;
    return success();
  }
  if (auto wait = dyn_cast<exec::WaitOp>(op)) {
    out.mutable_wait()->set_instruction(instructions.at(wait.getToken().getDefiningOp()));
    return success();
  }
  if (auto start = dyn_cast<exec::StartOp>(op)) {
    out.mutable_start_transfer()->set_transfer(transfers.at(start.getTransfer()));
    return success();
  }
  if (auto finish = dyn_cast<exec::FinishOp>(op)) {
    out.mutable_finish_transfer()->set_transfer(transfers.at(finish.getTransfer()));
    return success();
  }
  auto collective = cast<exec::CollectiveOp>(op);
  plan::Collective &to = *out.mutable_collective();
  to.set_kind(toPlan(collective.getKind()));
  if (auto reduction = collective.getReduction())
    to.set_reduction(toPlan(*reduction));
  for (auto axis : collective.getAxes().getAsRange<StringAttr>())
    to.add_axes(axis.str());
  if (auto sources = collective.getSourceAxes())
    for (auto axis : sources->getAsRange<StringAttr>())
      to.add_source_axes(axis.str());
  to.set_shift(collective.getShift().value_or(0));
  to.set_async(bool(collective.getToken()));
  exportAfter(collective.getAfter(), out);
  for (size_t i = 0; i < collective.getInputs().size(); ++i) {
    plan::CollectiveTensor *tensor = to.add_tensors();
    tensor->set_input(indexOf(collective.getInputs()[i]));
    tensor->set_output(indexOf(collective.getOutputs()[i]));
    tensor->set_dim(collective.getDims()[i]);
    tensor->set_split_dim(collective.getSplitDims()[i]);
    if (auto reasons = collective.getReasons())
      tensor->set_reason(reasonIndex(cast<DictionaryAttr>((*reasons)[i])));
  }
  return success();
}

static void exportInit(Attribute attr, plan::Init &out) {
  if (auto normal = dyn_cast_or_null<NormalAttr>(attr)) {
    out.set_kind(plan::Init::NORMAL);
    out.set_scale(normal.getStddev().convertToDouble());
  } else if (auto uniform = dyn_cast_or_null<UniformAttr>(attr)) {
    out.set_kind(plan::Init::UNIFORM);
    out.set_scale(uniform.getBound().convertToDouble());
  } else if (isa_and_nonnull<OnesAttr>(attr)) {
    out.set_kind(plan::Init::ONES);
  } else {
    out.set_kind(plan::Init::ZEROS);
  }
}

static plan::State::Kind kindOf(exec::StateOp state) {
  if (auto stepState = state.getStepState())
    return kindOf(*findStepStateKind(*stepState));
  return state.getCache()       ? plan::State::CACHE
         : state.getMaster()    ? plan::State::MASTER_WEIGHTS
         : state.getParameter() ? plan::State::OPTIMIZER
                                : plan::State::PARAMETER;
}

void Exporter::exportPlace(Operation &entry) {
  Value value = entry.getResult(0), source = entry.getOperand(0);
  plan::Buffer out = program->buffers(indexOf(source)); // the same place
  out.clear_view_of();
  out.clear_reuses();
  if (isa<exec::ReuseOp>(entry)) {
    out.set_reuses(indexOf(exec::getRoot(source)));
  } else {
    while (auto view = source.getDefiningOp<exec::ViewOp>())
      source = view.getSource();
    out.set_view_of(indexOf(source));
  }
  out.clear_shape();
  for (int64_t size : cast<MemRefType>(value.getType()).getShape())
    out.add_shape(size);
  buffers[value] = program->buffers_size();
  *program->add_buffers() = std::move(out);
}

void Exporter::exportState(exec::StateOp state) {
  states[state.getStateName()] = program->states_size();
  plan::State *out = program->add_states();
  out->set_name(state.getStateName().str());
  out->set_parameter(state.getParameter().value_or("").str());
  for (int64_t size : state.getFileShape())
    out->add_file_shape(size);
  for (int64_t size : state.getShape())
    out->add_shape(size);
  out->set_dtype(toPlan(dtypeOf(cast<MemRefType>(state.getBuffer().getType()).getElementType())));
  exportSharding(state.getSharding(), *out->mutable_sharding());
  exportInit(state.getInitAttr(), *out->mutable_init());
  out->set_buffer(indexOf(state.getBuffer()));
  out->set_kind(kindOf(state));
}

void Exporter::exportInput(exec::InputOp input) {
  plan::Input *out = program->add_inputs();
  out->set_name(input.getInputName().str());
  out->set_role(llvm::StringSwitch<plan::Input::Role>(input.getRole())
                    .Case("learning_rates", plan::Input::LEARNING_RATES)
                    .Case("first_step", plan::Input::FIRST_STEP)
                    .Case("batches", plan::Input::BATCHES)
                    .Default(plan::Input::DATA));
  for (int64_t size : input.getShape())
    out->add_shape(size);
  out->set_dtype(toPlan(dtypeOf(cast<MemRefType>(input.getBuffer().getType()).getElementType())));
  exportSharding(input.getSharding(), *out->mutable_sharding());
  out->set_buffer(indexOf(input.getBuffer()));
  out->set_index_limit(input.getIndexLimit().value_or(0));
  if (auto ignored = input.getIgnoredIndex())
    out->set_ignored_index(*ignored);
}

void Exporter::exportOutput(exec::OutputOp output) {
  plan::Output *out = program->add_outputs();
  out->set_name(output.getOutputName().str());
  for (int64_t size : output.getShape())
    out->add_shape(size);
  out->set_dtype(toPlan(dtypeOf(cast<MemRefType>(output.getBuffer().getType()).getElementType())));
  exportSharding(output.getSharding(), *out->mutable_sharding());
  out->set_buffer(indexOf(output.getBuffer()));
  out->set_metric(output.getMetric());
  out->set_must_be_zero(output.getMustBeZero());
}

LogicalResult Exporter::exportTransfer(exec::TransferOp transfer) {
  auto numbers = transfer.getNumbers();
  if (!numbers)
    return transfer.emitOpError() << "has no numbers of its values, which a plan needs; "
                                     "dtc-schedule-pipeline gives them to dist.send and "
                                     "dist.receive";
  transfers[transfer.getSymName()] = program->transfers_size();
  plan::Transfer *out = program->add_transfers();
  out->set_kind(toPlan(transfer.getKind()));
  out->set_peer(transfer.getPeer());
  out->set_channel(transfer.getChannel());
  for (auto [buffer, number] : llvm::zip_equal(transfer.getBuffers(), *numbers)) {
    out->add_buffers(indexOf(buffer));
    moved.push_back({plan.programs_size() - 1, indexOf(buffer), number});
  }
  return success();
}

/// Gives a number to each value that is sent. Values that one buffer holds, as passes found that
/// they are equal, have one number.
void Exporter::exportValueNumbers() {
  llvm::EquivalenceClasses<int64_t> equal;
  std::map<std::pair<int, uint32_t>, int64_t> firstIn; // of each buffer
  for (const Moved &tensor : moved) {
    auto [it, fresh] = firstIn.try_emplace({tensor.program, tensor.buffer}, tensor.number);
    equal.unionSets(it->second, tensor.number);
  }
  std::map<int64_t, uint32_t> exported;
  for (const Moved &tensor : moved) {
    int64_t leader = equal.getLeaderValue(tensor.number);
    uint32_t number = exported.try_emplace(leader, exported.size()).first->second;
    plan.mutable_programs(tensor.program)->mutable_buffers(tensor.buffer)->set_value(number);
  }
}

LogicalResult Exporter::exportTask(exec::TaskOp task) {
  tasks[task.getSymName()] = program->tasks_size();
  plan::Task *out = program->add_tasks();
  out->set_name(task.getSymName().str());
  if (auto pass = task.getPass())
    out->set_kind(toPlan(*pass));
  out->set_stage(task.getStage().value_or(0));
  if (auto seconds = task.getSeconds())
    out->set_seconds(seconds->convertToDouble());
  for (Operation &instruction : task.getBody().front()) {
    instructions[&instruction] = out->instructions_size();
    if (failed(exportInstruction(instruction, *out->add_instructions())))
      return failure();
  }
  return success();
}

void Exporter::exportRun(exec::RunOp run) {
  plan::ScheduleEntry *out = program->add_schedule();
  out->set_task(tasks.at(run.getTask()));
  out->set_microbatch(run.getMicrobatch());
  if (run.getInLoop()) {
    if (program->loop_end() == 0)
      program->set_loop_begin(program->schedule_size() - 1);
    program->set_loop_end(program->schedule_size());
  }
}

LogicalResult Exporter::exportProgram(exec::ProgramOp op) {
  program = plan.add_programs();
  if (!op.getArenaBytes())
    return op.emitOpError() << "has no planned memory; run dtc-plan-memory first";
  program->set_arena_bytes(*op.getArenaBytes());
  program->set_arena_lower_bound(op.getArenaLowerBound().value_or(0));
  if (auto kinds = op.getMemoryByKindAttr())
    for (NamedAttribute kind : kinds)
      (*program->mutable_memory_by_kind())[kind.getName().str()] =
          cast<IntegerAttr>(kind.getValue()).getInt();
  program->set_host_arena_bytes(op.getHostArenaBytes().value_or(0));
  if (auto kinds = op.getHostMemoryByKindAttr())
    for (NamedAttribute kind : kinds)
      (*program->mutable_host_memory_by_kind())[kind.getName().str()] =
          cast<IntegerAttr>(kind.getValue()).getInt();

  if (auto pipeline = op.getPipelineAttr()) {
    plan.mutable_pipeline()->set_schedule(pipeline.getAs<StringAttr>("schedule").str());
    plan.mutable_pipeline()->set_stages(pipeline.getAs<IntegerAttr>("stages").getInt());
  }
  transfers.clear();
  slotMaps.clear();
  tasks.clear();
  states.clear();
  for (Operation &entry : op.getBody().front()) {
    if (auto buffer = dyn_cast<exec::BufferOp>(entry))
      exportBuffer(buffer);
    else if (isa<exec::ViewOp, exec::ReuseOp>(entry))
      exportPlace(entry);
    else if (auto state = dyn_cast<exec::StateOp>(entry))
      exportState(state);
    else if (auto input = dyn_cast<exec::InputOp>(entry))
      exportInput(input);
    else if (auto output = dyn_cast<exec::OutputOp>(entry))
      exportOutput(output);
    else if (auto transfer = dyn_cast<exec::TransferOp>(entry);
             transfer && failed(exportTransfer(transfer)))
      return failure();
    else if (auto task = dyn_cast<exec::TaskOp>(entry); task && failed(exportTask(task)))
      return failure();
    else if (auto run = dyn_cast<exec::RunOp>(entry))
      exportRun(run);
  }
  for (auto update : op.getOps<exec::UpdateOp>())
    program->mutable_states(states.at(update.getStateName()))
        ->set_update(indexOf(update.getBuffer()));
  return success();
}

LogicalResult Exporter::run(StringRef modelName, StringAttr entry) {
  plan.set_version(kPlanVersion);
  plan.set_producer("dtc-compile " DTC_VERSION);
  plan.set_model(modelName.str());
  if (entry)
    plan.set_entry(entry.str());
  locations["unknown"] = 0;
  plan.add_locations("unknown");
  plan.add_reasons(); // index 0: no reason is known
  if (auto lora = module->getAttrOfType<DictionaryAttr>(kLoraAttrName)) {
    plan.mutable_lora()->set_rank(lora.getAs<IntegerAttr>("rank").getInt());
    plan.mutable_lora()->set_alpha(lora.getAs<FloatAttr>("alpha").getValueAsDouble());
    plan.mutable_lora()->set_dropout(lora.getAs<FloatAttr>("dropout").getValueAsDouble());
    for (auto target : lora.getAs<ArrayAttr>("targets").getAsRange<StringAttr>())
      plan.mutable_lora()->add_targets(target.str());
  }
  if (auto reason = module->getAttrOfType<StringAttr>(dist::kOneBatchAttrName); reason && !entry)
    plan.set_one_batch(reason.str());
  for (auto mesh : module.getOps<dist::MeshOp>())
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>()) {
      plan::Axis *out = plan.add_axes();
      out->set_name(axis.getName().str());
      out->set_size(axis.getSize());
      out->set_temporal(axis.getTemporal());
      if (axis.getSubAxisOf())
        out->set_sub_axis_of(axis.getSubAxisOf().str());
      out->set_pipeline(axis.getPipeline());
      if (axis.getBandwidth()) {
        out->set_bandwidth(axis.getBandwidth().getValueAsDouble());
        out->set_latency(axis.getLatency().getValueAsDouble());
      }
    }
  for (auto program : module.getOps<exec::ProgramOp>())
    if (program.getEntryAttr() == entry && failed(exportProgram(program)))
      return failure();
  exportValueNumbers();
  int64_t expected = 1;
  for (const plan::Axis &axis : plan.axes())
    if (axis.pipeline())
      expected = axis.size();
  if (plan.programs_size() != expected)
    return module.emitError() << "the module has " << plan.programs_size()
                              << " exec.programs, expected "
                              << (expected == 1 ? "one; run dtc-lower-to-exec on one function"
                                                : "one for each coordinate on the pipeline axis; "
                                                  "run dtc-schedule-pipeline");
  return success();
}

LogicalResult dtc::exportPlan(ModuleOp module, StringRef modelName, plan::Plan &plan) {
  if (failed(Exporter(module, plan).run(modelName, StringAttr())))
    return failure();
  llvm::SetVector<StringAttr> entries;
  for (auto program : module.getOps<exec::ProgramOp>())
    if (StringAttr entry = program.getEntryAttr())
      entries.insert(entry);
  for (StringAttr entry : entries)
    if (failed(Exporter(module, *plan.add_entry_points()).run(modelName, entry)))
      return failure();
  return success();
}
