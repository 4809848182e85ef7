//===- NcclWorld.cpp - Common state of the GPUs of a run ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclWorld.h"

#include "support/StartThread.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::runtime::nccl {

NcclWorld::NcclWorld(const Nccl &nccl, Mesh mesh) : nccl(nccl), mesh(std::move(mesh)) {
  thread = startThread("the errors of NCCL", [this] { lookForErrors(); });
}

NcclWorld::~NcclWorld() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  ends.notify_all();
  thread.join();
}

Expected<std::shared_ptr<NcclGroup>>
NcclWorld::openGroup(int64_t device, const std::vector<std::string> &axes, int64_t lane) {
  std::vector<int64_t> devices = mesh.group(device, axes);
  std::string name =
      fmt::format("axes [{}], devices [{}]", fmt::join(axes, ", "), fmt::join(devices, ", "));
  Key key{false, axes, devices.front(), lane};
  return open(key, name, std::move(devices));
}

Expected<std::shared_ptr<NcclGroup>> NcclWorld::openPair(int64_t from, int64_t to) {
  std::string name = fmt::format("messages of device {} to device {}", from, to);
  return open({true, {}, from, to}, name, {from, to});
}

Expected<std::shared_ptr<NcclGroup>> NcclWorld::open(const Key &key, const std::string &name,
                                                     std::vector<int64_t> devices) {
  std::lock_guard one(opening);
  {
    std::lock_guard lock(mutex);
    if (auto found = groups.find(key); found != groups.end())
      return found->second;
    if (aborted)
      return *aborted;
  }
  auto created = NcclGroup::create(*this, name, std::move(devices));
  if (!created)
    return created.error();
  if (std::get<bool>(key))
    if (MaybeError error = (*created)->connect()) {
      (*created)->abort();
      return *error;
    }
  bool isLate = false;
  {
    std::lock_guard lock(mutex);
    groups.emplace(key, *created);
    isLate = aborted.has_value();
  }
  if (isLate)
    (*created)->abort();
  return created;
}

void NcclWorld::watch(const std::shared_ptr<QueueFailure> &queue) {
  std::lock_guard lock(mutex);
  if (aborted)
    (void)queue->set(*aborted);
  if (std::find(queues.begin(), queues.end(), queue) == queues.end())
    queues.push_back(queue);
}

void NcclWorld::abort(const Error &reason) {
  std::vector<std::shared_ptr<NcclGroup>> ended;
  {
    std::lock_guard lock(mutex);
    if (aborted)
      return;
    aborted = reason.inContext("another device failed");
    // Before the communicators, so that nobody takes what they leave for a result.
    for (const std::shared_ptr<QueueFailure> &queue : queues)
      (void)queue->set(*aborted);
    for (const auto &[key, group] : groups)
      ended.push_back(group);
  }
  for (const std::shared_ptr<NcclGroup> &group : ended)
    group->abort();
}

MaybeError NcclWorld::failure() const {
  std::lock_guard lock(mutex);
  return aborted;
}

void NcclWorld::lookForErrors() {
  constexpr auto pause = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex);
  while (!isEnding && !aborted) {
    ends.wait_for(lock, pause);
    std::vector<std::shared_ptr<NcclGroup>> now;
    for (const auto &[key, group] : groups)
      now.push_back(group);
    lock.unlock();
    for (const std::shared_ptr<NcclGroup> &group : now)
      if (MaybeError error = group->findAsyncError()) {
        abort(*error);
        break;
      }
    now.clear();
    lock.lock();
  }
}

} // namespace dtc::runtime::nccl
