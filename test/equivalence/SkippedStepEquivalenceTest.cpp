//===- SkippedStepEquivalenceTest.cpp - Tests of overflow on one device ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One device makes a number that is not finite, in some steps: all devices skip these steps and no
// others, nothing changes in them, and later steps are as if they had not been. So it is also where
// only that device sees the number, as in its copy of a gradient that other devices have too.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/train/StepOutcomes.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string_view>

namespace skippedStepEquivalenceTest {

using namespace dtc;
using namespace dtc::test;
using runtime::Injection;

namespace {

/// The sizes of examples/gpt2-tiny. With dropout, so that a step after a skipped one shows that its
/// masks are those of its batch.
const Model kTiny = {
    "Gpt2Tiny",
    R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 256, "n_embd": 128, "n_layer": 4, )"
    R"("n_head": 4, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1})",
    16, 8};

constexpr int64_t kLastStep = 10;
constexpr double kInf = INFINITY;

struct Fault {
  int64_t step;
  const char *op, *kernel;
  int64_t match;  ///< of the first microbatch's kernels: 1 in the forward, -1 in the backward pass
  int64_t device; ///< the first that runs such a kernel, from there on
  int64_t microbatch;
  double value;
};

const Fault kFaults[] = {
    {2, "h.0.attn", "joined_attention", 1, 5, 0, kInf},
    {3, "h.2.mlp", "einsum", -1, 2, 1, kInf},
    {5, "lm_head", "einsum", -1, 7, 0, NAN},
    {7, "h.1.attn", "joined_attention_grad", 1, 0, 1, -kInf},
};
/// 1024 at first, half as much after these steps, twice as much after two others in succession.
const double kScales[kLastStep] = {1024, 1024, 512, 256, 256, 128, 128, 64, 64, 128};

bool isFaulty(int64_t step) {
  return std::any_of(std::begin(kFaults), std::end(kFaults),
                     [&](const Fault &fault) { return fault.step == step; });
}

/// The bytes of states of all devices.
using Snapshot = std::vector<std::string>;

/// The bytes of all states but the step state, unless that is wanted too.
Snapshot takeSnapshot(const runtime::Session &session, bool withStepState = false) {
  Snapshot bytes;
  for (int64_t d = 0; d < session.numDevices(); ++d) {
    const runtime::DeviceExecutor &device = session.device(d);
    const plan::Program &program = *device.getProgram().program;
    for (const plan::State &state : program.states())
      if (withStepState || !isStepState(state.kind()))
        bytes.emplace_back(reinterpret_cast<const char *>(device.buffer(state.buffer())),
                           typeOf(program.buffers(int(state.buffer()))).numBytes());
  }
  return bytes;
}

/// Every two devices that hold the same shard of a state, or the step state, hold the same bytes.
void expectEqualReplicas(const runtime::Session &session) {
  const Mesh &mesh = session.getPrepared().mesh;
  std::map<std::pair<std::string, int64_t>, std::string> shards;
  int64_t copies = 0;
  Snapshot snapshot = takeSnapshot(session, /*withStepState=*/true);
  auto bytes = snapshot.begin();
  for (int64_t d = 0; d < session.numDevices(); ++d)
    for (const plan::State &state : session.device(d).getProgram().program->states()) {
      std::vector<std::string> axes;
      for (const plan::DimSharding &dim : state.sharding().dims())
        axes.insert(axes.end(), dim.axes().begin(), dim.axes().end());
      auto [it, first] = shards.try_emplace({state.name(), mesh.firstReplica(d, axes)}, *bytes);
      copies += !first;
      EXPECT_TRUE(it->second == *bytes) << "device " << d << " has another " << state.name()
                                        << " than device " << it->first.second;
      ++bytes;
    }
  EXPECT_GT(copies, 0) << "nothing was compared";
}

/// The place on the first device from `fault.device` on that has it.
Injection placeOf(const runtime::PreparedPlan &plan, const Fault &fault) {
  Injection injection{fault.op,     fault.kernel,     fault.match,   fault.step,
                      fault.device, fault.microbatch, /*element=*/0, fault.value};
  for (int64_t i = 0; i < plan.mesh.numDevices(); ++i) {
    injection.device = (fault.device + i) % plan.mesh.numDevices();
    if (runtime::prepareInjection(plan, injection))
      return injection;
  }
  ADD_FAILURE() << "no device has a kernel " << fault.kernel << " of " << fault.op;
  return injection;
}

/// A session on a plan, with the outcomes of its steps.
class Trainer {
public:
  Trainer(std::shared_ptr<const runtime::PreparedPlan> plan,
          std::shared_ptr<const runtime::Backend> backend, std::vector<Injection> injections) {
    runtime::SessionOptions options;
    options.injections = std::move(injections);
    auto created = runtime::Session::create(std::move(plan), std::move(backend), options);
    EXPECT_TRUE(created) << created.error().message;
    session = std::move(*created);
    EXPECT_FALSE(session->initializeStates(/*seed=*/7));
  }
  /// Sets the values that the run decides. After that the step decides.
  void start(int64_t firstBatch, double scale, int64_t growthInterval) {
    EXPECT_FALSE(setStepState(*session, plan::State::RANDOM_KEY, {7, double(firstBatch)}));
    EXPECT_FALSE(setStepState(*session, plan::State::LOSS_SCALE, {scale}));
    EXPECT_FALSE(setStepState(*session, plan::State::GROWTH_INTERVAL, {double(growthInterval)}));
  }
  /// Trains on a batch.
  void step(int64_t batch) {
    auto problem = setRandomInputs(*session, /*seed=*/uint64_t(batch));
    if (!problem)
      problem = trainStep(*session, 1e-2);
    ASSERT_FALSE(problem) << problem->message;
  }
  runtime::StepState state() const { return *runtime::readStepState(*session); }
  double output(const char *name) const { return element(*session->getOutput(name)); }

  std::unique_ptr<runtime::Session> session;
};

/// kTiny compiled for a strategy; null, with a test failure, if that is impossible.
std::shared_ptr<const runtime::PreparedPlan> prepare(const runtime::Backend &backend,
                                                     const std::string &text) {
  Compiler compiler;
  auto opened = compiler.importAndOpen(kTiny.config, kTiny.batch, kTiny.seq, strategy(text));
  EXPECT_TRUE(opened) << compiler.diagnostics();
  if (!opened)
    return nullptr;
  auto prepared = runtime::PreparedPlan::create(std::make_shared<plan::Plan>(opened->plan()),
                                                backend, /*threads=*/1);
  EXPECT_TRUE(prepared) << prepared.error().message;
  return prepared ? *prepared : nullptr;
}

class SkippedSteps : public testing::TestWithParam<std::tuple<const char *, const char *>> {};
class FaultsInCopies : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(SkippedSteps, AreSkippedByAllAndChangeNothing) {
  auto [mesh, dtype] = GetParam();
  std::shared_ptr<const runtime::Backend> backend = runtime::createCpuBackend();
  auto plan = prepare(*backend, std::string(mesh) + " dtype=" + dtype);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->mesh.numDevices(), 8);
  std::vector<Injection> injections;
  for (const Fault &fault : kFaults)
    injections.push_back(placeOf(*plan, fault));
  if (HasFailure())
    return;

  bool scales = std::string(dtype) == "f16";
  Trainer run(plan, backend, injections), leftOut(plan, backend, {});
  run.start(/*firstBatch=*/1, kScales[0], /*growthInterval=*/2);
  runtime::StepOutcomes outcomes(run.state(), {});
  int64_t skipped = 0;
  for (int64_t step = 1; step <= kLastStep; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    EXPECT_EQ(run.state().lossScale,
              scales ? std::optional<double>(kScales[step - 1]) : std::nullopt);
    Snapshot before = takeSnapshot(*run.session);
    run.step(step);
    runtime::StepMetrics metrics;
    metrics.step = step;
    metrics.learningRate = 1e-2;
    metrics.loss = run.output("loss");
    metrics.gradNorm = run.output("grad_norm");
    outcomes.stepDone(metrics, run.state());
    EXPECT_FALSE(outcomes.check(metrics, 1e-2)) << "the run goes on";
    expectEqualReplicas(*run.session);

    skipped += isFaulty(step);
    EXPECT_EQ(metrics.skippedSteps, skipped);
    EXPECT_EQ(run.state().appliedSteps, step - skipped);
    EXPECT_EQ(std::isfinite(*metrics.gradNorm), !isFaulty(step));
    EXPECT_EQ(takeSnapshot(*run.session) == before, isFaulty(step));
    if (isFaulty(step))
      continue;
    // The other run knows nothing of the batches of faulty steps.
    leftOut.start(step, kScales[step - 1], /*growthInterval=*/100);
    leftOut.step(step);
    EXPECT_EQ(leftOut.state().appliedSteps, step - skipped);
    EXPECT_EQ(leftOut.state().skippedSteps, 0);
    EXPECT_EQ(leftOut.output("loss"), *metrics.loss);
    EXPECT_EQ(leftOut.output("grad_norm"), *metrics.gradNorm);
    EXPECT_TRUE(takeSnapshot(*leftOut.session) == takeSnapshot(*run.session));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, SkippedSteps,
    testing::Combine(testing::Values("dp=2,tp=2,pp=2 m=2", "dp=4,tp=2 m=2 zero=1",
                                     "dp=4,tp=2 m=2 zero=2", "dp=4,tp=2 m=2 zero=3", "dp=8 m=2"),
                     testing::Values("f32", "bf16", "f16")),
    [](const testing::TestParamInfo<SkippedSteps::ParamType> &info) {
      return strategyName(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
    });

// In turn every square that the norm is the sum of, and the norm itself, on one device after
// another; and what only some devices have a copy of, with the gradients that it spoils.
TEST_P(FaultsInCopies, AreSeenByAll) {
  std::shared_ptr<const runtime::Backend> backend = runtime::createCpuBackend();
  auto plan = prepare(*backend, GetParam());
  ASSERT_TRUE(plan);
  std::vector<Injection> injections;
  const double values[] = {NAN, kInf, -kInf};
  auto inject = [&](const char *op, const char *kernel, int64_t match, int64_t device) {
    auto step = int64_t(injections.size() + 1);
    // A root is not negative.
    double value = std::string_view(kernel) == "sqrt" ? kInf : values[step % 3];
    Injection injection{op,
                        kernel,
                        match,
                        step,
                        device,
                        /*microbatch=*/0,
                        /*element=*/0,
                        value};
    bool isThere = bool(runtime::prepareInjection(*plan, injection));
    if (isThere)
      injections.push_back(injection);
    return isThere;
  };
  int64_t squares = 0, roots = 0, norms = 0, biases = 0;
  for (int64_t device = 0; device < plan->mesh.numDevices(); ++device) {
    // Every device has squares; so that not all devices take all of them, they begin apart.
    for (int64_t match = 1 + device % 3; inject("grad_norm", "einsum", match, device); match += 3)
      ++squares;
    roots += inject("grad_norm", "sqrt", 1, device);
    for (const char *op : {"h.1.ln_1", "h.3.ln_2", "ln_f"})
      norms += inject(op, "layer_norm_grad", -1, device);
    biases += inject("h.2.mlp", "reduce", 1, device);
  }
  EXPECT_GE(squares, 12);
  EXPECT_GE(roots, 1);
  EXPECT_GE(norms, 3);
  EXPECT_GE(biases, 1);

  Trainer run(plan, backend, injections);
  run.start(/*firstBatch=*/1, kScales[0], /*growthInterval=*/100);
  const Snapshot initial = takeSnapshot(*run.session);
  for (const Injection &injection : injections) {
    SCOPED_TRACE(injection.op + " " + injection.kernel + " " + std::to_string(injection.match) +
                 " on device " + std::to_string(injection.device));
    run.step(injection.step);
    EXPECT_FALSE(std::isfinite(run.output("grad_norm"))) << "the run does not know of it";
    ASSERT_TRUE(takeSnapshot(*run.session) == initial) << "some device did not skip the step";
  }
  run.step(int64_t(injections.size() + 1));
  EXPECT_TRUE(std::isfinite(run.output("grad_norm")));
  EXPECT_FALSE(takeSnapshot(*run.session) == initial);
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultsInCopies,
                         testing::Values("dp=2", "dp=4 zero=1 m=2", "dp=2 zero=3", "tp=2",
                                         "tp=2 sp", "tp=3", "dp=2,tp=2", "dp=2,tp=2 sp zero=2",
                                         "fsdp=2,tp=2 zero=3", "pp=2 m=2", "pp=3 m=4",
                                         "tp=2,pp=2 m=2", "dp=2,tp=2,pp=2 sp m=2 zero=1"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           return strategyName(info.param);
                         });

} // namespace skippedStepEquivalenceTest
