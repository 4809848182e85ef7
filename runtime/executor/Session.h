//===- Session.h - A plan at work -----------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_SESSION_H
#define DTC_RUNTIME_EXECUTOR_SESSION_H

#include "runtime/backends/Kernel.h"
#include "runtime/communicators/Communicator.h"
#include "runtime/executor/Device.h"
#include "runtime/executor/DeviceThreads.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/support/Error.h"
#include "runtime/support/Tensor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

class LocalWorld;

struct SessionOptions {
  /// Threads that each device's kernels may use, at least 1.
  int threadsPerDevice = 1;
  /// Take the time of every instruction.
  bool profile = false;
};

/// The time that one kind of instruction took, summed over its calls and over the devices.
struct ProfileEntry {
  std::string name; // of the kernel or the collective
  uint64_t calls = 0;
  double seconds = 0; // of a collective, waiting for other devices included
  double flops = 0;
};

/// The time of collectives, summed over the devices. What is not exposed ran beside kernels.
struct CollectiveTime {
  double seconds = 0;        // of all collectives, waiting for other devices included
  double exposedSeconds = 0; // in which a compute thread waited for one

  /// The part of the time that kernels hid, from 0 to 1.
  double hiddenShare() const;
};

/// Most devices that run as threads of one process.
inline constexpr int64_t maxLocalDevices = 1024;

/// A plan with the memory and the threads of all its devices, in this process. Callers see whole
/// tensors; the session knows how they are split. Not thread-safe.
class Session {
public:
  /// Checks the plan, prepares all its kernels, and then allocates what the devices need. States
  /// start as zeros.
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<const plan::Plan> plan,
                                                   std::shared_ptr<const Backend> backend,
                                                   SessionOptions options = {});
  ~Session();

  /// Gives every state the initial value that the plan names; see InitialValues.h.
  MaybeError initializeStates(uint64_t seed);

  /// Sets or reads a state. The tensor has the element type and the file_shape of the state.
  MaybeError setState(const std::string &name, const HostTensor &value);
  Expected<HostTensor> getState(const std::string &name) const;

  /// Sets a data input to a whole tensor. It keeps the value for all steps until it is set again.
  /// Indices are checked against the input's index_limit.
  MaybeError setInput(const std::string &name, HostTensor value);

  /// Runs the schedule once on all devices. `stepNumber` is 1 for the first optimizer step; it and
  /// the learning rate are ignored by plans without these inputs. After an error the session can
  /// only be destroyed.
  MaybeError step(double learningRate, int64_t stepNumber);

  /// The whole tensor that the last step computed.
  Expected<HostTensor> getOutput(const std::string &name) const;

  const plan::Plan &plan() const { return *prepared->plan; }
  int64_t numDevices() const { return prepared->mesh.numDevices(); }
  /// The input of that role, or null.
  const plan::Input *findInput(plan::Input::Role role) const;
  const plan::Output *findOutput(const std::string &name) const;

  /// The largest arena of any device, in bytes. Scratch memory of kernels comes on top.
  uint64_t peakBytes() const;
  uint64_t workspaceBytes() const { return prepared->workspaceBytes; }
  /// What all devices sent since the session was created.
  CommunicatorBytes communicatorBytes() const;
  /// The longest first; empty without SessionOptions::profile.
  std::vector<ProfileEntry> profile() const;
  /// Zeros without SessionOptions::profile.
  CollectiveTime collectiveTime() const;

private:
  Session(std::shared_ptr<const Backend> backend, std::shared_ptr<const PreparedProgram> prepared);
  MaybeError allocate(const SessionOptions &options);
  MaybeError runOnDevices(const std::function<MaybeError(Device &)> &work);
  MaybeError setScalar(plan::Input::Role role, double value);
  void loadInputs(const Device &device) const;
  template <typename T> Expected<HostTensor> gather(const T &binding, TensorType type) const;
  const plan::State *findState(const std::string &name) const;

  std::shared_ptr<const Backend> backend; // outlives the kernels
  std::shared_ptr<const PreparedProgram> prepared;
  std::shared_ptr<LocalWorld> world;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<HostTensor> inputs; // for each input of the program
  std::vector<bool> inputIsSet;
  MaybeError failure;
  bool hasRun = false;
  std::unique_ptr<DeviceThreads> threads; // last: they end before what they use
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_SESSION_H
