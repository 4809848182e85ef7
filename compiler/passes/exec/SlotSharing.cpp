//===- SlotSharing.cpp - Stages of a device that share slots --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/SlotSharing.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <tuple>

using namespace mlir;
using namespace dtc;

namespace {

class Sharing {
public:
  Sharing(ArrayRef<SlottedBuffer> buffers, ArrayRef<SlotUsers> users)
      : buffers(buffers), users(users) {
    for (const SlotUsers &those : users) {
      inTurn.push_back(countSlotsInTurn(those.intervals));
      inUse.push_back(0);
      for (const SlotInterval &interval : those.intervals)
        inUse.back() += interval.last - interval.first + 1;
    }
  }

  llvm::DenseMap<Operation *, Operation *> run() {
    for (const SlottedBuffer &entry : buffers) {
      exec::BufferOp(entry.buffer).setSlots(inTurn[entry.users]);
      exec::BufferOp(entry.buffer).removeSlotMapAttr();
    }
    // Buffers that may share, by stage.
    using Key = std::tuple<bool, BufferKind, int64_t, int, int, unsigned>;
    std::map<Key, std::map<int64_t, std::vector<size_t>>> alike;
    for (auto [index, entry] : llvm::enumerate(buffers))
      if (int64_t stage = users[entry.users].stage; stage >= 0 && entry.stride > 0)
        alike[{exec::isOnHost(exec::BufferOp(entry.buffer)), exec::BufferOp(entry.buffer).getKind(),
               entry.stride, entry.first, entry.last, users[entry.users].stagePasses}][stage]
            .push_back(index);
    for (auto &[key, stages] : alike)
      group(stages);
    return std::move(firstOf);
  }

private:
  /// The n-th buffers of all stages make a group, where those that are in use longest come first.
  void group(std::map<int64_t, std::vector<size_t>> &stages) {
    size_t most = 0;
    for (auto &[stage, list] : stages) {
      llvm::stable_sort(list, [&](size_t a, size_t b) {
        return inUse[buffers[a].users] > inUse[buffers[b].users];
      });
      most = std::max(most, list.size());
    }
    for (size_t n = 0; n < most; ++n) {
      std::vector<size_t> members;
      std::vector<unsigned> tasks; // of the members
      for (auto &[stage, list] : stages) {
        if (n >= list.size())
          continue;
        // A task must not find two of its buffers in the same bytes, for whatever microbatches. One
        // that receives for several stages may use buffers of all of them.
        const std::vector<unsigned> &own = users[buffers[list[n]].users].tasks;
        if (llvm::any_of(own, [&](unsigned task) { return llvm::is_contained(tasks, task); }))
          continue;
        members.push_back(list[n]);
        llvm::append_range(tasks, own);
      }
      share(members);
    }
  }

  /// Lets the buffers share slots if that saves any.
  void share(ArrayRef<size_t> members) {
    std::vector<size_t> classes; // of users
    int64_t own = 0;
    for (size_t member : members) {
      classes.push_back(buffers[member].users);
      own += inTurn[buffers[member].users];
    }
    auto [it, fresh] = colorings.try_emplace(classes);
    if (fresh) {
      std::vector<SlotInterval> all;
      for (size_t number : classes)
        llvm::append_range(all, users[number].intervals);
      it->second = colorSlots(all);
    }
    const SlotColoring &coloring = it->second;
    if (coloring.slots >= own)
      return;
    size_t first = *llvm::min_element(members);
    ArrayRef<int64_t> slots = coloring.slotOf;
    for (size_t member : members) {
      exec::BufferOp buffer = buffers[member].buffer;
      size_t count = users[buffers[member].users].intervals.size();
      buffer.setSlots(coloring.slots);
      buffer.setSlotMap(slots.take_front(count));
      slots = slots.drop_front(count);
      if (member != first)
        firstOf[buffer] = exec::BufferOp(buffers[first].buffer);
    }
  }

  ArrayRef<SlottedBuffer> buffers;
  ArrayRef<SlotUsers> users;
  std::vector<int64_t> inTurn; ///< slots that buffers of those users need by themselves
  std::vector<int64_t> inUse;  ///< places at which these are in use, of all microbatches
  std::map<std::vector<size_t>, SlotColoring> colorings; ///< by the users of the members
  llvm::DenseMap<Operation *, Operation *> firstOf;
};

} // namespace

llvm::DenseMap<Operation *, Operation *> dtc::assignSlots(ArrayRef<SlottedBuffer> buffers,
                                                          ArrayRef<SlotUsers> users) {
  return Sharing(buffers, users).run();
}
