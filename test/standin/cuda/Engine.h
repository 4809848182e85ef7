//===- Engine.h - Streams, events and the order of their work ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All work is executed by one thread, the host functions of a device by another. Functions of CUDA
// enqueue under a lock; one that has to wait gives its demand to the engine and sleeps.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_ENGINE_H
#define DTC_TEST_STANDIN_CUDA_ENGINE_H

#include "test/standin/cuda/Memory.h"
#include "test/standin/cuda/Standin.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace dtc::standin {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

struct Stream;
struct Capture;
class Engine;

/// The place that one call of cudaEventRecord refers to.
struct Moment {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0; // of the record in its stream
  bool done = false;
  Clock::time_point time = {};
};

/// A failure of work: the error that its device has from then on.
struct Failure {
  cudaError_t error;
  std::string violation; // empty for a fault that was asked for
};

struct Operation {
  enum class Kind { Work, HostFunction, Record, Wait };
  Kind kind;
  std::function<std::string()> describe;
  std::function<std::optional<Failure>()> run; // of Work and HostFunction
  std::shared_ptr<Moment> moment;              // of Record and Wait
  int otherDevice = kPinned;                   // whose memory is accessed too
  /// Of one that was captured and is another one each time that its graph is launched: enqueues it.
  std::function<void(Engine &, const std::shared_ptr<Stream> &)> expand = nullptr;
  std::shared_ptr<Moment> stall = nullptr; // it does not end before this
};

/// A place in a capture: all work that comes before.
struct CapturedMoment {
  std::shared_ptr<Capture> capture; // none: it is of no capture
  std::vector<size_t> after;        // nodes
};

struct Stream {
  int device;
  int number;
  bool busy = false; // its first operation is being executed
  uint64_t given = 0, done = 0;
  std::deque<Operation> operations;
  uint64_t priority = 0;
  /// Work that the stream gets while it is captured comes after this.
  CapturedMoment captured = {};
};

struct Event {
  int device;
  bool timed;
  std::shared_ptr<Moment> moment; // none before the first record
  CapturedMoment captured = {};   // of a record in a capture
};

/// A call of NCCL that was enqueued: its kernel holds the device until the other members have come.
struct PendingCall {
  std::shared_ptr<Stream> stream;
  uint64_t position; // of its end in the stream
  std::string name;
  const void *group;                              // of its communicator and those of other members
  std::weak_ptr<const std::atomic<bool>> aborted; // of its communicator
};

/// A place in a stream: the number of operations that are done there.
struct Position {
  std::shared_ptr<Stream> stream;
  uint64_t position;
};

class Engine {
public:
  static Engine &get();

  std::mutex mutex; // of everything

  // All below with the lock held.
  void reset(Lock &lock, const Settings &settings);
  /// A wait may be for a moment that is recorded later, by another thread.
  void enqueue(const std::shared_ptr<Stream> &stream, Operation operation);
  /// Lets go who waits for the moment.
  void complete(Moment &moment);
  /// Sleeps until the positions are reached or their devices are lost.
  void waitFor(Lock &lock, std::vector<Position> positions);
  /// Lets the engine do some work, or none, as the seed has it.
  void poll(Lock &lock, std::vector<Position> positions);
  void loseDevice(int device, cudaError_t error);
  uint64_t draw() { return random(); }
  const std::vector<std::shared_ptr<Stream>> &activeStreams() const { return active; }
  /// The error of a lost device; cudaSuccess otherwise.
  cudaError_t errorOf(int device) const;
  /// Prints the message and ends the process, or gives it to the collector.
  void violate(const std::string &message);

  Settings settings;
  Counts counts;
  std::map<const void *, uint64_t> launches; // by kernel; null for products
  void countLaunch(const void *kernel) {
    ++counts.launches;
    ++launches[kernel];
  }
  /// Code that CUDA has loaded at its first use on a device: kernels, by their address, and those
  /// of libraries, by a number of the calls that use them.
  std::set<std::pair<int, uint64_t>> loaded;
  std::vector<PendingCall> pendingCalls;
  /// The device waits in a call of NCCL for other members, beside calls of `group`; the name of the
  /// call.
  std::optional<std::string> waitsForOthers(int device, const void *group = nullptr);
  Memory memory;
  std::map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::vector<std::shared_ptr<Capture>> captures; // that have begun
  std::map<cudaGraph_t, std::shared_ptr<const Capture>> graphs;
  std::map<cudaGraphExec_t, std::shared_ptr<const Capture>> executables;
  Clock::time_point lastCall = {};
  int nextStream = 1;

  struct Fault {
    uint64_t left;
    cudaError_t error;
    std::string function;
  };
  std::vector<Fault> callFaults, workFaults, recordFaults, waitFaults;
  /// By placeOf().
  std::vector<Fault> workStalls, collectiveStalls, callStalls;
  static std::string placeOf(const std::string &function, int device) {
    return function + " on device " + std::to_string(device);
  }
  std::map<int, uint64_t> workOf, collectivesOf; // by device
  /// A moment that does not come before endStalls().
  std::shared_ptr<Moment> stall();
  /// Sleeps until endStalls().
  void stallCaller(Lock &lock);
  void endStalls();
  /// Whether a fault of the list happens now; its error.
  static std::optional<cudaError_t> takeFault(std::vector<Fault> &faults,
                                              const std::string &function = {});
  std::function<void(const std::string &)> collector;

private:
  /// How the engine chooses while one demand is not met.
  enum class Order {
    Needed,     // only what the demand needs: the rest is late
    Priorities, // the stream of the highest priority, which changes now and then: the rest is late
    Any
  };
  struct Demand {
    std::vector<Position> positions;
    Order order;
    std::optional<uint64_t> operations; // of a poll: how many may still be executed
    bool met = false;
  };
  /// Executes the host functions of a device, one after the other.
  struct HostThread {
    std::deque<std::shared_ptr<Stream>> streams;
    std::condition_variable wake;
  };

  Engine();
  void work();
  void workForHost(HostThread &own);
  void await(Lock &lock, Demand &demand);
  bool isMet(const Demand &demand) const;
  /// A stream whose first operation is to be executed now; none if nothing can be or has to be.
  std::shared_ptr<Stream> chooseForAll(bool isIdle);
  std::shared_ptr<Stream> choose(const Demand *demand);
  static void findNeeded(const Position &position, std::vector<std::shared_ptr<Stream>> &found,
                         std::vector<const Stream *> &seen);
  static bool canRun(const Stream &stream);
  void execute(Lock &lock, const std::shared_ptr<Stream> &stream);
  void executeWork(Lock &lock, Stream &stream, Operation &operation);
  void finish(Stream &stream, std::optional<Failure> failure);
  void finishDemands();
  void drawPriorities();

  std::mt19937_64 random;
  std::vector<std::shared_ptr<Stream>> active; // those with work
  std::list<Demand *> demands;
  std::map<int, cudaError_t> lost;
  std::map<int, std::unique_ptr<HostThread>> hostThreads;
  std::vector<std::weak_ptr<Moment>> stalls;
  uint64_t endedStalls = 0; // calls of endStalls()
  std::condition_variable stallsEnd;
  std::condition_variable wake, met, quiet; // for the engine, for demands, for reset()
  bool sleepsForever = false;               // the engine, as long as nothing wakes it
};

/// Whether the calling thread executes a host function, which may not call functions of CUDA.
bool inHostFunction();
/// The work that is executed now, for reports: "cudaMemcpyAsync of 4096 bytes on stream 2".
std::string describeCurrentWork();

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_ENGINE_H
