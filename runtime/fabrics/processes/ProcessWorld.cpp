//===- ProcessWorld.cpp - Common state of a process -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessWorld.h"

#include "runtime/fabrics/processes/Agreement.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// More than any program has.
static constexpr int64_t kMostLanes = 4;

MaybeError SharedGroup::run(size_t member, std::span<const CollectiveSpec> specs,
                            std::span<const CollectiveOperands> operands) {
  size_t members = localGroup.size();
  bool agree = localGroup.publish(member, {operands, fingerprintOf(specs)}, [&] {
    published.resize(members);
    for (size_t each = 0; each < members; ++each)
      published[each] = localGroup.slot(each).operands;
    failure = collective.run(specs, published);
  });
  if (!agree)
    return Error{std::string(name(specs.front().kind)) +
                 ": the members of the group called different collectives"};
  return failure;
}

ProcessWorld::ProcessWorld(Mesh theMesh, std::vector<int64_t> processes,
                           std::shared_ptr<Messages> theMessages, HostSharing sharing)
    : mesh(std::move(theMesh)), processOfDevice(std::move(processes)),
      messages(std::move(theMessages)), sharing(sharing),
      local(std::make_shared<LocalWorld>(mesh)) {
  for (int64_t device : ownDevices())
    transferResults.try_emplace(device);
  messages->onAbort([this](const Error &reason) { abortHere(reason); });
}

ProcessWorld::~ProcessWorld() { messages->onAbort(nullptr); }

std::vector<int64_t> ProcessWorld::ownDevices() const {
  std::vector<int64_t> own;
  for (int64_t device = 0; device < mesh.numDevices(); ++device)
    if (processOf(device) == messages->process())
      own.push_back(device);
  return own;
}

void ProcessWorld::abortHere(const Error &reason) {
  local->abort(reason);
  std::lock_guard lock(mutex);
  aborted = true;
  for (auto &[key, group] : groups)
    group->abort();
  for (auto &[device, results] : transferResults)
    results.abort(*local->failure());
}

MaybeError ProcessWorld::failure() const {
  MaybeError reason = messages->failure();
  return reason ? reason->inContext("another device failed") : reason;
}

//===----------------------------------------------------------------------===//
// Tags
//===----------------------------------------------------------------------===//

int64_t ProcessWorld::transferTag(int64_t from, int64_t to) const {
  return kAgreementTags + from * mesh.numDevices() + to;
}

static Error tooManyTags(const Mesh &mesh, const Messages &messages) {
  return Error{fmt::format("the network between processes tells apart {} kinds of messages, which "
                           "is too few for {} devices",
                           messages.largestTag(), mesh.numDevices())};
}

MaybeError ProcessWorld::checkTags() const {
  int64_t devices = mesh.numDevices();
  if (devices > messages->largestTag() / devices ||
      transferTag(devices, 0) > messages->largestTag())
    return tooManyTags(mesh, *messages);
  return std::nullopt;
}

Expected<std::shared_ptr<SharedGroup>>
ProcessWorld::openGroup(int64_t device, const std::vector<std::string> &axes, int64_t lane) {
  std::vector<int64_t> members = mesh.group(device, axes);
  std::lock_guard lock(mutex);
  int64_t axesNumber =
      axesNumbers.try_emplace(axes, static_cast<int64_t>(axesNumbers.size())).first->second;
  if (std::ranges::all_of(members,
                          [&](int64_t member) { return processOf(member) == messages->process(); }))
    return std::shared_ptr<SharedGroup>();
  int64_t tag = transferTag(mesh.numDevices(), 0) +
                (axesNumber * mesh.numDevices() + members.front()) * kMostLanes + lane;
  if (tag > messages->largestTag() || lane >= kMostLanes)
    return tooManyTags(mesh, *messages);
  std::shared_ptr<SharedGroup> &group = groups[{axes, members.front(), lane}];
  if (!group) {
    group = std::make_shared<SharedGroup>(
        *messages,
        ProcessGroup(
            members, [this](int64_t member) { return processOf(member); }, messages->process()),
        tag, sharing);
    if (aborted)
      group->abort();
  }
  return group;
}

} // namespace dtc::runtime
