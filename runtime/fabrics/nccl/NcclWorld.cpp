//===- NcclWorld.cpp - Common state of the GPUs of a run ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclWorld.h"

#include "runtime/fabrics/processes/Agreement.h"
#include "runtime/fabrics/processes/DevicePlacement.h"
#include "support/StartThread.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

namespace dtc::runtime::nccl {

/// The tag of ids, beside those of agreements.
static constexpr int64_t kIdTag = kAgreementTags;

NcclWorld::NcclWorld(const Nccl &nccl, Mesh theMesh, int gpus,
                     std::shared_ptr<Messages> theMessages, int mostChannels)
    : nccl(nccl), mesh(std::move(theMesh)), gpus(gpus), mostChannels(mostChannels),
      messages(std::move(theMessages)),
      processOfDevice(placeDevices(mesh.numDevices(), messages ? messages->numProcesses() : 1)) {
  thread = startThread("the errors of NCCL", [this] { lookForErrors(); });
  if (messages)
    messages->onAbort([this](const Error &reason) { abortHere(reason); });
}

NcclWorld::~NcclWorld() {
  if (messages)
    messages->onAbort(nullptr);
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  ends.notify_all();
  thread.join();
}

bool NcclWorld::isHere(int64_t device) const {
  return !messages || processOfDevice[static_cast<size_t>(device)] == messages->process();
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

std::shared_ptr<NcclGroup> NcclWorld::openGroup(int64_t device,
                                                const std::vector<std::string> &axes, int64_t lane,
                                                bool isInGraphs) {
  std::vector<int64_t> devices = mesh.group(device, axes);
  std::string name = fmt::format("axes [{}], devices [{}]{}", fmt::join(axes, ", "),
                                 fmt::join(devices, ", "), isInGraphs ? ", in graphs" : "");
  Key key{isInGraphs ? NcclGroup::Use::InGraphs : NcclGroup::Use::Collectives, axes,
          devices.front(), lane};
  return open(key, name, std::move(devices));
}

std::shared_ptr<NcclGroup> NcclWorld::openPair(int64_t from, int64_t to) {
  std::string name = fmt::format("messages of device {} to device {}", from, to);
  return open({NcclGroup::Use::Messages, {}, from, to}, name, {from, to});
}

std::shared_ptr<NcclGroup> NcclWorld::open(const Key &key, const std::string &name,
                                           std::vector<int64_t> devices) {
  std::lock_guard lock(mutex);
  std::shared_ptr<NcclGroup> &group = groups[key];
  if (!group)
    group =
        std::make_shared<NcclGroup>(*this, std::get<NcclGroup::Use>(key), name, std::move(devices));
  return group;
}

MaybeError NcclWorld::connect() {
  std::lock_guard one(connecting);
  std::vector<std::shared_ptr<NcclGroup>> added;
  {
    std::lock_guard lock(mutex);
    if (aborted)
      return *aborted;
    for (const auto &[key, group] : groups)
      if (!group->isConnected())
        added.push_back(group);
  }
  Expected<std::vector<ncclUniqueId>> ids = shareIds(added);
  if (!ids)
    return ids.error();
  for (size_t i = 0; i < added.size(); ++i) {
    if (MaybeError error = added[i]->connect((*ids)[i]))
      return error;
    if (added[i]->getUse() == NcclGroup::Use::Messages)
      newPairs.push_back(added[i]);
  }
  return std::nullopt;
}

MaybeError NcclWorld::connectPairs() {
  std::lock_guard one(connecting);
  for (const std::shared_ptr<NcclGroup> &pair : std::exchange(newPairs, {}))
    if (MaybeError error = pair->connectPair()) {
      pair->abort();
      return error;
    }
  return std::nullopt;
}

Expected<std::vector<ncclUniqueId>>
NcclWorld::shareIds(const std::vector<std::shared_ptr<NcclGroup>> &added) {
  /// The message of one process to another for a group. Both have the same groups in the same
  /// order.
  struct Sent {
    ncclUniqueId id;
    std::array<char, 128> group; // as much of its name as fits
  };
  std::vector<Sent> sent(added.size());
  auto nameOf = [&](size_t i) {
    std::array<char, 128> name{};
    added[i]->getName().copy(name.data(), name.size());
    return name;
  };
  auto processOf = [&](int64_t device) { return processOfDevice[static_cast<size_t>(device)]; };
  std::unique_ptr<MessageBatch> batch = messages ? messages->openBatch() : nullptr;
  for (size_t i = 0; i < added.size(); ++i) {
    std::set<int64_t> others;
    for (int64_t device : added[i]->getDevices())
      if (!isHere(device))
        others.insert(processOf(device));
    int64_t first = added[i]->getDevices().front();
    MessagePart part{reinterpret_cast<std::byte *>(&sent[i]), sizeof(Sent)};
    if (!isHere(first)) {
      if (MaybeError error = batch->receive(processOf(first), kIdTag, {&part, 1}))
        return *error;
      continue;
    }
    if (ncclResult_t result = nccl.getUniqueId(&sent[i].id); result != ncclSuccess)
      return Error{fmt::format("NCCL cannot make an id for {}: {}; NCCL_DEBUG=WARN prints more",
                               added[i]->getName(), nccl.getErrorString(result))};
    sent[i].group = nameOf(i);
    for (int64_t process : others)
      if (MaybeError error = batch->send(process, kIdTag, {&part, 1}))
        return *error;
  }
  if (batch)
    if (MaybeError error = batch->wait())
      return *error;
  std::vector<ncclUniqueId> ids;
  for (size_t i = 0; i < added.size(); ++i) {
    if (sent[i].group != nameOf(i))
      return Error{fmt::format("process {} connects another group than process {}, where {} is "
                               "next",
                               processOf(added[i]->getDevices().front()), messages->process(),
                               added[i]->getName())};
    ids.push_back(sent[i].id);
  }
  return ids;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void NcclWorld::watch(const std::shared_ptr<QueueFailure> &queue) {
  std::lock_guard lock(mutex);
  if (aborted)
    (void)queue->set(*aborted);
  if (std::find(queues.begin(), queues.end(), queue) == queues.end())
    queues.push_back(queue);
}

void NcclWorld::add(AbortListener &listener) {
  std::lock_guard lock(mutex);
  listeners.push_back(&listener);
}

void NcclWorld::remove(AbortListener &listener) {
  std::lock_guard lock(mutex);
  std::erase(listeners, &listener);
}

void NcclWorld::abort(const Error &reason) {
  if (messages) // which tell this process too, of several reasons the first
    messages->abort(reason);
  MaybeError first = messages ? messages->failure() : std::nullopt;
  abortHere(first ? *first : reason);
}

void NcclWorld::abortHere(const Error &reason) {
  {
    std::lock_guard lock(mutex);
    if (aborted)
      return;
    aborted = reason.inContext("another device failed");
    for (AbortListener *listener : listeners)
      listener->aborted(*aborted);
    // Before the communicators, so that nobody takes what they leave for a result.
    for (const std::shared_ptr<QueueFailure> &queue : queues)
      (void)queue->set(*aborted);
  }
  ends.notify_all();
}

MaybeError NcclWorld::failure() const {
  std::lock_guard lock(mutex);
  return aborted;
}

void NcclWorld::lookForErrors() {
  constexpr auto pause = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex);
  while (!ends.wait_for(lock, pause, [&] { return isEnding || aborted; })) {
    std::vector<std::shared_ptr<NcclGroup>> now = allGroups();
    lock.unlock();
    for (const std::shared_ptr<NcclGroup> &group : now)
      if (MaybeError error = group->findAsyncError()) {
        abort(*error);
        break;
      }
    now.clear();
    lock.lock();
  }
  if (!aborted)
    return;
  std::vector<std::shared_ptr<NcclGroup>> ended = allGroups();
  lock.unlock();
  // Each call tells the kernels of its communicator to end, and the end of the group waits for
  // them: a kernel may be behind one of another communicator in the same queue.
  (void)nccl.groupStart();
  for (const std::shared_ptr<NcclGroup> &group : ended)
    group->abort();
  (void)nccl.groupEnd();
}

std::vector<std::shared_ptr<NcclGroup>> NcclWorld::allGroups() const {
  std::vector<std::shared_ptr<NcclGroup>> all;
  for (const auto &[key, group] : groups)
    all.push_back(group);
  return all;
}

} // namespace dtc::runtime::nccl
