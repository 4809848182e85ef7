//===- SocketLink.h - Messages to and from one process ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_SOCKETS_SOCKETLINK_H
#define DTC_RUNTIME_FABRICS_SOCKETS_SOCKETLINK_H

#include "runtime/control/ControlSocket.h"
#include "runtime/fabrics/processes/Messages.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <vector>

namespace dtc::runtime {

/// One end of a message.
struct SocketOperation {
  enum State { UnderWay, Done, Failed };

  SocketOperation(std::span<const MessagePart> parts);

  /// Puts bytes to where they belong, from byte `at` of the message on.
  void write(size_t at, const std::byte *from, size_t count) const;
  void finish() { state.store(Done, std::memory_order_release); }
  void fail(std::string why) {
    error = std::move(why);
    state.store(Failed, std::memory_order_release);
  }

  const std::vector<MessagePart> parts; // without empty ones
  const size_t bytes;
  int64_t tag = 0;
  uint64_t number = 0; // of an offered one
  std::atomic<State> state = UnderWay;
  std::string error; // of a failed one
};

/// The connection to another process, or from this process to itself. A thread that wants something
/// to move calls move(); the network's thread does it too, when the socket says that something can.
///
/// A message goes as one frame, with the bytes right after its head. The receiving end keeps
/// messages that its process has not asked for yet. A large message is offered first, and sent once
/// the receiver has asked for it, so that its bytes go straight to their place.
class SocketLink {
public:
  /// Takes the other end's news beside messages: the reason of an abort.
  using Heard = std::function<void(const Error &reason)>;

  /// No file: to itself. `secret` has been exchanged.
  SocketLink(int64_t process, OwnedFile file, Heard heard);

  int64_t process() const { return other; }
  int file() const { return handle.get(); }

  void send(const std::shared_ptr<SocketOperation> &operation);
  void receive(const std::shared_ptr<SocketOperation> &operation);
  /// Nothing reads or writes the memory of an operation from now on.
  void cancel(const std::shared_ptr<SocketOperation> &operation);

  /// Writes and reads what can be written and read without waiting.
  void move();
  /// As move(), unless another thread does it. The reason of an abort is told by move() alone.
  void tryToMove();

  void tellAbort(const std::string &reason);
  /// Says that this end sends nothing any more.
  void sayGoodbye();
  /// Whether all has been written, and the other end has said goodbye too or is gone.
  bool isOver();

private:
  using Operation = std::shared_ptr<SocketOperation>;

  /// The head of a frame, as it is on the wire: both ends have the same order of bytes.
  struct Head {
    enum Kind : uint64_t { Whole = 1, Offer, Request, Body, Abort, Goodbye };
    uint64_t kind = 0;
    int64_t tag = 0;
    uint64_t number = 0; // of an offer, for Offer, Request and Body
    uint64_t bytes = 0;  // that follow; of Offer: that are offered
  };
  struct Output {
    Head head;
    Operation operation; // null: the text follows the head
    std::string text = {};
    size_t written = 0; // of the head and what follows it
  };
  /// A message that nobody has asked for yet.
  struct Arrived {
    uint64_t bytes = 0;
    uint64_t offer = 0;             // its number; 0: the bytes themselves come
    std::vector<std::byte> kept;    // of those
    bool isWhole = false;           // all have come
    Operation sender;               // to itself
    std::optional<Operation> taken; // by whom, before all had come
  };
  /// Where the bytes after the head that was read last go.
  struct Incoming {
    uint64_t left = 0;
    Operation operation; // null: to `kept`, or nowhere
    std::shared_ptr<Arrived> kept;
    std::string *text = nullptr;
    size_t done = 0;
  };

  /// Most bytes of a reason that another process hears.
  static constexpr size_t kMostReasonBytes = 8192;

  void enqueue(Output output);
  void moveLocked();
  bool writeSome();
  bool readSome();
  bool readBody();
  bool triesAgain(ssize_t count);
  void takeBody(const std::byte *bytes, size_t count);
  bool takeHead();
  void bodyHasCome();
  void matchLocal(const Operation &operation);
  void hand(const Operation &operation, Arrived &arrived);
  void breakLink(const std::string &why);
  Error wrongSize(uint64_t sent, size_t expected) const;

  const int64_t other;
  const OwnedFile handle;
  const Heard heard;

  std::mutex mutex; // of all that follows
  std::deque<Output> outputs;
  std::map<int64_t, std::deque<Operation>> wanted;                 // by tag
  std::map<int64_t, std::deque<std::shared_ptr<Arrived>>> arrived; // by tag
  std::map<uint64_t, Operation> offered, requested;                // by number
  uint64_t lastOffer = 0;
  std::vector<std::byte> inbox; // read and not understood yet, from `first` to `last`
  size_t first = 0, last = 0;
  Incoming incoming;
  std::string reasonText;
  MaybeError reason;  // of an abort, not passed on yet
  std::string broken; // why
  bool isBroken = false, saidGoodbye = false, heardGoodbye = false, isCut = false;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_SOCKETS_SOCKETLINK_H
