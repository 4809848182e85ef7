//===- MpiMessages.cpp - Processes that MPI has started --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/mpi/MpiMessages.h"

#include "runtime/fabrics/processes/AbortReason.h"
#include "support/StartThread.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#define OMPI_SKIP_MPICXX 1 // the functions of C alone
#include <mpi.h>
#include <mutex>
#include <thread>
#include <vector>

namespace dtc::runtime {

namespace {

/// Whether any network of this process was aborted, after which MPI cannot end in good order.
std::atomic<bool> anyAborted = false;

/// Most bytes of a block: counts are ints.
constexpr size_t kLargestBlock = size_t{1} << 30;

/// Most bytes of a reason that other processes hear.
constexpr size_t kReasonBytes = 8192;

MaybeError errorOf(int code, const char *call) {
  if (code == MPI_SUCCESS)
    return std::nullopt;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Error{fmt::format("{}: {}", call, std::string(text, static_cast<size_t>(length)))};
}

/// The communicators of a network, and the news of its end that this process has received.
struct Network {
  MPI_Comm messages = MPI_COMM_NULL;
  MPI_Comm reasons = MPI_COMM_NULL; // of an abort
  int process = 0, processes = 1, onHost = 1;
  int64_t largestTag = 32767; // what MPI guarantees

  AbortReason aborted;

  /// Returns whether the reason is the first.
  bool fail(const Error &reason) {
    anyAborted = true;
    return aborted.set(reason);
  }
};

/// The parts of a message as a type of MPI; bytes that lie together need none.
class MessageType {
public:
  explicit MessageType(std::span<const MessagePart> parts) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (const MessagePart &part : parts)
      for (size_t done = 0; done < part.bytes; done += kLargestBlock) {
        lengths.push_back(static_cast<int>(std::min(part.bytes - done, kLargestBlock)));
        MPI_Aint place = 0;
        MPI_Get_address(part.data + done, &place);
        places.push_back(place);
      }
    if (lengths.size() == 1) {
      data = parts.front().data;
      count = lengths.front();
      return;
    }
    MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                             MPI_BYTE, &type);
    MPI_Type_commit(&type);
  }
  ~MessageType() {
    if (type != MPI_BYTE)
      MPI_Type_free(&type); // once no message uses it
  }
  MessageType(const MessageType &) = delete;
  MessageType &operator=(const MessageType &) = delete;

  void *data = MPI_BOTTOM;
  int count = 1;
  MPI_Datatype type = MPI_BYTE;
};

class MpiBatch final : public MessageBatch {
public:
  explicit MpiBatch(std::shared_ptr<Network> network) : network(std::move(network)) {}
  ~MpiBatch() override { (void)cancel(); }

  MaybeError send(int64_t process, int64_t tag, std::span<const MessagePart> parts) override {
    MessageType message(parts);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Isend(message.data, message.count, message.type, static_cast<int>(process),
                         static_cast<int>(tag), network->messages, &request);
    return add(errorOf(code, "MPI_Isend"), request, process, /*expected=*/-1);
  }

  MaybeError receive(int64_t process, int64_t tag, std::span<const MessagePart> parts) override {
    MessageType message(parts);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Irecv(message.data, message.count, message.type, static_cast<int>(process),
                         static_cast<int>(tag), network->messages, &request);
    int64_t bytes = 0;
    for (const MessagePart &part : parts)
      bytes += static_cast<int64_t>(part.bytes);
    return add(errorOf(code, "MPI_Irecv"), request, process, bytes);
  }

  Expected<bool> isDone() override {
    if (requests.empty())
      return true;
    if (MaybeError error = network->aborted.get())
      return *error;
    int done = 0;
    statuses.resize(requests.size());
    int code = MPI_SUCCESS;
    // Open MPI looks at its sockets in each eighth call alone (opal_progress), and a waiting thread
    // sleeps between two calls.
    for (int looks = network->onHost < network->processes ? 8 : 1;
         looks > 0 && !done && code == MPI_SUCCESS; --looks)
      code =
          MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
    if (code != MPI_SUCCESS)
      return failed(code);
    if (!done)
      return false;
    for (size_t i = 0; i < requests.size(); ++i) {
      MPI_Count bytes = 0;
      if (ends[i].expected >= 0 &&
          MPI_Get_elements_x(&statuses[i], MPI_BYTE, &bytes) == MPI_SUCCESS &&
          bytes != ends[i].expected)
        return wrongSize(ends[i], bytes);
    }
    requests.clear();
    ends.clear();
    return true;
  }

  bool cancel() override {
    bool isAtRest = true;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] == MPI_REQUEST_NULL)
        continue;
      if (ends[i].expected < 0) {
        MPI_Request_free(&requests[i]);
        continue;
      }
      // A message that has begun to come cannot be stopped; its sender may have ended.
      MPI_Cancel(&requests[i]);
      int done = 0;
      MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
      if (!done) {
        MPI_Request_free(&requests[i]);
        isAtRest = false;
      }
    }
    requests.clear();
    ends.clear();
    return isAtRest;
  }

protected:
  MaybeError failure() const override { return network->aborted.get(); }

private:
  struct End {
    int64_t process = 0;
    int64_t expected = -1; // bytes to receive
  };

  MaybeError add(MaybeError error, MPI_Request request, int64_t process, int64_t expected) {
    if (error)
      return error->inContext(fmt::format("process {}", process));
    requests.push_back(request);
    ends.push_back({process, expected});
    return std::nullopt;
  }

  static Error wrongSize(const End &end, int64_t bytes) {
    return Error{fmt::format("process {}: the message has {} bytes, its receiver expects {}",
                             end.process, bytes, end.expected)};
  }

  Error failed(int code) {
    for (size_t i = 0; i < requests.size() && code == MPI_ERR_IN_STATUS; ++i) {
      int each = statuses[i].MPI_ERROR;
      if (each == MPI_SUCCESS || each == MPI_ERR_PENDING)
        continue;
      int kind = 0;
      MPI_Error_class(each, &kind);
      if (kind == MPI_ERR_TRUNCATE)
        return Error{fmt::format("process {}: the message has more than the {} bytes that its "
                                 "receiver expects",
                                 ends[i].process, ends[i].expected)};
      return errorOf(each, "MPI_Testall")->inContext(fmt::format("process {}", ends[i].process));
    }
    return *errorOf(code, "MPI_Testall");
  }

  std::shared_ptr<Network> network;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  std::vector<End> ends;
};

/// A thread listens for the reasons of other processes, and moves what this one sends on.
class MpiMessages final : public Messages {
public:
  explicit MpiMessages(std::shared_ptr<Network> theNetwork) : network(std::move(theNetwork)) {
    listener = startThread("messages of other processes", [this] { listen(); });
  }
  ~MpiMessages() override {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_one();
    listener.join();
    if (network->aborted.isSet())
      return;
    MPI_Comm_free(&network->messages);
    MPI_Comm_free(&network->reasons);
  }

  int64_t process() const override { return network->process; }
  int64_t numProcesses() const override { return network->processes; }
  int64_t processesOnHost() const override { return network->onHost; }
  int64_t largestTag() const override { return network->largestTag; }
  std::unique_ptr<MessageBatch> openBatch() override { return std::make_unique<MpiBatch>(network); }

  void abort(const Error &reason) override {
    if (!network->fail(reason))
      return;
    std::string text = reason.message.substr(0, kReasonBytes);
    for (int other = 0; other < network->processes; ++other) {
      if (other == network->process)
        continue;
      // Its memory stays for as long as the process, which ends soon.
      auto *kept = new std::string(text);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(kept->data(), static_cast<int>(kept->size()), MPI_CHAR, other, 0, network->reasons,
                &request);
      MPI_Request_free(&request);
    }
  }
  void abortHere(const Error &reason) override { (void)network->fail(reason); }
  MaybeError failure() const override { return network->aborted.get(); }
  void onAbort(std::function<void(const Error &)> heard) override {
    network->aborted.listen(heard);
  }

private:
  void listen() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      changed.wait_for(lock, std::chrono::milliseconds(5));
      lock.unlock();
      hear();
      lock.lock();
    }
  }
  void hear() {
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, 0, network->reasons, &found, &status) != MPI_SUCCESS || !found)
      return;
    int bytes = 0;
    MPI_Get_count(&status, MPI_CHAR, &bytes);
    std::string reason(static_cast<size_t>(bytes), '\0');
    MPI_Recv(reason.data(), bytes, MPI_CHAR, status.MPI_SOURCE, 0, network->reasons,
             MPI_STATUS_IGNORE);
    network->fail(Error{reason});
  }

  std::shared_ptr<Network> network;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::thread listener;
};

} // namespace

Expected<std::unique_ptr<Mpi>> Mpi::start() {
  int provided = 0;
  if (MaybeError error =
          errorOf(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init"))
    return *error;
  if (provided < MPI_THREAD_MULTIPLE)
    return Error{fmt::format("{} allows no calls from several threads at a time "
                             "(MPI_THREAD_MULTIPLE); install one that does",
                             describeMpi())};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return std::unique_ptr<Mpi>(new Mpi);
}

Mpi::~Mpi() {
  if (!anyAborted)
    MPI_Finalize();
}

int64_t Mpi::process() const {
  int process = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  return process;
}

int64_t Mpi::numProcesses() const {
  int processes = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  return processes;
}

Expected<std::shared_ptr<Messages>> Mpi::openMessages() {
  auto network = std::make_shared<Network>();
  for (MPI_Comm *each : {&network->messages, &network->reasons}) {
    if (MaybeError error = errorOf(MPI_Comm_dup(MPI_COMM_WORLD, each), "MPI_Comm_dup"))
      return *error;
    MPI_Comm_set_errhandler(*each, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(network->messages, &network->process);
  MPI_Comm_size(network->messages, &network->processes);
  MPI_Comm host = MPI_COMM_NULL;
  if (MaybeError error = errorOf(
          MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
          "MPI_Comm_split_type"))
    return *error;
  MPI_Comm_size(host, &network->onHost);
  MPI_Comm_free(&host);
  void *largestTag = nullptr;
  int found = 0;
  if (MPI_Comm_get_attr(network->messages, MPI_TAG_UB, static_cast<void *>(&largestTag), &found) ==
          MPI_SUCCESS &&
      found)
    network->largestTag = *static_cast<int *>(largestTag);
  try {
    return std::shared_ptr<Messages>(std::make_shared<MpiMessages>(std::move(network)));
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
}

std::string describeMpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

} // namespace dtc::runtime
