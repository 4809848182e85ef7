//===- Session.h - Sessions: a plan, its devices and memory ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_SESSION_H
#define DTC_RUNTIME_EXECUTOR_SESSION_H

#include "plan/plan.pb.h"
#include "runtime/backends/Kernel.h"
#include "runtime/executor/Deadline.h"
#include "runtime/executor/DeviceExecutor.h"
#include "runtime/executor/DeviceThreads.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/executor/RunWatch.h"
#include "runtime/executor/SessionMeasurements.h"
#include "runtime/executor/SessionOptions.h"
#include "runtime/executor/ShardRegion.h"
#include "runtime/fabrics/Fabric.h"
#include "support/Error.h"
#include "support/Tensor.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dtc::runtime {

class DevicePlaces;
class StallDetector;

/// The shard of a state that a device of this process holds.
struct StateShard {
  const plan::State *state = nullptr;
  int64_t device = 0;
  ShardRegion region;
  /// Whether it stands for all devices with the same elements, in any program or process.
  bool isFirst = false;
};

/// Where the elements of a shard are in host memory: at region.offset of a dense row-major box of
/// shape region.global, the whole tensor as the session tells it. A caller that has memory for a
/// part of the tensor changes the two.
struct HostShard {
  StateShard shard;
  std::byte *box = nullptr;
};

/// A plan with the memory and the threads of its devices in this process. Callers see whole
/// tensors; the session knows how they are split. Where other processes have devices of the plan,
/// all make the same calls in the same order. Not thread-safe.
///
/// While a step is in flight (startStep()), inputs can be set, and what the steps before it have
/// computed of scalars can be read: the outputs and the step state after the last one that
/// finishStep() was called for. Any other call that needs the memory of the devices is an error
/// then, also one of another entry point.
class Session {
public:
  /// Checks the plan, prepares all its kernels, and then allocates what the devices need. States
  /// start as zeros.
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<const plan::Plan> plan,
                                                   std::shared_ptr<const Backend> backend,
                                                   const SessionOptions &options = {});
  /// Runs a plan that the caller has checked, and prepared for options.threadsPerDevice.
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<const PreparedPlan> prepared,
                                                   std::shared_ptr<const Backend> backend,
                                                   const SessionOptions &options = {});
  ~Session();

  /// Gives every state the initial value that the plan names; see InitialValues.h. Master weights
  /// start as their parameter, so that they round to it.
  MaybeError initializeStates(uint64_t seed);
  /// The same for the states that neither setState() nor writeShards() has set.
  MaybeError initializeOtherStates(uint64_t seed);

  /// Sets or reads a state. The tensor has the element type and the file_shape of the state. One
  /// that several programs have is set in all and read from the first. After an error of a step
  /// they can still be read if the step was of an entry point that changes none.
  MaybeError setState(const std::string &name, const HostTensor &value);
  Expected<HostTensor> getState(const std::string &name) const;
  /// The state of each replica of this process, in a further first dimension: of all replicas
  /// unless readsOwnResults(), and of one where replicas do not differ in it.
  Expected<HostTensor> getStateOfReplicas(const std::string &name) const;
  /// As getStateOfReplicas(), but of the replicas of all processes, which call this together.
  Expected<HostTensor> getStateOfAllReplicas(const std::string &name) const;
  /// How many replicas have a part in what getOutput() gives; 1 where they do not differ.
  int64_t numReplicasRead() const;
  /// Whether each process has all of every output and of the step state, of each replica that it
  /// has a part of, so that reading them sends nothing.
  bool readsOwnResults() const;

  /// The shards of all states on the devices of this process. Those that are first make up every
  /// state, each element once.
  std::vector<StateShard> stateShards() const;
  /// Copies shards from their devices to host memory, without the padding; back, with the padding
  /// zero. Each device copies its own. Shards can be read where getState() can.
  MaybeError readShards(std::span<const HostShard> shards);
  MaybeError writeShards(std::span<const HostShard> shards);

  /// Sets a data input to a whole tensor. It keeps the value for all steps until it is set again.
  /// Indices are checked against the input's index_limit.
  /// With gradient accumulation over several batches (SessionOptions::batches), each has its own.
  MaybeError setInput(const std::string &name, HostTensor value, int64_t batch = 0);

  /// How many learning rates the plan takes at once; 0 for a plan that does not train.
  int64_t numLearningRates() const;
  /// Gives the learning rates of the next steps, at most numLearningRates(): the first is for the
  /// step before which the run has done `stepsDone` steps, as the step state counts them. Plans
  /// that do not train ignore them.
  MaybeError setLearningRates(int64_t stepsDone, std::span<const double> rates);
  /// For how many steps there are learning rates.
  int64_t learningRatesLeft() const { return ratesLeft; }

  /// Runs the schedule once on all devices. What changes from step to step besides the inputs, such
  /// as the loss scale, is a state that the step updates. After an error the session can only be
  /// destroyed, all its entry points with it.
  MaybeError step();

  /// The two halves of step(), between which the host is free. startStep() enqueues a step on all
  /// devices with the inputs as they are; on devices that run their work at once, such as a CPU, it
  /// returns at the end of the step. Up to SessionOptions::stepsInFlight can be started before the
  /// first of them is finished. It returns errors of the caller's inputs; finishStep() returns
  /// those of devices, which may be of a step before.
  MaybeError startStep();
  /// Waits for the oldest step in flight. After an error of a device, which may be found in a later
  /// step, the steps that all devices of this process had completed before are without one, and the
  /// first that was not has it.
  MaybeError finishStep();
  /// Whether finishStep() need not wait. Some step is in flight.
  bool stepIsDone() const;
  size_t stepsInFlight() const { return devices.empty() ? 0 : devices.front()->stepsInFlight(); }
  /// When the last device of this process came to the end of the step that finishStep() was called
  /// for last: for times from step to step that do not depend on when the host looks.
  Event::TimePoint lastStepEnd() const { return endOfLast; }
  /// How long the compute queues of the devices of this process did nothing but wait for
  /// collectives and messages in the last step that is over, on average. With
  /// SessionOptions::measureWaits, profiling or tracing.
  double waitedSeconds() const;

  /// The whole tensor that the last step computed. Where it differs between replicas
  /// (Replicas::outputs) it is the mean of those of this process, or of all unless
  /// readsOwnResults(). An error once another entry point has run, which may have put other values
  /// in its place.
  Expected<HostTensor> getOutput(const std::string &name) const;

  /// Another entry point of the plan, which works on the states of this session; null if the plan
  /// has none of that name. It lives as long as the session, and one of the two runs at a time;
  /// other values than states do not outlive a step of the other.
  Session *findEntry(const std::string &name) const;

  const plan::Plan &plan() const { return *prepared->plan; }
  const PreparedPlan &getPrepared() const { return *prepared; }
  /// The devices of the plan, in all processes.
  int64_t numDevices() const { return prepared->mesh.numDevices(); }
  Fabric &fabric() const { return *shared->fabric; }
  /// The first input of that role, or null.
  const plan::Input *findInput(plan::Input::Role role) const;
  const plan::Output *findOutput(const std::string &name) const;

  /// The largest arena and the most workspace of any device, in bytes.
  uint64_t peakBytes() const;
  uint64_t workspaceBytes() const;
  /// The memory of a device that the fabric takes beside them, for the device where it is most;
  /// empty: none.
  std::string describeFabricMemory() const;
  /// The bytes that all devices sent since the session was created.
  CommunicatorBytes communicatorBytes() const;
  /// For people, of devices that have graphs: how much of a step they get as graphs.
  std::string describeGraphs() const;
  /// The longest first; empty without SessionOptions::profile.
  std::vector<ProfileEntry> profile() const;
  /// Zeros without SessionOptions::profile.
  MeasuredCollectives measuredCollectives() const;
  /// The times of both ends of all transfers; zeros without SessionOptions::profile.
  TransferTime transferTime() const;
  /// The times of all steps; zeros for a plan whose tasks are not those of a pipeline.
  PipelineTime pipelineTime() const { return pipeline; }
  /// The devices of this process.
  std::span<const std::unique_ptr<DeviceExecutor>> heldDevices() const { return devices; }
  /// A device of this process; with its trace, if there is one.
  const DeviceExecutor &device(int64_t index) const { return *devices[positionOf(index)]; }

  /// See SessionOptions::onHang.
  static constexpr std::chrono::seconds kTimeToRest{10};

private:
  struct Shared;
  struct MemoryUse;

  Session(std::shared_ptr<const Backend> backend, std::shared_ptr<const PreparedPlan> prepared,
          std::shared_ptr<Shared> shared);
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<const PreparedPlan> prepared,
                                                   std::shared_ptr<const Backend> backend,
                                                   std::shared_ptr<Fabric> fabric,
                                                   const SessionOptions &options);
  MaybeError openResources(const SessionOptions &options);
  MaybeError openBeside();
  MaybeError checkMemory(const SessionOptions &options) const;
  Fabric::MemoryUse memoryOfFabric(int64_t device) const;
  Expected<std::map<std::string, uint64_t>>
  countSharers(const std::map<std::string, MemoryUse> &own) const;
  Expected<std::vector<std::vector<PreparedInjection>>>
  prepareInjections(const SessionOptions &options) const;
  MaybeError open(const SessionOptions &options);
  MaybeError prepare();
  std::vector<std::vector<int64_t>> rehearsedTogether(size_t group) const;
  MaybeError clearStates();
  std::unique_ptr<Deadline> expectRest() const;
  MaybeError runOnDevices(const std::function<MaybeError(DeviceExecutor &)> &work,
                          const DeviceThreads::Watch *watch = nullptr);
  size_t positionOf(int64_t device) const;
  int64_t firstHolder(int64_t device, const plan::Sharding &sharding) const;
  size_t firstHere(size_t position, const plan::Sharding &sharding) const;
  MaybeError setRole(plan::Input::Role role, std::span<const double> values);
  MaybeError checkBatch(const std::string &what, int64_t batch) const;
  MaybeError loadInputs(DeviceExecutor &device, int64_t batch) const;
  MaybeError checkAtRest(const std::string &what) const;
  MaybeError checkStep() const;
  /// A program that has a state or an output, and its binding there.
  template <typename T> struct Holder {
    int64_t program = 0;
    const T *binding = nullptr;
  };
  /// Whose values a read tensor has in a further first dimension, where replicas differ: of no
  /// replica in particular and without that dimension, of those that getStateOfReplicas() gives, or
  /// of those of all processes.
  enum class ReplicaRows { None, Own, All };
  int64_t replicaOf(int64_t device) const;
  plan::Sharding shardingOf(const plan::Sharding &sharding, bool ofReplicas) const;
  std::vector<int64_t> standIns(int64_t program, const plan::Sharding &sharding,
                                int64_t process) const;
  template <typename T>
  bool holdsWhole(const Holder<T> &holder, int64_t process, bool ofReplicas) const;
  template <typename T>
  const Holder<T> *heldEverywhere(const std::vector<Holder<T>> &holders, bool ofReplicas) const;
  template <typename T>
  Expected<HostTensor> gather(const std::vector<Holder<T>> &holders, TensorType type,
                              const char *what, bool readsKept, ReplicaRows rows) const;
  std::vector<Holder<plan::State>> holdersOfState(const std::string &name) const;
  std::vector<Holder<plan::Output>> holdersOfOutput(const std::string &name) const;
  Expected<HostTensor> readState(const std::string &name, ReplicaRows rows) const;
  Expected<HostTensor> readRows(const std::string &name, ReplicaRows rows) const;
  void addPipelineTime();
  Expected<bool> choosesGraphs(const SessionOptions &options) const;
  Expected<double> delayOf(int64_t device, const SessionOptions &options) const;

  std::unique_ptr<Deadline> end;          // of a failed session; lasts until all else is gone
  std::shared_ptr<const Backend> backend; // outlives the kernels
  std::shared_ptr<const PreparedPlan> prepared;
  /// The state that all entry points share.
  struct Shared {
    std::shared_ptr<Fabric> fabric;
    std::vector<std::unique_ptr<DeviceResources>> resources; // of each device of this process
    std::unique_ptr<DeviceThreads> threads;                  // they end before what they use
    MaybeError failure;
    std::function<void(const Error &)> onHang; // null: nobody is told
    std::set<std::string> setStates;           // those that a caller has given values
    bool statesAreWhole = true;        // also after a failure: no step that changes them has failed
    const Session *lastRun = nullptr;  // the one that made the last step
    const Session *stepping = nullptr; // the one with steps in flight
    /// Of the entry points that run beside the others, with threads, queues and steps in flight of
    /// their own; null: there are none. A failure of one side makes the fabric fail for both.
    std::shared_ptr<Shared> beside;
  };
  std::shared_ptr<Shared> shared;
  std::vector<std::unique_ptr<DeviceExecutor>> devices; // of this process
  /// For each batch of a step the values of the inputs that were set, by name. A later batch has
  /// the inputs that it does not set from the first.
  std::vector<std::map<std::string, HostTensor>> inputs;
  mutable std::optional<bool> ownResults; // see readsOwnResults()
  PipelineTime pipeline;
  std::unique_ptr<StallDetector> stallDetector; // null without a timeout
  std::unique_ptr<DevicePlaces> places;         // of `watch`
  std::shared_ptr<RunWatch> watch;              // null: nobody asks
  size_t mostInFlight = 1;
  int threadsPerDevice = 1;
  Event::TimePoint endOfLast;
  bool hasRun = false;
  int64_t ratesLeft = 0; // learning rates for steps to come
  std::vector<std::unique_ptr<Session>> entryPoints;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_SESSION_H
