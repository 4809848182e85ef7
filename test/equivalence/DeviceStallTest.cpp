//===- DeviceStallTest.cpp - Devices that stand still ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Wherever a device stands still in a run over NCCL, the run ends within its limit with an error
// that names the device and what it was at, also where a library does not return.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/Training.h"
#include "test/lib/Times.h"
#include "test/lib/fabrics/NcclFabrics.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"
#include "test/standin/cuda/Standin.h"

#include "llvm/Support/MemoryBuffer.h"

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <iostream>
#include <mutex>

namespace deviceStallTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr double kTimeout = 0.4; // in seconds
/// The limit of a run in which no device stands still, however slow the machine is.
constexpr double kNoTimeout = 3600;

/// The parts of a run, in order.
enum Part { Prepare, Initialize, Train, Evaluate, Save, kNumParts };

/// The kind of fault: a kernel of NCCL that does not come, another kernel that does not end, a
/// function that does not return, a device that is lost.
enum Fault { Collective, Work, Call, Lost };

struct Place {
  const char *name, *strategy;
  bool graphs;
  Fault fault;
  int device;
  Part part;
  double share;         // where in the part: 0 is the first one, 1 the last one; of Call which one
  const char *function; // of Call
  const char *expected; // in the error
  const char *culprit = ""; // also in the error: whom the others wait for
};

void PrintTo(const Place &place, std::ostream *os) { *os << place.name; }

/// Where a run has been at the ends of its parts: the number of operations that may fail and that a
/// device has had by then.
using Ends = std::array<uint64_t, kNumParts>;

class DeviceStall : public testing::TestWithParam<Place> {
protected:
  void SetUp() override {
    auto file = llvm::MemoryBuffer::getFile(sourcePath("examples/mlp.mlir"));
    ASSERT_TRUE(file);
    auto module = compiler.parse((*file)->getBuffer().str());
    ASSERT_TRUE(module) << compiler.diagnostics();
    plan = compiler.compileCopy(*module, strategy(GetParam().strategy));
    ASSERT_TRUE(plan) << compiler.diagnostics();
  }
  void TearDown() override { standin::reset(); }

  static uint64_t count() {
    const Place &place = GetParam();
    return place.fault == Collective ? standin::collectivesOf(place.device)
                                     : standin::workOf(place.device);
  }
  static void restart() {
    standin::Settings settings;
    settings.devices = 4;
    settings.patience = std::chrono::milliseconds(500);
    standin::reset(settings);
  }

  /// Trains two steps, evaluates and reads the states. The error of the first that fails, or of
  /// what did not return.
  MaybeError run(double timeout, Ends *ends = nullptr) {
    MaybeError hung;
    auto onHang = [&](const Error &error) {
      hung = error;
      standin::endStalls(); // a program would end here
    };
    auto session = runtime::Session::create(plan, runtime::createCudaBackend(),
                                            {.openFabric = runtime::testing::ncclFabric(),
                                             .stallTimeout = timeout,
                                             .onHang = onHang,
                                             .graphs = GetParam().graphs});
    MaybeError error = session ? std::nullopt : MaybeError(session.error());
    auto end = [&](Part part, bool isDone) {
      if (isDone && ends)
        (*ends)[part] = count();
    };
    end(Prepare, !error);
    if (!error)
      error = trainAndSave(**session, end);
    // A program with an error leaves this to the end of the process.
    standin::endStalls();
    return hung ? hung : error;
  }

private:
  template <typename End> MaybeError trainAndSave(runtime::Session &session, const End &end) {
    if (MaybeError error = session.initializeStates(7))
      return error;
    end(Initialize, true);
    for (uint64_t step = 1; step <= 2; ++step) {
      if (MaybeError error = setRandomInputs(session, step))
        return error;
      if (MaybeError error = trainStep(session, 1e-2))
        return error;
    }
    end(Train, true);
    runtime::Session &evaluation = *session.findEntry("evaluate");
    if (MaybeError error = setRandomInputs(evaluation, 3))
      return error;
    if (MaybeError error = evaluation.step())
      return error;
    end(Evaluate, true);
    for (const plan::State *state : distinctStates(*plan))
      if (auto saved = session.getState(state->name()); !saved)
        return saved.error();
    end(Save, true);
    return std::nullopt;
  }

  Compiler compiler;
  std::shared_ptr<const plan::Plan> plan;
};

} // namespace

/// Makes the fault happen in the next run, which is to be as the one that had these ends.
static void arrange(const Place &place, const Ends &ends) {
  uint64_t begin = place.part == Prepare ? 0 : ends[place.part - 1], end = ends[place.part];
  if (place.fault == Call) {
    standin::stallCall(static_cast<uint64_t>(place.share), place.function, place.device);
  } else {
    ASSERT_GT(end, begin);
    auto n = begin + static_cast<uint64_t>(place.share * static_cast<double>(end - begin - 1));
    if (place.fault == Collective)
      standin::stallCollective(n, place.device);
    else if (place.fault == Work)
      standin::stallWork(n, place.device);
    else
      standin::loseDeviceAt(n, place.device, cudaErrorLaunchFailure);
  }
}

TEST_P(DeviceStall, EndsTheRunWithItsPlace) {
  const Place &place = GetParam();
  Ends ends = {};
  restart();
  MaybeError error = run(kNoTimeout, &ends);
  ASSERT_FALSE(error) << error->message;
  // On a busy machine a device may seem to stand still before it does.
  EXPECT_TRUE(passesWithMoreTime([&](int factor) {
    restart();
    arrange(place, ends);
    const auto start = std::chrono::steady_clock::now();
    MaybeError error = run(kTimeout * factor);
    // The limit, as long again for threads to return, and what the steps before have taken.
    bool endsInTime = std::chrono::steady_clock::now() - start < std::chrono::seconds(5) * factor;
    bool isAsExpected = endsInTime && error &&
                        error->message.find(place.expected) != std::string::npos &&
                        error->message.find(place.culprit) != std::string::npos;
    if (!isAsExpected)
      std::cerr << "With a limit of " << kTimeout * factor << " s"
                << (endsInTime ? "" : ", too late") << ": " << (error ? error->message : "no error")
                << "\n";
    return isAsExpected;
  }));
}

const Place kPlaces[] = {
    {"TheFirstCollective", "dp=2", false, Collective, 1, Prepare, 0, "",
     "device 1 (dp=1) waits in all_reduce of devices [0, 1]"},
    {"TheFirstCollectiveOfAStep", "dp=2", false, Collective, 1, Train, 0, "",
     "device 1 (dp=1) runs task \"step\"",
     "all its devices have come to all_reduce of devices [0, 1], in task \"step\", instruction "},
    {"AMiddleCollective", "tp=2", false, Collective, 0, Train, 0.5, "",
     "device 0 (tp=0) runs task \"step\"",
     "all its devices have come to all_reduce of devices [0, 1], in task \"step\", instruction "},
    {"TheLastCollective", "dp=2", false, Collective, 0, Train, 1, "",
     "device 0 (dp=0) runs task \"step\"",
     "all its devices have come to all_reduce of devices [0, 1], in task \"step\", instruction "},
    {"ACollectiveInAGraph", "tp=2", true, Collective, 1, Train, 0.5, "",
     "device 1 (tp=1) runs task \"step\"",
     "all its devices have come to all_reduce of devices [0, 1], in task \"step\", instruction "},
    {"TheLastCollectiveInAGraph", "dp=2", true, Collective, 1, Train, 1, "",
     "device 1 (dp=1) runs task \"step\"",
     "all its devices have come to all_reduce of devices [0, 1], in task \"step\", instruction "},
    {"ACollectiveOfZero3", "fsdp=4 zero=3", true, Collective, 2, Train, 0.3, "",
     "device 2 (fsdp=2) runs task \"step\"",
     "all its devices have come to reduce_scatter of devices [0, 1, 2, 3], in task \"step\", "
     "instruction "},
    {"AMessageToTheLastStage", "pp=2 m=2", false, Collective, 0, Train, 0, "", "device 0 (pp=0) "},
    {"AMessageToTheFirstStage", "pp=2 m=2", true, Collective, 1, Train, 1, "", "device 1 (pp=1) "},
    {"ACollectiveOfEvaluation", "tp=2", true, Collective, 1, Evaluate, 1, "",
     "device 1 (tp=1) runs task \"step\"",
     "all its devices have come to all_reduce of devices [0, 1], in task \"step\", instruction "},
    {"AKernelOfPreparation", "dp=2", false, Work, 1, Prepare, 0.5, "",
     "device 1 (dp=1) waits in all_reduce"},
    {"AnInputOfAStep", "dp=2", false, Work, 1, Train, 0, "", "device 1 (dp=1) runs task \"step\"",
     "device 1 (dp=1) has not come to what device 0 waits for: all_reduce of devices [0, 1], in "
     "task \"step\", instruction "},
    {"AKernel", "tp=2", false, Work, 0, Train, 0.1, "", "device 0 (tp=0) runs task \"step\"",
     "device 0 (tp=0) has not come to what device 1 waits for: all_reduce of devices [0, 1], in "
     "task \"step\", instruction "},
    {"AKernelInAGraph", "dp=2", true, Work, 1, Train, 0.1, "", "device 1 (dp=1) runs task \"step\"",
     "device 1 (dp=1) has not come to what device 0 waits for: all_reduce of devices [0, 1], in "
     "task \"step\", instruction "},
    {"AKernelOfAStage", "pp=2 m=2", false, Work, 1, Train, 0.7, "", "device 1 (pp=1) runs task \"",
     "device 1 (pp=1) has not come to what device 0 waits for: receive from device 1 on channel "},
    {"AKernelOfEvaluation", "dp=2", true, Work, 0, Evaluate, 0.5, "",
     "device 0 (dp=0) runs task \"step\"",
     "device 0 (dp=0) has not come to what device 1 waits for: all_reduce of devices [0, 1], in "
     "task \"step\", instruction "},
    {"ALaunchThatDoesNotReturn", "dp=2", false, Call, 1, Train, 20, "cudaLaunchKernelEx",
     "device 1 (dp=1) ",
     "device 1 (dp=1) has not come to what device 0 waits for: all_reduce of devices [0, 1], in "
     "task \"step\", instruction "},
    {"ACallOfNcclThatDoesNotReturn", "tp=2", false, Call, 0, Train, 5, "ncclAllReduce",
     "device 0 (tp=0) waits in all_reduce of devices [0, 1]"},
    {"ACaptureThatDoesNotEnd", "dp=2", true, Call, 1, Prepare, 0, "cudaStreamEndCapture",
     "device 1 (dp=1) runs kernel fill, in task \"step\""},
    {"AGraphThatIsNotInstantiated", "tp=2", true, Call, 0, Prepare, 0, "cudaGraphInstantiate",
     "device 0 (tp=0) runs kernel fill, in task \"step\""},
    {"AGraphThatIsNotLaunched", "dp=2", true, Call, 1, Train, 0, "cudaGraphLaunch",
     "device 1 (dp=1) runs kernel fill, in task \"step\"",
     "device 1 (dp=1) has not come to what device 0 waits for: all_reduce of devices [0, 1], in "
     "task \"step\", instruction "},
    {"ACopyThatInitializesAState", "dp=2", false, Work, 1, Initialize, 0.5, "",
     "device 1: a copy of state \""},
    {"TheLastCopyThatInitializes", "pp=2 m=2", true, Work, 0, Initialize, 1, "",
     "device 0: a copy of state \""},
    {"ACopyThatReadsAState", "dp=2", true, Work, 0, Save, 0.5, "", "device 0: a copy of state \""},
    {"ADeviceLostInPreparation", "tp=2", true, Lost, 0, Prepare, 0.9, "",
     "device 0: cuda 0: the work of a queue failed"},
    {"ADeviceLostInAStep", "dp=2", true, Lost, 1, Train, 0.5, "",
     "device 1: cuda 1: the work of a queue failed"},
    {"ADeviceLostInSaving", "pp=2 m=2", true, Lost, 1, Save, 0, "",
     "cuda 1: the work of a queue failed"},
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceStall, testing::ValuesIn(kPlaces),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace deviceStallTest
