//===- PipelineVerifierTest.cpp - Checks of programs that send ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "plan/PlanReader.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <functional>
#include <gtest/gtest.h>

namespace pipelineVerifierTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// The error of the pipeline plan after a change; `first` and `second` are its programs.
static std::string
errorAfter(const std::function<void(plan::Plan &, plan::Program &, plan::Program &)> &change) {
  auto plan = pipelinePlan();
  change(*plan, *plan->mutable_programs(0), *plan->mutable_programs(1));
  return messageOf(findPlanError(*plan));
}

#define EXPECT_ERROR_AFTER(part, ...)                                                              \
  EXPECT_TRUE(contains(errorAfter([](plan::Plan &plan, plan::Program &first,                       \
                                     plan::Program &second) { __VA_ARGS__; }),                     \
                       part))

static plan::Task &taskOf(plan::Program &program, const std::string &name) {
  for (plan::Task &task : *program.mutable_tasks())
    if (task.name() == name)
      return task;
  throw std::logic_error("no task " + name);
}

/// The place of an execution in the schedule.
static int entryOf(const plan::Program &program, const std::string &task, uint32_t microbatch) {
  for (int e = 0; e < program.schedule_size(); ++e)
    if (program.tasks(static_cast<int>(program.schedule(e).task())).name() == task &&
        program.schedule(e).microbatch() == microbatch)
      return e;
  throw std::logic_error("no execution of " + task);
}

static void swapEntries(plan::Program &program, int a, int b) {
  program.mutable_schedule()->SwapElements(a, b);
}
/// Removes an entry of the loop.
static void removeEntry(plan::Program &program, int entry) {
  program.mutable_schedule()->DeleteSubrange(entry, 1);
  program.set_loop_end(program.loop_end() - 1);
}
/// Moves an entry to before another that comes later.
static void delayEntry(plan::Program &program, int entry, int before) {
  for (; entry + 1 < before; ++entry)
    swapEntries(program, entry, entry + 1);
}

/// The operand of an instruction of a task.
static uint32_t input(plan::Program &program, const std::string &task, int instruction, int i) {
  return taskOf(program, task).instructions(instruction).kernel().inputs(i);
}
static uint32_t output(plan::Program &program, const std::string &task, int instruction) {
  return taskOf(program, task).instructions(instruction).kernel().outputs(0);
}
static plan::Buffer &bufferOf(plan::Program &program, uint32_t buffer) {
  return *program.mutable_buffers(static_cast<int>(buffer));
}
/// Gives slots to every value in the place of that buffer.
static void setSlots(plan::Program &program, uint32_t buffer, uint32_t slots) {
  uint64_t offset = bufferOf(program, buffer).offset();
  for (plan::Buffer &other : *program.mutable_buffers())
    if (other.offset() == offset)
      other.set_slots(slots);
}
/// A buffer like that one after all others, without a value.
static uint32_t addBufferLike(plan::Program &program, uint32_t buffer) {
  plan::Buffer added = bufferOf(program, buffer);
  added.set_offset(program.arena_bytes());
  program.set_arena_bytes(program.arena_bytes() + 64 * std::max<uint32_t>(added.slots(), 1));
  *program.add_buffers() = added;
  return static_cast<uint32_t>(program.buffers_size() - 1);
}

/// Moves the buffer after all others, with another number of slots.
static void moveToEnd(plan::Program &program, uint32_t buffer, uint32_t slots) {
  bufferOf(program, buffer).set_slots(slots);
  bufferOf(program, buffer).set_offset(program.arena_bytes());
  program.set_arena_bytes(program.arena_bytes() + 64 * slots);
}

/// A kernel at the end of the task that fills another buffer in the bytes of a given one.
static void fillPlaceOf(plan::Program &program, uint32_t buffer, const std::string &task) {
  plan::Buffer copy = bufferOf(program, buffer);
  *program.add_buffers() = copy;
  plan::KernelCall *fill = taskOf(program, task).add_instructions()->mutable_kernel();
  fill->set_kernel("fill");
  (*fill->mutable_attributes())["value"].set_f(0);
  fill->add_outputs(static_cast<uint32_t>(program.buffers_size() - 1));
}

TEST(PipelineVerifier, AcceptsAValidPlanAndSaysWhatItFound) {
  EXPECT_OK(findPlanError(*pipelinePlan(4)));
  Expected<VerifierResult> facts = verifyPlan(*pipelinePlan());
  ASSERT_OK(facts);
  EXPECT_EQ(facts->microbatches, 3);
  EXPECT_EQ(facts->channels, 3);
  EXPECT_EQ(facts->messages, 7);
  ASSERT_EQ(facts->programs.size(), 2u);
  const ProgramVerifierResult &first = facts->programs[0], &second = facts->programs[1];
  EXPECT_EQ(first.sends, 3);
  EXPECT_EQ(first.receives, 4);
  EXPECT_EQ(second.sends, 4);
  EXPECT_EQ(second.receives, 3);
  EXPECT_EQ(first.entries, 13);
  EXPECT_EQ(first.instructions, 3 * (3 + 3 + 1 + 1) + 8 + 11);
  ASSERT_TRUE(first.slots && second.slots);
  EXPECT_EQ(first.slots->alive, 2u);
  EXPECT_EQ(first.slots->reserved, 2u);
  EXPECT_EQ(second.slots->alive, 2u);
  // A slot too much is seen, and not counted as alive.
  auto roomy = pipelinePlan();
  plan::Program &program = *roomy->mutable_programs(0);
  moveToEnd(program, output(program, "forward.0", 0), 3);
  facts = verifyPlan(*roomy);
  ASSERT_OK(facts);
  EXPECT_EQ(facts->programs[0].slots->alive, 2u);
  EXPECT_EQ(facts->programs[0].slots->reserved, 3u);
}

TEST(PipelineVerifier, TheReaderReturnsWhatItFound) {
  std::string bytes = serializePlan(*pipelinePlan());
  VerifierResult facts;
  ASSERT_OK(parsePlan(bytes.data(), bytes.size(), &facts));
  EXPECT_EQ(facts.messages, 7);
}

TEST(PipelineVerifier, PipelineAxis) {
  EXPECT_ERROR_AFTER("mesh axis \"dp\" is a second pipeline axis beside \"pp\"",
                     plan.mutable_axes(1)->set_pipeline(true));
  EXPECT_ERROR_AFTER("mesh axis \"micro\" is both temporal and the pipeline axis",
                     plan.mutable_axes(0)->set_pipeline(false);
                     plan.mutable_axes(2)->set_pipeline(true));
  EXPECT_ERROR_AFTER("the plan has 2 programs; expected 3, one for each coordinate on the pipeline "
                     "axis \"pp\"",
                     plan.mutable_axes(0)->set_size(3));
  EXPECT_ERROR_AFTER(
      "program 0: task \"update\", instruction 0 (all_reduce): axis \"pp\" is the "
      "pipeline axis",
      taskOf(first, "update").mutable_instructions(0)->mutable_collective()->set_axes(0, "pp"));
  EXPECT_ERROR_AFTER("state \"w1\": the sharding names the pipeline axis \"pp\"",
                     second.mutable_states(0)->mutable_sharding()->mutable_dims(0)->add_axes("pp"));
}

TEST(PipelineVerifier, Tasks) {
  EXPECT_ERROR_AFTER("task \"forward.0\": unknown kind of task 9",
                     first.mutable_tasks(0)->set_kind(static_cast<plan::Task::Kind>(9)));
  EXPECT_ERROR_AFTER("task \"forward.0\": is for stage 2, but the model has 2",
                     first.mutable_tasks(0)->set_stage(2));
  EXPECT_ERROR_AFTER("is taken to last -1 seconds", first.mutable_tasks(0)->set_seconds(-1));
}

TEST(PipelineVerifier, Slots) {
  EXPECT_ERROR_AFTER("has 4 slots, but there are 3 microbatches",
                     bufferOf(first, output(first, "forward.0", 0)).set_slots(4));
  EXPECT_ERROR_AFTER("3 slots of 64 bytes at offset", {
    plan::Buffer &buffer = bufferOf(first, output(first, "forward.0", 0));
    buffer.set_slots(3);
    buffer.set_offset(first.arena_bytes() - 128);
  });
  EXPECT_ERROR_AFTER("state \"w0\": buffer 1 has 1 slots; what outlives a microbatch has none",
                     setSlots(first, first.states(0).buffer(), 1));
  EXPECT_ERROR_AFTER("input \"x\": buffer 0 has 1 slots",
                     bufferOf(first, first.inputs(0).buffer()).set_slots(1));
  EXPECT_ERROR_AFTER("output \"loss\": buffer", setSlots(second, second.outputs(0).buffer(), 2));
}

TEST(PipelineVerifier, Transfers) {
  EXPECT_ERROR_AFTER("program 0: transfer 0: unknown kind of transfer 0",
                     first.mutable_transfers(0)->clear_kind());
  EXPECT_ERROR_AFTER("transfer 0: its peer is 2, but the pipeline axis \"pp\" has 2 devices",
                     first.mutable_transfers(0)->set_peer(2));
  EXPECT_ERROR_AFTER("transfer 0: its peer is 0, the program itself",
                     first.mutable_transfers(0)->set_peer(0));
  EXPECT_ERROR_AFTER("transfer 0: moves no tensor", first.mutable_transfers(0)->clear_buffers());
  EXPECT_ERROR_AFTER("transfer 0: names buffer 99", first.mutable_transfers(0)->set_buffers(0, 99));
  EXPECT_ERROR_AFTER("transfer 1: receives buffers 7 and 7, which share bytes",
                     first.mutable_transfers(1)->add_buffers(first.transfers(1).buffers(0)));
  EXPECT_ERROR_AFTER("(start_transfer 9): names transfer 9, but the program has 3 transfers",
                     taskOf(first, "receive.1")
                         .mutable_instructions(0)
                         ->mutable_start_transfer()
                         ->set_transfer(9));
  PlanBuilder alone;
  alone.transfer(plan::Transfer::SEND, 1, 0, {alone.buffer(DType::F32, {4})});
  EXPECT_ERROR(findPlanError(alone.plan), "transfer 0: the mesh has no pipeline axis");
}

TEST(PipelineVerifier, BothEndsOfAChannelHaveTheSameValues) {
  EXPECT_ERROR_AFTER("program 0: transfer 0: moves buffer 6, which has no number of a value",
                     bufferOf(first, first.transfers(0).buffers(0)).clear_value());
  EXPECT_ERROR_AFTER(
      "differ in tensor 0: value 0 and value 9; expected the same value at both ends",
      bufferOf(second, second.transfers(0).buffers(0)).set_value(9));
  // Two tensors of one type.
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  for (uint32_t end : {0u, 1u}) {
    builder.inProgram(static_cast<int>(end));
    uint32_t a = builder.buffer(DType::F32, {4}), b = builder.buffer(DType::F32, {4});
    uint32_t moved = builder.transfer(end == 0 ? plan::Transfer::SEND : plan::Transfer::RECEIVE,
                                      1 - end, 0, {a, b});
    builder.task("t");
    if (end == 0)
      for (uint32_t buffer : {a, b})
        builder.kernel("fill", {}, {buffer});
    builder.startTransfer(moved);
    builder.finishTransfer(moved);
    builder.schedule(0);
  }
  auto plan = builder.build();
  EXPECT_OK(findPlanError(*plan));
  for (int end : {0, 1}) {
    auto changed = std::make_shared<plan::Plan>(*plan);
    changed->mutable_programs(end)->mutable_transfers(0)->mutable_buffers()->SwapElements(0, 1);
    EXPECT_ERROR(findPlanError(*changed), "channel 0: transfer 0 of program 0 (a send, peer 1) and "
                                          "transfer 0 of program 1 (a receive, peer 0) differ in "
                                          "tensor 0: value ");
    // Both ends in another order are the same plan.
    changed->mutable_programs(1 - end)->mutable_transfers(0)->mutable_buffers()->SwapElements(0, 1);
    EXPECT_OK(findPlanError(*changed));
  }
}

TEST(PipelineVerifier, Channels) {
  EXPECT_ERROR_AFTER("channel 0: has one end, transfer 0 of program 1 (a receive, peer 0); "
                     "expected another one in program 0",
                     first.mutable_transfers(0)->set_channel(9));
  EXPECT_ERROR_AFTER("channel 0: has 3 ends, among them transfer 0 of program 0 (a send, peer 1), "
                     "transfer 2 of program 0 (a receive, peer 1) and transfer 0 of program 1",
                     first.mutable_transfers(2)->set_channel(0));
  EXPECT_ERROR_AFTER("channel 0: transfer 0 of program 0 (a receive, peer 1) and transfer 0 of "
                     "program 1 (a receive, peer 0) are of one kind",
                     first.mutable_transfers(0)->set_kind(plan::Transfer::RECEIVE);
                     first.mutable_transfers(0)->set_buffers(
                         0, addBufferLike(first, first.transfers(0).buffers(0))));
  EXPECT_ERROR_AFTER("have 2 and 1 tensors",
                     first.mutable_transfers(0)->add_buffers(first.transfers(0).buffers(0)));
  EXPECT_ERROR_AFTER("differ in tensor 0: f32[] and f32[1,4]",
                     bufferOf(first, output(first, "update", 1)).set_value(9);
                     first.mutable_transfers(0)->set_buffers(0, output(first, "update", 1)));
  auto three = pipelinePlan();
  three->mutable_axes(0)->set_size(3);
  three->add_programs();
  EXPECT_OK(findPlanError(*three));
  three->mutable_programs(0)->mutable_transfers(0)->set_peer(2);
  EXPECT_ERROR(findPlanError(*three), "do not name each other's programs as their peers");
}

TEST(PipelineVerifier, WhatProgramsShareIsAlike) {
  // Both get the state "w" of the first.
  auto errorOf = [](const std::function<void(plan::State &)> &change) {
    auto plan = pipelinePlan();
    plan::State &state = *plan->mutable_programs(1)->mutable_states(0);
    plan->mutable_programs(1)->mutable_states(1)->set_parameter("w0");
    state.set_name("w0");
    change(state);
    return messageOf(findPlanError(*plan));
  };
  EXPECT_EQ(errorOf([](plan::State &) {}), "");
  EXPECT_TRUE(contains(errorOf([](plan::State &s) { s.mutable_init()->set_scale(2); }),
                       "state \"w0\" has another init in program 1 than in program 0"));
  EXPECT_TRUE(contains(errorOf([](plan::State &s) { s.clear_file_shape(), s.add_file_shape(4); }),
                       "state \"w0\" has another file_shape"));
  EXPECT_TRUE(contains(
      errorOf([](plan::State &s) { s.mutable_sharding()->mutable_dims(0)->add_axes("dp"); }),
      "state \"w0\" has another sharding"));
  EXPECT_ERROR_AFTER("input \"learning_rates\" has another role in program 1 than in program 0",
                     second.mutable_inputs(0)->set_role(plan::Input::DATA);
                     second.mutable_inputs(1)->set_role(plan::Input::DATA));
  EXPECT_ERROR_AFTER("inputs \"learning_rates\" and \"rate\" of two programs have the same role",
                     second.mutable_inputs(0)->set_name("rate"));
  EXPECT_ERROR_AFTER("programs 0 and 1 both have an output \"loss\"",
                     first.mutable_outputs(0)->set_name("loss"));
}

TEST(PipelineVerifier, SlotsAreEnoughForTheMicrobatchesAlive) {
  // The rows of microbatch 0 are replaced by those of 1 before its backward pass reads them.
  EXPECT_ERROR_AFTER(
      "program 0: task \"backward.0\", instruction 1 (kernel mul), microbatch 0: input 1 (buffer "
      "5, "
      "f32[1,4], copy 0 of 1 for microbatch 0) should hold the value of microbatch 0, but holds "
      "that of microbatch 1, written by task \"forward.0\", instruction 0 (kernel shard_slice), "
      "microbatch 1; a buffer of 1 slots holds 1 microbatches at once, which is too few",
      bufferOf(first, input(first, "backward.0", 1, 1)).set_slots(1));
  // Buffers that are being sent, and buffers that are being received.
  EXPECT_ERROR_AFTER(
      "task \"forward.0\", instruction 1 (kernel mul), microbatch 1: writes buffer 6, f32[1,4], "
      "copy "
      "0 of 1 for microbatch 1, which shares bytes of the arena with buffer 6, f32[1,4], copy 0 of "
      "1 for microbatch 0; transfer 0 (to program 1, channel 0) for microbatch 0 has not finished",
      bufferOf(first, first.transfers(0).buffers(0)).set_slots(1));
  EXPECT_ERROR_AFTER(
      "program 1: task \"receive.0\", instruction 0 (start_transfer 0), microbatch 1: "
      "writes buffer",
      bufferOf(second, second.transfers(0).buffers(0)).set_slots(1));
  // A value of one slot count is not one of another.
  EXPECT_ERROR_AFTER("is read before it is written",
                     plan::Buffer view = bufferOf(second, output(second, "forward.1", 1));
                     view.set_slots(0); *second.add_buffers() = view;
                     taskOf(second, "backward.1")
                         .mutable_instructions(0)
                         ->mutable_kernel()
                         ->set_inputs(0, static_cast<uint32_t>(second.buffers_size() - 1)));
}

TEST(PipelineVerifier, ValuesAreNotOverwrittenBeforeTheyAreRead) {
  // y, which the backward pass reads, gives its place to a scalar, or to another value of its size.
  EXPECT_ERROR_AFTER(
      "program 1: task \"backward.1\", instruction 0 (kernel add), microbatch 0: input "
      "0 (buffer 5, f32[1,4], copy 0 of 1 for microbatch 0) does not hold its value "
      "any more: buffer 8, f32[], which shares bytes of the arena with it, was "
      "written since by task \"forward.1\", instruction 3 (kernel reduce)",
      bufferOf(second, output(second, "forward.1", 3))
          .set_offset(bufferOf(second, output(second, "forward.1", 1)).offset()));
  EXPECT_ERROR_AFTER("does not hold its value any more: buffer 33, f32[1,4], copy 0 of 1 for "
                     "microbatch 0, which shares bytes of the arena with it, was written since by "
                     "task \"forward.1\", instruction 5 (kernel fill), microbatch 0",
                     fillPlaceOf(second, output(second, "forward.1", 1), "forward.1"));
  // A buffer that nothing writes holds no value, whatever lies there; a view has the value of its
  // buffer.
  auto errorOfAlias = [](bool isView) {
    return errorAfter([=](plan::Plan &, plan::Program &, plan::Program &second) {
      uint32_t of = output(second, "forward.1", 1);
      plan::Buffer alias = bufferOf(second, of);
      if (isView)
        alias.set_view_of(of);
      *second.add_buffers() = alias;
      plan::Instruction &add = *taskOf(second, "backward.1").mutable_instructions(0);
      add.mutable_kernel()->set_inputs(0, static_cast<uint32_t>(second.buffers_size() - 1));
    });
  };
  EXPECT_EQ(errorOfAlias(true), "");
  EXPECT_TRUE(contains(errorOfAlias(false),
                       "input 0 (buffer 33, f32[1,4], copy 0 of 1 for microbatch 0) is read before "
                       "it is written"));
}

TEST(PipelineVerifier, StatesAndOutputsSurviveTheStep) {
  EXPECT_ERROR_AFTER("state \"w0\", after the step: its tensor (buffer 27, f32[1,4]) does not hold "
                     "its value any more: buffer 31, f32[1,4]",
                     fillPlaceOf(first, first.states(0).buffer(), "update"));
  EXPECT_ERROR_AFTER("output \"grad_sum\", after the step: its tensor",
                     fillPlaceOf(first, first.outputs(0).buffer(), "update"));
}

TEST(PipelineVerifier, EveryTransferIsStartedAndFinishedOnce) {
  EXPECT_ERROR_AFTER(
      "program 0: task \"forward.0\", instruction 2 (start_transfer 0), microbatch 1: "
      "starts transfer 0 (to program 1, channel 0) for microbatch 1, which is never "
      "finished",
      removeEntry(first, entryOf(first, "sent.0", 1)));
  EXPECT_ERROR_AFTER(
      "finishes transfer 1 (from program 1, channel 1) for microbatch 1, which has not "
      "been started",
      removeEntry(first, entryOf(first, "receive.1", 1)));
  EXPECT_ERROR_AFTER("finishes transfer 0 (to program 1, channel 0) for microbatch 1 a second time",
                     first.mutable_schedule(entryOf(first, "sent.0", 2))->set_microbatch(1));
  EXPECT_ERROR_AFTER(
      "starts transfer 1 (from program 1, channel 1) for microbatch 1 a second time; "
      "it was started in task \"receive.1\", instruction 0 (start_transfer 1), "
      "microbatch 1",
      first.mutable_schedule(entryOf(first, "receive.1", 2))->set_microbatch(1));
  EXPECT_ERROR_AFTER(
      "task \"receive.1\", instruction 1 (start_transfer 1): starts transfer 1 a second "
      "time in the task",
      *taskOf(first, "receive.1").add_instructions() = taskOf(first, "receive.1").instructions(0));
}

TEST(PipelineVerifier, NothingTouchesWhatIsInFlight) {
  // The tensors are read before the receive has finished.
  EXPECT_ERROR_AFTER(
      "program 1: task \"forward.1\", instruction 0 (kernel mul), microbatch 0: reads "
      "buffer 4, f32[1,4], copy 0 of 2 for microbatch 0, which shares bytes of the "
      "arena with buffer 4",
      taskOf(second, "forward.1").mutable_instructions()->SwapElements(0, 1));
  EXPECT_ERROR_AFTER(
      "writes buffer 6, f32[1,4], copy 0 of 1 for microbatch 1",
      swapEntries(second, entryOf(second, "sent.1", 0), entryOf(second, "backward.1", 1)));
  // An async collective must not meet a transfer in its task.
  EXPECT_ERROR_AFTER("(start_transfer 2): reads buffer", {
    plan::Task &update = taskOf(second, "update");
    plan::Collective &reduce = *update.mutable_instructions()->Add()->mutable_collective();
    reduce = update.instructions(0).collective();
    reduce.mutable_tensors(0)->set_input(second.transfers(2).buffers(0));
    reduce.mutable_tensors(0)->set_output(second.transfers(2).buffers(0));
    reduce.set_async(true);
    update.mutable_instructions()->SwapElements(3, update.instructions_size() - 1);
    update.mutable_instructions()->SwapElements(4, update.instructions_size() - 1);
    update.add_instructions()->mutable_wait()->set_instruction(3);
  });
}

TEST(PipelineVerifier, ScheduleEntries) {
  EXPECT_ERROR_AFTER(
      "program 0: task \"backward.0\", instruction 1 (kernel mul), microbatch 0: input "
      "1 (buffer 5, f32[1,4], copy 0 of 2 for microbatch 0) is read before it is "
      "written",
      removeEntry(first, entryOf(first, "forward.0", 0)));
  EXPECT_ERROR_AFTER("output \"loss\" (buffer 27) is never written", {
    second.clear_schedule();
    second.clear_loop_begin();
    second.clear_loop_end();
    for (plan::State &state : *second.mutable_states()) {
      state.clear_update();
      state.set_name("second." + state.name()); // else it would be that of the first program
      if (!state.parameter().empty())
        state.set_parameter("second." + state.parameter());
    }
  });
  // The second program expects the microbatches in their order.
  EXPECT_ERROR_AFTER("message 1 from program 0 to program 1 is sent on channel 0 for microbatch 2 "
                     "(task \"forward.0\", instruction 2 (start_transfer 0), microbatch 2), but "
                     "received on channel 0 for microbatch 1 (task \"receive.0\", instruction 0 "
                     "(start_transfer 0), microbatch 1)",
                     {
                       moveToEnd(first, output(first, "forward.0", 0), 3);
                       moveToEnd(first, output(first, "forward.0", 1), 3);
                       for (plan::ScheduleEntry &entry : *first.mutable_schedule())
                         if (const std::string &task =
                                 first.tasks(static_cast<int>(entry.task())).name();
                             entry.microbatch() > 0 && (task == "forward.0" || task == "sent.0"))
                           entry.set_microbatch(3 - entry.microbatch());
                     });
}

TEST(PipelineVerifier, ProgramsDoNotWaitInACircle) {
  // The first program sends twice before it receives, the second sends once before it receives the
  // second time.
  EXPECT_ERROR_AFTER(
      "the programs wait for each other without end: program 0 waits in task \"forward.0\", "
      "instruction 2 (start_transfer 0), microbatch 1 for program 1 to start to receive the "
      "message "
      "of channel 0 for microbatch 1; program 1 waits in task \"backward.1\", instruction 2 "
      "(start_transfer 1), microbatch 0 for program 0 to start to receive the message of channel 1 "
      "for microbatch 0",
      delayEntry(first, entryOf(first, "receive.1", 0), entryOf(first, "backward.0", 0));
      delayEntry(second, entryOf(second, "receive.0", 1), entryOf(second, "receive.0", 2)));
  // One side alone is no circle.
  EXPECT_EQ(errorAfter([](plan::Plan &, plan::Program &first, plan::Program &) {
              delayEntry(first, entryOf(first, "receive.1", 0), entryOf(first, "backward.0", 0));
            }),
            "");
}

namespace {
/// Two programs that send two tensors each in one task, in a given order.
struct TwoSends : PlanBuilder {
  TwoSends(const std::vector<uint32_t> &sends, const std::vector<uint32_t> &receives,
           bool startsAll = false)
      : startsAll(startsAll) {
    pipelineAxis("pp", 2);
    uint32_t s = state("s", DType::F32, {4}, {{}}).buffer();
    uint32_t t = state("t", DType::F32, {4}, {{}}).buffer();
    transfer(plan::Transfer::SEND, 1, 7, {s});
    transfer(plan::Transfer::SEND, 1, 8, {t});
    addTask(sends);
    inProgram(1);
    uint32_t u = buffer(DType::F32, {4}), v = buffer(DType::F32, {4});
    transfer(plan::Transfer::RECEIVE, 0, 7, {u});
    transfer(plan::Transfer::RECEIVE, 0, 8, {v});
    addTask(receives);
  }
  void addTask(const std::vector<uint32_t> &order) {
    schedule(task("exchange"));
    for (uint32_t transfer : order) {
      startTransfer(transfer);
      if (!startsAll)
        finishTransfer(transfer);
    }
    for (uint32_t transfer : order)
      if (startsAll)
        finishTransfer(transfer);
  }
  std::string error() { return messageOf(findPlanError(*build())); }
  bool startsAll; // transfers before the first is finished
};
} // namespace

TEST(PipelineVerifier, TransfersOfTwoChannelsComeInOneOrder) {
  EXPECT_EQ(TwoSends({0, 1}, {0, 1}).error(), "");
  EXPECT_EQ(TwoSends({0, 1}, {0, 1}, /*startsAll=*/true).error(), "");
  // Nobody waits here, but a network that has no channels would mix the two up.
  for (bool startsAll : {false, true})
    EXPECT_EQ(TwoSends({0, 1}, {1, 0}, startsAll).error(),
              "message 0 from program 0 to program 1 is sent on channel 7 for microbatch 0 (task "
              "\"exchange\", instruction 0 (start_transfer 0)), but received on channel 8 for "
              "microbatch 0 (task \"exchange\", instruction 0 (start_transfer 1)); messages from "
              "one program to another arrive in the order in which they are sent");
  EXPECT_EQ(
      TwoSends({0, 1}, {0}).error(),
      "the programs wait for each other without end: program 0 waits in task \"exchange\", "
      "instruction 2 (start_transfer 1) for program 1 to start to receive the message of channel "
      "8 for microbatch 0; program 1 has ended");
  EXPECT_TRUE(contains(TwoSends({0}, {0, 1}).error(),
                       "program 0 has ended; program 1 waits in task \"exchange\", instruction 3"));
}

namespace {
/// The entry of a schedule in which something is done: before, in or after the loop over two
/// microbatches, where there it is done for the first of them.
constexpr int kBefore = 0, kIn = 1, kAfter = 2;

/// Two programs with a loop, and one message from the first to the second. Each end is started and
/// finished somewhere.
struct OneMessage : PlanBuilder {
  OneMessage(int sent, int received) : OneMessage({sent, sent}, {received, received}) {}
  OneMessage(std::pair<int, int> sent, std::pair<int, int> received) {
    pipelineAxis("pp", 2);
    axis("micro", 2, /*temporal=*/true);
    uint32_t s = state("s", DType::F32, {4}, {{}}).buffer();
    transfer(plan::Transfer::SEND, 1, 7, {s});
    addTasks(sent);
    inProgram(1);
    transfer(plan::Transfer::RECEIVE, 0, 7, {buffer(DType::F32, {4})});
    addTasks(received);
  }
  void addTasks(std::pair<int, int> places) {
    uint32_t made = buffer(DType::F32, {4});
    for (int place : {kBefore, kIn, kAfter}) {
      schedule(task("part"));
      if (places.first == place)
        startTransfer(0);
      if (places.second == place)
        finishTransfer(0);
    }
    program().set_loop_begin(1);
    schedule(task("microbatch"), 0);
    kernel("fill", {}, {made});
    schedule(3, 1);
    // The entry of the task after the loop comes last.
    program().mutable_schedule()->SwapElements(2, 4);
    program().set_loop_end(4);
  }
};
} // namespace

TEST(PipelineVerifier, MessagesStayInTheLoopOrOutsideOfIt) {
  for (int sent : {kBefore, kIn, kAfter})
    for (int received : {kBefore, kIn, kAfter})
      for (bool repeatsLoop : {false, true}) {
        MaybeError error = findPlanError(OneMessage(sent, received).plan, repeatsLoop);
        EXPECT_EQ(error.has_value(), sent != received) << sent << " " << received;
        if (sent == received)
          continue;
        // One of the programs would send or receive once in a step, the other in each repetition;
        // and in one run of it, the value of a microbatch would be that of all.
        const char *words[] = {"before", "in", "after"};
        std::string part =
            std::string(", is sent ") + words[sent] + " the loop over microbatches (";
        EXPECT_ERROR(error, "message 0 from program 0 to program 1, on channel 7" + part);
        part = std::string("but received ") + words[received] + " the loop over microbatches (";
        EXPECT_ERROR(error, part);
        EXPECT_ERROR(error, "expected both in the loop, or both on the same side of it");
      }
}

TEST(PipelineVerifier, TransfersAreFinishedWhereTheyWereStarted) {
  for (auto [started, finished] :
       {std::pair(kBefore, kIn), std::pair(kBefore, kAfter), std::pair(kIn, kAfter)}) {
    std::pair<int, int> apart(started, finished), together(started, started);
    EXPECT_ERROR(findPlanError(OneMessage(apart, together).plan),
                 "program 0: task \"part\", instruction 0 (finish_transfer 0), microbatch 0: "
                 "finishes transfer 0 (to program 1, channel 7) for microbatch 0");
    // A message for one microbatch would be read after the loop as if it were made there.
    EXPECT_ERROR(findPlanError(OneMessage(together, apart).plan),
                 "but it was started " + std::string(started == kIn ? "in" : "before") +
                     " the loop over microbatches (task \"part\", instruction 0");
  }
}

TEST(PipelineVerifier, ShortFilesDoNotAskForLongWalks) {
  // Two tasks in turn, so that none reaches a fixpoint.
  PlanBuilder builder;
  uint32_t a = builder.buffer(DType::F32, {8}), b = builder.view(a, DType::F32, {8});
  for (uint32_t buffer : {a, b}) {
    builder.task("t");
    for (int i = 0; i < 2000; ++i)
      builder.kernel("fill", {}, {buffer});
  }
  for (uint32_t i = 0; i < 80000; ++i)
    builder.schedule(i % 2);
  EXPECT_LT(builder.plan.ByteSizeLong(), 500000u);
  EXPECT_ERROR(findPlanError(*builder.build()), "more than are followed to prove");
}

#undef EXPECT_ERROR_AFTER

} // namespace pipelineVerifierTest
