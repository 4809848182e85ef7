//===- AsyncBackend.h - Asynchronous devices ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_ASYNCBACKEND_H
#define DTC_TEST_LIB_PLANS_ASYNCBACKEND_H

#include "runtime/backends/Kernel.h"
#include "runtime/fabrics/Fabric.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dtc::runtime::testing {

/// Holds a kernel of a backend, each time that it is its turn, until it may run.
class KernelGate {
public:
  explicit KernelGate(std::string kernel) : kernel(std::move(kernel)) {}
  const std::string &kernelName() const { return kernel; }

  /// Lets the next `runs` pass, besides those that were let before; all from now on.
  void let(uint64_t runs);
  void open();
  /// Lets run number `run`, from 1, fail instead.
  void failAt(uint64_t run);
  /// Waits until `runs` runs have been enqueued since the gate was made.
  void waitForEnqueued(uint64_t runs);
  uint64_t enqueued() const;

  // For the backend.
  void countEnqueued();
  /// Throws where the run fails.
  void pass();

private:
  const std::string kernel;
  mutable std::mutex mutex;
  std::condition_variable changed;
  uint64_t allowed = 0, passed = 0, given = 0;
  std::optional<uint64_t> failing;
};

/// The kernels of the fake backend on devices that, like GPUs, run their work on threads of their
/// own and have a memory that the host must not access. Fresh memory is full of
/// bytes 0xFF. A kernel of the gate's name waits there; its name may also be "test_gate", which
/// computes nothing.
std::shared_ptr<const Backend> createAsyncBackend(std::shared_ptr<KernelGate> gate = nullptr);

/// Opens the local fabric, which would not have several such devices.
OpenFabric asyncFabric();

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_ASYNCBACKEND_H
