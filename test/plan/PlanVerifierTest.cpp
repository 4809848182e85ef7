//===- PlanVerifierTest.cpp - Every check of the plan verifier ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace planVerifierTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// The error of a training plan on dp=2, tp=2 and 2 microbatches after a change.
static std::string errorAfter(const std::function<void(plan::Plan &, plan::Program &)> &change) {
  auto plan = trainingPlan({2, 2, 2});
  change(*plan, *plan->mutable_programs(0));
  return messageOf(findPlanError(*plan));
}

#define EXPECT_ERROR_AFTER(part, ...)                                                              \
  EXPECT_TRUE(                                                                                     \
      contains(errorAfter([](plan::Plan &plan, plan::Program &program) { __VA_ARGS__; }), part))

// The instructions of the plan that the tests change.
static plan::KernelCall *shardSlice(plan::Program &program) {
  return program.mutable_tasks(0)->mutable_instructions(0)->mutable_kernel();
}
static plan::Collective *firstAllReduce(plan::Program &program) {
  return program.mutable_tasks(1)->mutable_instructions(0)->mutable_collective();
}

/// The axes that split dimension `dim` of the parameter.
static auto *axesOfDim(plan::Program &program, int dim) {
  return program.mutable_states(0)->mutable_sharding()->mutable_dims(dim)->mutable_axes();
}

TEST(PlanVerifier, AcceptsValidPlans) {
  EXPECT_OK(findPlanError(*trainingPlan()));
  EXPECT_OK(findPlanError(*trainingPlan({2, 4, 4})));
  EXPECT_OK(findPlanError(*forwardPlan()));
}

TEST(PlanVerifier, Version) {
  EXPECT_ERROR_AFTER("plan version 11 is newer than this runtime reads (10)", plan.set_version(11));
  EXPECT_ERROR_AFTER("states no version", plan.set_version(0));
}

TEST(PlanVerifier, Axes) {
  EXPECT_ERROR_AFTER("a mesh axis has no name", plan.mutable_axes(0)->set_name(""));
  EXPECT_ERROR_AFTER("two mesh axes are named \"tp\"", plan.mutable_axes(0)->set_name("tp"));
  EXPECT_ERROR_AFTER("mesh axis \"dp\" has size 0", plan.mutable_axes(0)->set_size(0));
  EXPECT_ERROR_AFTER("mesh axis \"dp\" has size -1", plan.mutable_axes(0)->set_size(-1));
  EXPECT_ERROR_AFTER("mesh axis \"dp\" has size", plan.mutable_axes(0)->set_size(INT64_MAX));
  EXPECT_ERROR_AFTER("the mesh has more than 1048576 devices",
                     plan.mutable_axes(0)->set_size(1 << 20));
  EXPECT_ERROR_AFTER("mesh axis \"micro\" has size", plan.mutable_axes(2)->set_size(INT64_MAX));
  EXPECT_ERROR_AFTER("mesh axis \"late\" is a second temporal axis", {
    plan::Axis *axis = plan.add_axes();
    axis->set_name("late");
    axis->set_size(1);
    axis->set_temporal(true);
  });
}

TEST(PlanVerifier, Links) {
  EXPECT_EQ(errorAfter([](plan::Plan &plan, plan::Program &) {
              plan.mutable_axes(0)->set_bandwidth(25e9);
              plan.mutable_axes(0)->set_latency(1e-5);
            }),
            "");
  EXPECT_ERROR_AFTER(
      "mesh axis \"dp\" has a bandwidth of -1; expected a finite number of 0 or more",
      plan.mutable_axes(0)->set_bandwidth(-1));
  EXPECT_ERROR_AFTER("mesh axis \"tp\" has a bandwidth of inf",
                     plan.mutable_axes(1)->set_bandwidth(INFINITY));
  EXPECT_ERROR_AFTER("mesh axis \"dp\" has a latency of -0.5",
                     plan.mutable_axes(0)->set_latency(-0.5));
  EXPECT_ERROR_AFTER("mesh axis \"micro\" has a latency of nan",
                     plan.mutable_axes(2)->set_latency(NAN));
}

TEST(PlanVerifier, Adapters) {
  auto errorOf = [](int64_t rank, double alpha, double dropout) {
    return errorAfter([=](plan::Plan &plan, plan::Program &) {
      plan.mutable_lora()->set_rank(rank);
      plan.mutable_lora()->set_alpha(alpha);
      plan.mutable_lora()->set_dropout(dropout);
    });
  };
  EXPECT_EQ(errorOf(8, 16, 0.1), "");
  EXPECT_TRUE(contains(errorOf(0, 16, 0), "the adapters have rank 0, alpha 16 and dropout 0; "
                                          "expected a rank of at least 1"));
  for (double alpha : {0.0, -1.0, double(INFINITY), double(NAN)})
    EXPECT_TRUE(contains(errorOf(8, alpha, 0), "expected")) << alpha;
  for (double dropout : {-0.1, 1.0, double(NAN)})
    EXPECT_TRUE(contains(errorOf(8, 16, dropout), "expected")) << dropout;
}

TEST(PlanVerifier, Reasons) {
  EXPECT_EQ(errorAfter([](plan::Plan &plan, plan::Program &program) {
              plan.add_reasons();
              plan.add_reasons()->set_value("the result of something");
              firstAllReduce(program)->mutable_tensors(0)->set_reason(1);
            }),
            "");
  EXPECT_ERROR_AFTER("instruction 0 (all_reduce): names reason 1, but the plan has 0 reasons",
                     firstAllReduce(program)->mutable_tensors(0)->set_reason(1));
  EXPECT_ERROR_AFTER("names reason 4294967295", plan.add_reasons();
                     firstAllReduce(program)->mutable_tensors(0)->set_reason(UINT32_MAX));
  EXPECT_ERROR_AFTER("reason 0 names location 9 as its producer, but the plan has 1 locations",
                     plan.add_reasons()->set_producer(9));
  EXPECT_ERROR_AFTER("reason 1 names location 9 as its consumer", plan.add_reasons();
                     plan.add_reasons()->set_consumer(9));
}

TEST(PlanVerifier, OneProgram) {
  EXPECT_ERROR_AFTER("the plan has 0 programs", plan.clear_programs());
  EXPECT_ERROR_AFTER("the plan has 2 programs", plan.add_programs());
}

TEST(PlanVerifier, Buffers) {
  EXPECT_ERROR_AFTER("buffer 0: unknown element type 0", program.mutable_buffers(0)->clear_dtype());
  EXPECT_ERROR_AFTER("buffer 0: unknown element type 77",
                     program.mutable_buffers(0)->set_dtype(static_cast<plan::DType>(77)));
  EXPECT_ERROR_AFTER("buffer 0: unknown kind 0", program.mutable_buffers(0)->clear_kind());
  EXPECT_ERROR_AFTER("shape [-8, 4] has a negative size",
                     program.mutable_buffers(0)->set_shape(0, -8));
  EXPECT_ERROR_AFTER("has more bytes than 64 bits count",
                     program.mutable_buffers(0)->set_shape(0, INT64_MAX / 2));
  EXPECT_ERROR_AFTER("has more bytes than 64 bits count", {
    program.mutable_buffers(0)->add_shape(0);
    program.mutable_buffers(0)->set_shape(0, INT64_MAX / 2);
  });
  EXPECT_ERROR_AFTER("the shape has 19 dimensions", {
    for (int i = 0; i < 17; ++i)
      program.mutable_buffers(0)->add_shape(1);
  });
  EXPECT_ERROR_AFTER("buffer 1: offset 4 is not a multiple of 64",
                     program.mutable_buffers(1)->set_offset(4));
  EXPECT_ERROR_AFTER("reach beyond the arena",
                     program.mutable_buffers(1)->set_offset(program.arena_bytes()));
  EXPECT_ERROR_AFTER("reach beyond the arena",
                     program.mutable_buffers(1)->set_offset(UINT64_MAX - 63));
  EXPECT_ERROR_AFTER("reach beyond the arena of 0 bytes", program.set_arena_bytes(0));
  EXPECT_ERROR_AFTER("the arena has", program.set_arena_bytes(kMaxArenaBytes + 1));
  EXPECT_ERROR_AFTER("fewer than its lower bound",
                     program.set_arena_lower_bound(program.arena_bytes() + 1));
}

TEST(PlanVerifier, KernelCalls) {
  EXPECT_ERROR_AFTER(
      "task \"forward\", instruction 0 (kernel shard_slice): input 0 names buffer 99",
      shardSlice(program)->set_inputs(0, 99));
  EXPECT_ERROR_AFTER("output 0 names buffer 4294967295",
                     shardSlice(program)->set_outputs(0, UINT32_MAX));
  EXPECT_ERROR_AFTER("task \"forward\", instruction 0 (kernel shard_silce): there is no kernel "
                     "\"shard_silce\"; did you mean \"shard_slice\"?",
                     shardSlice(program)->set_kernel("shard_silce"));
  EXPECT_ERROR_AFTER("there is no kernel \"\"", shardSlice(program)->clear_kernel());
  EXPECT_ERROR_AFTER("(kernel shard_slice): kernel \"shard_slice\" has 2 inputs, expected 1",
                     shardSlice(program)->add_inputs(0));
  EXPECT_ERROR_AFTER("has 0 inputs, expected 1", shardSlice(program)->clear_inputs());
  EXPECT_ERROR_AFTER("has 0 outputs, expected 1", shardSlice(program)->clear_outputs());
  EXPECT_ERROR_AFTER("has the attribute \"dim\" without a value, expected one of kind i",
                     (*shardSlice(program)->mutable_attributes())["dim"].clear_value());
  EXPECT_ERROR_AFTER("has the attribute \"dim\" of kind f, expected one of kind i",
                     (*shardSlice(program)->mutable_attributes())["dim"].set_f(0));
  EXPECT_ERROR_AFTER("has no attribute \"axes\", expected one of kind strings",
                     shardSlice(program)->mutable_attributes()->erase("axes"));
  EXPECT_ERROR_AFTER("has the attribute \"axis\", expected \"dim\", \"axes\"",
                     (*shardSlice(program)->mutable_attributes())["axis"].set_i(0));
  EXPECT_ERROR_AFTER("is neither a kernel, a collective, a wait nor part of a transfer",
                     program.mutable_tasks(0)->mutable_instructions(0)->clear_op());
  EXPECT_ERROR_AFTER("names location 5, but the plan has 1 locations",
                     program.mutable_tasks(0)->mutable_instructions(0)->set_location(5));
  EXPECT_ERROR_AFTER("flops is nan",
                     program.mutable_tasks(0)->mutable_instructions(0)->set_flops(NAN));
  EXPECT_ERROR_AFTER("from h.3.attn)", {
    plan.add_locations("h.3.attn");
    program.mutable_tasks(0)->mutable_instructions(0)->set_location(1);
    shardSlice(program)->set_inputs(0, 99);
  });
}

namespace {
/// One kernel call on buffers a, b: f32[8], half: f32[4] at the start of a.
struct OverlapPlan : PlanBuilder {
  OverlapPlan() {
    a = state("a", DType::F32, {8}, {{}}).buffer();
    b = state("b", DType::F32, {8}, {{}}).buffer();
    c = buffer(DType::F32, {8});
    half = view(a, DType::F32, {4});
    task("t");
    schedule(0);
  }
  std::string error() { return messageOf(findPlanError(*build())); }

  uint32_t a, b, c, half;
};
} // namespace

TEST(PlanVerifier, OperandsShareBytesOnlyWhereTheKernelAllowsIt) {
  // The error of one call whose operands are members of OverlapPlan.
  using Operands = std::vector<uint32_t OverlapPlan::*>;
  auto errorOf = [](const std::string &kernel, const Operands &inputs, const Operands &outputs) {
    OverlapPlan plan;
    std::vector<uint32_t> in, out;
    for (auto operand : inputs)
      in.push_back(plan.*operand);
    for (auto operand : outputs)
      out.push_back(plan.*operand);
    plan.kernel(kernel, in, out);
    return plan.error();
  };
  constexpr auto a = &OverlapPlan::a, b = &OverlapPlan::b, c = &OverlapPlan::c;
  constexpr auto half = &OverlapPlan::half;
  EXPECT_EQ(errorOf("add", {a, b}, {a}), "");
  EXPECT_EQ(errorOf("add", {a, a}, {a}), "");
  EXPECT_EQ(errorOf("add", {a, b}, {c}), "");
  EXPECT_EQ(errorOf("sgd", {a, b, b, b, b, b}, {a, c}), "");
  EXPECT_EQ(errorOf("mask_padding", {a}, {a}), "");
  EXPECT_TRUE(contains(errorOf("einsum", {a, b}, {b}),
                       "output 0 (buffer 4, f32[8]) shares bytes of the arena with input 1 "
                       "(buffer 1, f32[8])"));
  EXPECT_TRUE(
      contains(errorOf("softmax_grad", {a, b}, {a}), "shares bytes of the arena with input 0"));
  EXPECT_TRUE(contains(errorOf("copy", {a}, {half}), "shares bytes of the arena"));
  // Another part of the same bytes is not in place.
  EXPECT_TRUE(contains(errorOf("add", {half, b}, {a}), "shares bytes of the arena with input 0"));
  EXPECT_TRUE(
      contains(errorOf("sgd", {b, b, b, b, b, b}, {a, half}), "outputs 0 and 1 share bytes"));
}

TEST(PlanVerifier, Collectives) {
  EXPECT_ERROR_AFTER("unknown kind of collective 0", firstAllReduce(program)->clear_kind());
  EXPECT_ERROR_AFTER("unknown kind of collective 9",
                     firstAllReduce(program)->set_kind(static_cast<plan::Collective::Kind>(9)));
  EXPECT_ERROR_AFTER("task \"update\", instruction 0 (all_reduce): input names buffer 99",
                     firstAllReduce(program)->mutable_tensors(0)->set_input(99));
  EXPECT_ERROR_AFTER("output names buffer 99",
                     firstAllReduce(program)->mutable_tensors(0)->set_output(99));
  EXPECT_ERROR_AFTER("moves no tensor", firstAllReduce(program)->clear_tensors());
  EXPECT_ERROR_AFTER("names no mesh axis", firstAllReduce(program)->clear_axes());
  EXPECT_ERROR_AFTER("the mesh has no axis \"pp\"", firstAllReduce(program)->set_axes(0, "pp"));
  EXPECT_ERROR_AFTER("axis \"micro\" is temporal", firstAllReduce(program)->set_axes(0, "micro"));
  EXPECT_ERROR_AFTER("names axis \"dp\" twice", firstAllReduce(program)->add_axes("dp"));
  EXPECT_ERROR_AFTER("needs a reduction (sum, max or min), found 0",
                     firstAllReduce(program)->clear_reduction());
  EXPECT_ERROR_AFTER(
      "needs a reduction (sum, max or min), found 8",
      firstAllReduce(program)->set_reduction(static_cast<plan::Collective::Reduction>(8)));
  EXPECT_ERROR_AFTER("the output is f32[8,4]; the input f32[] and a group of 2 give f32[]",
                     firstAllReduce(program)->mutable_tensors(0)->set_output(0));
}

namespace {
/// One collective over two axes of sizes 2 and 3, from an f32[6,12] to a given shape.
struct CollectivePlan : PlanBuilder {
  CollectivePlan(plan::Collective::Kind kind, const Shape &output, int64_t dim, int64_t split = 0,
                 DType dtype = DType::F32) {
    axis("a", 2);
    axis("b", 3);
    uint32_t from = state("s", dtype, {6, 12}, {{}, {}}).buffer();
    uint32_t to = buffer(dtype, output);
    task("t");
    plan::CollectiveTensor &c = collective(kind, {"a", "b"}, from, to);
    c.set_dim(dim);
    c.set_split_dim(split);
    schedule(0);
  }
  std::string error() { return messageOf(findPlanError(plan)); }
};
} // namespace

TEST(PlanVerifier, ShapesOfCollectives) {
  constexpr auto gather = plan::Collective::ALL_GATHER;
  constexpr auto scatter = plan::Collective::REDUCE_SCATTER;
  constexpr auto exchange = plan::Collective::ALL_TO_ALL;
  EXPECT_EQ(CollectivePlan(gather, {36, 12}, 0).error(), "");
  EXPECT_EQ(CollectivePlan(gather, {6, 72}, 1).error(), "");
  EXPECT_EQ(CollectivePlan(scatter, {6, 2}, 1).error(), "");
  EXPECT_EQ(CollectivePlan(exchange, {36, 2}, 0, 1).error(), "");
  EXPECT_EQ(CollectivePlan(exchange, {1, 72}, 1, 0).error(), "");
  EXPECT_EQ(CollectivePlan(exchange, {6, 12}, 1, 1).error(), "");
  EXPECT_TRUE(contains(CollectivePlan(gather, {6, 12}, 0).error(), "give f32[36,12]"));
  EXPECT_TRUE(contains(CollectivePlan(scatter, {6, 12}, 1).error(), "give f32[6,2]"));
  EXPECT_TRUE(contains(CollectivePlan(exchange, {6, 12}, 0, 1).error(), "give f32[36,2]"));
  EXPECT_TRUE(contains(CollectivePlan(gather, {6, 12}, 2).error(), "dim is 2"));
  EXPECT_TRUE(contains(CollectivePlan(gather, {6, 12}, -1).error(), "dim is -1"));
  EXPECT_TRUE(contains(CollectivePlan(exchange, {6, 12}, 0, 5).error(), "split_dim is 5"));
  CollectivePlan uneven(scatter, {6, 2}, 1);
  uneven.program().mutable_buffers(0)->set_shape(1, 11);
  EXPECT_TRUE(contains(uneven.error(), "is not divisible by the 6 members"));
  EXPECT_EQ(CollectivePlan(scatter, {6, 2}, 1, 0, DType::BF16).error(), "");
  EXPECT_EQ(CollectivePlan(scatter, {6, 2}, 1, 0, DType::F16).error(), "");
  EXPECT_TRUE(contains(CollectivePlan(scatter, {6, 2}, 1, 0, DType::Bool).error(),
                       "cannot reduce elements of type bool"));
}

TEST(PlanVerifier, EveryElementType) {
  for (DType dtype : {DType::F32, DType::F64, DType::I32, DType::Bool, DType::BF16, DType::F16}) {
    PlanBuilder builder;
    builder.axis("a", 2);
    plan::State &state = builder.state("s", dtype, {4, 3}, {{"a"}, {}});
    EXPECT_OK(findPlanError(*builder.build()));
    auto expectFloatAsked = [&](const char *message) {
      MaybeError error = findPlanError(*builder.build());
      EXPECT_EQ(error.has_value(), !isFloat(dtype)) << name(dtype);
      EXPECT_TRUE(!error || contains(error->message, message)) << error->message;
    };
    state.mutable_init()->set_kind(plan::Init::NORMAL);
    expectFloatAsked("random initial values need a float type, found");
    state.mutable_init()->set_kind(plan::Init::ZEROS);
    plan::Input &batches = builder.input("batches", dtype, {}, {});
    EXPECT_OK(findPlanError(*builder.build()));
    batches.set_role(plan::Input::BATCHES);
    expectFloatAsked("the number of batches is a scalar of a float type, found");
  }
}

TEST(PlanVerifier, CollectivesInPlace) {
  PlanBuilder builder;
  builder.axis("a", 2);
  uint32_t s = builder.state("s", DType::F32, {4}, {{}}).buffer();
  builder.task("t");
  builder.schedule(0);
  builder.collective(plan::Collective::ALL_REDUCE, {"a"}, s, s);
  EXPECT_OK(findPlanError(*builder.build()));
  builder.collective(plan::Collective::ALL_TO_ALL, {"a"}, s, s);
  EXPECT_ERROR(findPlanError(*builder.build()), "(buffers 1 and 2) share bytes of the arena");
}

TEST(PlanVerifier, Schedule) {
  EXPECT_ERROR_AFTER("schedule entry 1 names task 7, but the program has 2 tasks",
                     program.mutable_schedule(1)->set_task(7));
  EXPECT_ERROR_AFTER("schedule entry 1 is for microbatch 2, but there are 2",
                     program.mutable_schedule(1)->set_microbatch(2));
  auto plan = forwardPlan();
  plan->mutable_programs(0)->mutable_schedule(0)->set_microbatch(1);
  EXPECT_ERROR(findPlanError(*plan), "schedule entry 0 is for microbatch 1, but there are 1");
}

TEST(PlanVerifier, States) {
  EXPECT_ERROR_AFTER("state 0 has no name", program.mutable_states(0)->clear_name());
  EXPECT_ERROR_AFTER("two states are named \"w\"", program.mutable_states(1)->set_name("w"));
  EXPECT_ERROR_AFTER("state \"w\": names buffer 99", program.mutable_states(0)->set_buffer(99));
  EXPECT_ERROR_AFTER("state \"w\": unknown element type 9",
                     program.mutable_states(0)->set_dtype(static_cast<plan::DType>(9)));
  EXPECT_ERROR_AFTER("f32[65] in the file and f32[16,4] in the program differ",
                     program.mutable_states(0)->set_file_shape(0, 65));
  EXPECT_ERROR_AFTER("file_shape: shape [-64] has a negative size",
                     program.mutable_states(0)->set_file_shape(0, -64));
  EXPECT_ERROR_AFTER("belongs to parameter \"v\", which does not exist",
                     program.mutable_states(1)->set_parameter("v"));
  EXPECT_ERROR_AFTER("belongs to parameter \"w.momentum\", which does not exist",
                     program.mutable_states(1)->set_parameter("w.momentum"));
  EXPECT_ERROR_AFTER("the shard is f64[8,4], but buffer 0 is f32[8,4]",
                     program.mutable_states(0)->set_dtype(plan::F64));
  EXPECT_ERROR_AFTER("state \"w\" and state \"w.momentum\" share bytes of the arena",
                     program.mutable_states(1)->set_buffer(program.states(0).buffer());
                     program.mutable_states(1)->set_update(program.states(0).update()));
}

TEST(PlanVerifier, InitialValues) {
  EXPECT_ERROR_AFTER(
      "unknown kind of initial value 6",
      program.mutable_states(0)->mutable_init()->set_kind(static_cast<plan::Init::Kind>(6)));
  EXPECT_ERROR_AFTER("the scale of the initial values is -1",
                     program.mutable_states(0)->mutable_init()->set_scale(-1));
  EXPECT_ERROR_AFTER("the scale of the initial values is inf",
                     program.mutable_states(0)->mutable_init()->set_scale(INFINITY));
  EXPECT_ERROR_AFTER("random initial values need a float type, found i32", {
    program.mutable_states(0)->set_dtype(plan::I32);
    program.mutable_buffers(0)->set_dtype(plan::I32);
    program.mutable_buffers(static_cast<int>(program.states(0).update()))->set_dtype(plan::I32);
  });
}

TEST(PlanVerifier, Shardings) {
  EXPECT_ERROR_AFTER("the sharding has 1 dimensions, the tensor f32[16,4] has 2",
                     program.mutable_states(0)->mutable_sharding()->mutable_dims()->RemoveLast());
  EXPECT_ERROR_AFTER("the sharding names axis \"x\", which the mesh does not have",
                     *axesOfDim(program, 0)->Mutable(0) = "x");
  EXPECT_ERROR_AFTER("the sharding names the temporal axis \"micro\"",
                     *axesOfDim(program, 0)->Mutable(0) = "micro");
  EXPECT_ERROR_AFTER("the sharding names axis \"tp\" twice", *axesOfDim(program, 1)->Add() = "tp");
  EXPECT_ERROR_AFTER("the shard is f32[4,4], but buffer 0 is f32[8,4]",
                     *axesOfDim(program, 0)->Add() = "dp");
}

static plan::Input &makeFirstInputFloat(plan::Program &program) {
  plan::Input &input = *program.mutable_inputs(0);
  input.clear_index_limit();
  input.set_dtype(plan::F32);
  program.mutable_buffers(static_cast<int>(input.buffer()))->set_dtype(plan::F32);
  return input;
}

TEST(PlanVerifier, Inputs) {
  EXPECT_ERROR_AFTER("input 0 has no name", program.mutable_inputs(0)->clear_name());
  EXPECT_ERROR_AFTER("two inputs are named \"first_step\"",
                     program.mutable_inputs(0)->set_name("first_step"));
  EXPECT_ERROR_AFTER("input \"tokens\": unknown role 1",
                     program.mutable_inputs(0)->set_role(static_cast<plan::Input::Role>(1)));
  EXPECT_ERROR_AFTER("the number of batches is a scalar of a float type, found i32[8,6]",
                     program.mutable_inputs(0)->set_role(plan::Input::BATCHES));
  EXPECT_ERROR_AFTER("index_limit is -1", program.mutable_inputs(0)->set_index_limit(-1));
  EXPECT_ERROR_AFTER("index_limit is", program.mutable_inputs(0)->set_index_limit(INT64_MAX));
  EXPECT_ERROR_AFTER("index_limit is for inputs of role DATA, found LEARNING_RATES",
                     program.mutable_inputs(1)->set_index_limit(5));
  EXPECT_ERROR_AFTER("ignored_index is for inputs of role DATA, found LEARNING_RATES",
                     program.mutable_inputs(1)->set_ignored_index(-100));
  EXPECT_ERROR_AFTER("ignored_index is 2147483648; expected a number of i32",
                     program.mutable_inputs(0)->set_ignored_index(int64_t{1} << 31));
  EXPECT_ERROR_AFTER("index_limit is for elements of type i32, found f32",
                     makeFirstInputFloat(program).set_index_limit(5));
  EXPECT_ERROR_AFTER("ignored_index is for elements of type i32, found f32",
                     makeFirstInputFloat(program).set_ignored_index(5));
  EXPECT_ERROR_AFTER("input \"rate\" is the second one of its role", {
    plan::Input *input = program.add_inputs();
    *input = program.inputs(1);
    input->set_name("rate");
  });
}

TEST(PlanVerifier, Outputs) {
  EXPECT_ERROR_AFTER("output 0 has no name", program.mutable_outputs(0)->clear_name());
  EXPECT_ERROR_AFTER("two outputs are named \"loss\"",
                     program.mutable_outputs(1)->set_name("loss"));
  EXPECT_ERROR_AFTER("output \"loss\": names buffer 99",
                     program.mutable_outputs(0)->set_buffer(99));
  EXPECT_ERROR_AFTER("output \"loss\": the shard is f32[], but buffer 0",
                     program.mutable_outputs(0)->set_buffer(0));
}

TEST(PlanVerifier, ReadsComeAfterWrites) {
  EXPECT_ERROR_AFTER("task \"update\", instruction 0 (all_reduce), microbatch 0: the input (buffer "
                     "4, f32[]) is read before it is written",
                     {
                       // The update comes before the loop.
                       for (int entry : {2, 1})
                         program.mutable_schedule()->SwapElements(entry, entry - 1);
                       program.set_loop_begin(1);
                       program.set_loop_end(3);
                     });
  EXPECT_ERROR_AFTER("state \"w\", after the step: its tensor (buffer 32, f32[8,4]) is read before "
                     "it is written",
                     program.mutable_schedule()->RemoveLast());
  EXPECT_ERROR_AFTER("output \"loss\" (buffer 5) is never written", {
    program.mutable_schedule()->RemoveLast();
    for (plan::State &state : *program.mutable_states())
      state.clear_update();
  });
  EXPECT_ERROR_AFTER("the output that it adds to", {
    program.mutable_schedule(0)->set_microbatch(1);
    program.mutable_schedule(1)->set_microbatch(0);
  });
}

#undef EXPECT_ERROR_AFTER

} // namespace planVerifierTest
