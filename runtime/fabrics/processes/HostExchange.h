//===- HostExchange.h - Chunks that processes of a host exchange -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_HOSTEXCHANGE_H
#define DTC_RUNTIME_FABRICS_PROCESSES_HOSTEXCHANGE_H

#include "runtime/fabrics/processes/HostMemory.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dtc::runtime {

/// How the processes of a group exchange bytes through memory that they share. What is small goes
/// to all at once (exchangeSmall()). The rest goes in chunks, which all publish and take in the
/// same order, two at a time. A process
///
///   1. waits until the others have taken the chunk before the last (startChunk()), writes what it
///      gives to each of them (outgoing()) or to all (forAll()), and publishes it;
///   2. waits until all have published theirs (awaitChunk()), and reads them (incoming(),
///      fromAll()); it may write what comes of them to result(), and calls takeChunk();
///   3. may wait until all have done so (awaitResults()), and read resultOf() them, before it
///      publishes the next chunk but one.
///
/// Step 1 of a chunk comes before step 2 of the one before it, or after it. A `fingerprint` is that
/// of the collective, which is the same in all processes.
class HostExchange {
public:
  /// All processes of the group open it together; see HostMemory::open().
  static Expected<std::unique_ptr<HostExchange>> open(Messages &messages, const ProcessGroup &group,
                                                      int64_t tag);

  /// Room for the bytes that each process gives to all others by exchangeSmall().
  static constexpr size_t smallBytes() { return size_t{32} * 1024; }
  /// Calls write(std::byte *) for the bytes that this process gives to all, and waits for theirs,
  /// which fromSmall() has until the next call.
  template <typename Write> MaybeError exchangeSmall(uint64_t fingerprint, const Write &write) {
    write(smallOf(group.own));
    return awaitSmall(fingerprint);
  }
  const std::byte *fromSmall(size_t process) const { return smallOf(process, smallExchanges - 1); }

  /// Room for the bytes that one process gives to another one in a chunk, or for its result; a
  /// multiple of 64.
  size_t pairBytes() const { return pair; }
  /// Room for the bytes that it gives to all together.
  size_t allBytes() const { return pair * (group.numProcesses() - 1); }

  MaybeError startChunk();
  std::byte *outgoing(size_t to) const;
  std::byte *forAll() const { return chunkOf(group.own, published); }
  void publishChunk(uint64_t fingerprint);

  MaybeError awaitChunk(uint64_t fingerprint);
  const std::byte *incoming(size_t from) const;
  const std::byte *fromAll(size_t from) const { return chunkOf(from, taken); }
  std::byte *result() const { return chunkOf(group.own, taken) + allBytes(); }
  void takeChunk();

  MaybeError awaitResults();
  const std::byte *resultOf(size_t from) const { return chunkOf(from, taken - 1) + allBytes(); }

private:
  struct Progress;

  HostExchange(Messages &messages, const ProcessGroup &group) : messages(messages), group(group) {}
  Progress &progressOf(size_t process) const;
  std::byte *chunkOf(size_t process, uint32_t chunk) const;
  std::byte *smallOf(size_t process) const { return smallOf(process, smallExchanges); }
  std::byte *smallOf(size_t process, uint32_t number) const;
  MaybeError awaitSmall(uint64_t fingerprint);
  Error otherCollective(size_t process) const;
  /// The room of one process for another among those for all.
  size_t placeOf(size_t from, size_t to) const { return pair * (to < from ? to : to - 1); }

  Messages &messages;
  const ProcessGroup &group;
  std::unique_ptr<HostMemory> memory;
  size_t pair = 0;
  uint32_t smallExchanges = 0;
  uint32_t published = 0, taken = 0; // chunks of this process
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_HOSTEXCHANGE_H
