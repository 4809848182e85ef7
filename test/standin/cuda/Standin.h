//===- Standin.h - Control of the stand-in of CUDA -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A library with the functions of the CUDA runtime, of cuBLASLt, of cuDNN and of NCCL that dtc
// uses, for tests on machines without a GPU. It executes kernels on the CPU and is stricter than a
// GPU:
//
//   - Enqueued work is executed when the host waits or asks for it, in an order that streams and
//     events allow and a seed draws, much of it as late as possible. A missing event, or a missing
//     wait of the host, then shows as a wrong result.
//   - A captured graph is executed in any order that its edges allow.
//   - What a GPU leaves undefined is a violation: a barrier that some threads do not reach, an
//     access outside of allocations, an access of the host to a device's memory, the default
//     stream. So is a call, where there are several devices, by a thread that has not chosen one,
//     for which CUDA would make a context on device 0. It is printed with the seed, and ends the
//     process unless a test collects it.
//   - A call that may wait for all that a device does, while a kernel of NCCL runs there that waits
//     for other members, is a violation: to allocate and free memory, to load the code of a kernel
//     at its first launch, to make and destroy graphs and the handles of libraries.
//   - NCCL adds each part of a tensor in another order, round its ring, and its communicators take
//     memory of their devices.
//
// The variables DTC_CUDA_STANDIN_SEED (a number) and DTC_CUDA_STANDIN_TRACE (set: all that is
// executed is printed to stderr) are read by Settings().
//
// All functions may be called from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_STANDIN_H
#define DTC_TEST_STANDIN_CUDA_STANDIN_H

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace dtc::standin {

/// How cuBLASLt treats products that have an epilogue: it computes them, has no algorithm for
/// them, or has one that it refuses when it is to run.
enum class Epilogues { Computed, WithoutAlgorithm, Refused };

/// The buffers of a connection of NCCL, in bytes: LL, LL128 and Simple (NCCL 2.28,
/// computeBuffSizes() in src/init.cc; the last is NCCL_BUFFSIZE in "Environment Variables").
inline constexpr size_t kNcclConnectionBytes =
    size_t(8) * 512 * 8 * 16 + size_t(120) * 640 * 8 * 8 + (size_t(4) << 20);

struct Settings {
  Settings();

  int devices = 2;
  size_t memoryBytes = size_t(4) << 30; // of each device
  int computeCapability = 9;            // its major number
  /// Of the order in which work is executed; 1, unless the environment has another.
  uint64_t seed;
  bool trace;
  Epilogues epilogues = Epilogues::Computed;
  bool cudnnCompiles = true; // graphs that it has an engine for
  /// Kernels and products are counted, not executed, and fresh memory is left as it is: for plans
  /// that are too large for a CPU.
  bool countsAlone = false;
  /// Work is executed even if nobody waits for it, after so much time without a call.
  std::chrono::milliseconds idle{20};
  /// The operations that a stream holds before a launch waits for one of them to end.
  size_t queueLength = 1024;
  int ncclVersion = 23007;
  /// Whether a call that may wait for a device is a violation while a collective waits there.
  bool refusesWaits = true;
  /// A communicator of NCCL whose end waits longer than this, for kernels or graphs, is a
  /// violation.
  std::chrono::milliseconds patience{20000};
  /// NCCL adds all elements in the order of the ranks, as the local fabric does, to compare what is
  /// beside the order. Otherwise it adds as the ring of NCCL: the sum of a part begins at the rank
  /// after the one that the part belongs to.
  bool addsInRankOrder = false;
  /// The channels of a communicator of NCCL. Each has buffers (kNcclConnectionBytes) for data from
  /// its neighbour in the ring, or from a peer that sends messages.
  int ncclChannels = 2;
};

/// Forgets everything: work, streams, events, memory, errors, faults. No other thread may use the
/// stand-in meanwhile.
void reset(const Settings &settings = {});

/// Numbers since reset().
struct Counts {
  uint64_t calls = 0;    // of functions of CUDA that can fail
  uint64_t work = 0;     // kernels, products, copies, settings of memory and host functions done
  uint64_t launches = 0; // of kernels and products, enqueued or captured
  uint64_t records = 0;  // calls of cudaEventRecord
  uint64_t waits = 0;    // calls of cudaStreamWaitEvent
  uint64_t graphLaunches = 0;
  size_t allocations = 0, streams = 0, events = 0, graphs = 0; // that exist
};
Counts counts();
/// Counts::launches by the names of kernels ("cublasLtMatmul" for products), since reset().
std::map<std::string, uint64_t> launchesByKernel();

// Faults. `n` counts from 0 at the call of these functions; each happens once.

/// The n-th call of a function of CUDA, or of the one named `function`, returns `error` and does
/// nothing.
void failCall(uint64_t n, cudaError_t error, std::string function = {});
/// The n-th kernel, product, copy, setting or host function fails when it is executed: its device
/// is lost as by loseDevice().
void failWork(uint64_t n, cudaError_t error);
/// The same of the n-th kernel, product, copy or setting of a device.
void loseDeviceAt(uint64_t n, int device, cudaError_t error);
/// All calls that concern the device return `error` from now on, and its work is dropped.
void loseDevice(int device, cudaError_t error);
/// The n-th call of cudaEventRecord, or of cudaStreamWaitEvent, succeeds and does nothing.
void ignoreRecord(uint64_t n);
void ignoreWait(uint64_t n);

// Stalls. `n` counts from 0 at the call of these functions; each happens once.

/// The n-th kernel, product, copy or setting of a device does not end, nor what follows in its
/// stream.
void stallWork(uint64_t n, int device);
/// The kernel of the n-th call, or group of calls, of NCCL on a device does not come to the other
/// members. An abort of the communicator ends it, as it does NCCL's.
void stallCollective(uint64_t n, int device);
/// The n-th call of a function of CUDA or NCCL by a thread of the device does not return.
void stallCall(uint64_t n, const std::string &function, int device);
/// Ends all stalls, for a test to go on where a program would end.
void endStalls();
/// The kernels, products, copies and settings that a device has done, and the calls, or groups of
/// calls, of NCCL that its streams have been given, since reset().
uint64_t workOf(int device);
uint64_t collectivesOf(int device);

/// Gets violations instead of the end of the process; the device of the violation is lost with
/// cudaErrorIllegalAddress or cudaErrorLaunchFailure, or the call returns an error. None: the
/// process ends again. Accesses outside of any mapping end the process always.
void collectViolations(std::function<void(const std::string &)> collector);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_STANDIN_H
