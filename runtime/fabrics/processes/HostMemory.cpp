//===- HostMemory.cpp - Memory that processes of a host share --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The first process makes a file without a name, and tells the others its own number and that of
// the descriptor; they open it through /proc. The size of /dev/shm, which is small in containers,
// does not matter.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/HostMemory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dtc::runtime {

namespace {

/// The bytes from the beginning of the file to the memory.
constexpr size_t kHeadBytes = 4096;

/// A file descriptor, closed at its end.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  int get() const { return number; }

private:
  int number;
};

/// The first message between processes.
struct Hello {
  std::array<char, 240> host{};
  int64_t pid = 0;
  int64_t descriptor = -1; // of the first process; -1: it has none
  uint64_t token = 0;      // the first bytes of the file, which no other has
};

std::string linkOf(const char *path) {
  std::array<char, 64> text{};
  ssize_t length = readlink(path, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : std::string();
}

/// The same for processes that see each other's memory, as far as one can know: one kernel, and one
/// numbering of processes. Those with networks of their own count as different hosts, which is what
/// they have been made for.
std::string hostKey() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {} {} {}", boot, linkOf("/proc/self/ns/pid"), linkOf("/proc/self/ns/net"),
                     geteuid());
}

/// The values of all processes of the group, in their order.
template <typename T>
Expected<std::vector<T>> exchange(Messages &messages, const ProcessGroup &group, int64_t tag,
                                  T own) {
  std::vector<T> values(group.numProcesses(), own);
  std::unique_ptr<MessageBatch> batch = messages.openBatch();
  MessagePart sent = MessagePart::of(own);
  for (size_t process = 0; process < values.size(); ++process) {
    if (process == group.own)
      continue;
    MessagePart received = MessagePart::of(values[process]);
    if (MaybeError error = batch->receive(group.processes[process], tag, {&received, 1}))
      return *error;
    if (MaybeError error = batch->send(group.processes[process], tag, {&sent, 1}))
      return *error;
  }
  if (MaybeError error = batch->wait())
    return *error;
  return values;
}

std::byte *mapFile(int descriptor, size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte *>(memory);
}

/// Null if it is not there, or not what the other process means.
std::byte *mapFileOf(const Hello &owner, size_t bytes) {
  Descriptor file(::open(fmt::format("/proc/{}/fd/{}", owner.pid, owner.descriptor).c_str(),
                         O_RDWR | O_CLOEXEC));
  // An access beyond the end of a file is a signal.
  if (file.get() < 0 || lseek(file.get(), 0, SEEK_END) != static_cast<off_t>(bytes))
    return nullptr;
  std::byte *memory = mapFile(file.get(), bytes);
  if (memory && std::memcmp(memory, &owner.token, sizeof(owner.token)) != 0) {
    munmap(memory, bytes);
    return nullptr;
  }
  return memory;
}

} // namespace

Expected<std::unique_ptr<HostMemory>>
HostMemory::open(Messages &messages, const ProcessGroup &group, int64_t tag, size_t bytes) {
  bytes += kHeadBytes;
  Hello hello;
  std::string host = hostKey();
  std::memcpy(hello.host.data(), host.data(), std::min(host.size(), hello.host.size()));
  hello.pid = getpid();
  Descriptor file(group.own == 0 ? memfd_create("dtc", MFD_CLOEXEC) : -1);
  std::byte *memory = nullptr;
  if (file.get() >= 0 && posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) == 0)
    memory = mapFile(file.get(), bytes);
  if (memory) {
    std::random_device random;
    hello.token = uint64_t{random()} << 32 | random();
    hello.descriptor = file.get();
    std::memcpy(memory, &hello.token, sizeof(hello.token));
  }
  std::unique_ptr<HostMemory> opened(memory ? new HostMemory(memory, bytes) : nullptr);
  Expected<std::vector<Hello>> all = exchange(messages, group, tag, hello);
  if (!all)
    return all.error();
  for (const Hello &each : *all)
    if (each.host != hello.host || all->front().descriptor < 0)
      return std::unique_ptr<HostMemory>();
  if (group.own != 0)
    if (std::byte *found = mapFileOf(all->front(), bytes))
      opened.reset(new HostMemory(found, bytes));
  // The file stays open until all have it.
  Expected<std::vector<char>> haveIt = exchange(messages, group, tag, char(opened ? 1 : 0));
  if (!haveIt)
    return haveIt.error();
  for (char has : *haveIt)
    if (!has)
      return std::unique_ptr<HostMemory>();
  return opened;
}

std::byte *HostMemory::data() const { return file + kHeadBytes; }

HostMemory::~HostMemory() { munmap(file, bytes); }

} // namespace dtc::runtime
