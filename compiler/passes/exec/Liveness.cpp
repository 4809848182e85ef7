//===- Liveness.cpp - Live ranges of buffers ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/Liveness.h"

#include "compiler/passes/exec/ClosingReductions.h"

#include "plan/KernelTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace dtc;

void Liveness::findRuns() {
  llvm::StringMap<exec::TaskOp> byName;
  for (auto task : program.getOps<exec::TaskOp>())
    byName[task.getSymName()] = task;
  microbatches = exec::countMicrobatches(program);
  llvm::StringMap<size_t> indexOf;
  for (auto [number, run] : llvm::enumerate(program.getOps<exec::RunOp>())) {
    auto [it, fresh] = indexOf.try_emplace(run.getTask(), tasks.size());
    if (fresh)
      tasks.push_back({byName.lookup(run.getTask()), int(number)});
    TaskRuns &task = tasks[it->second];
    task.last = number;
    task.all.push_back({number, run.getMicrobatch()});
  }
}

/// A microbatch's value is there from the first run of one of the tasks for it to the last.
SlotUsers Liveness::describeUsers(const std::vector<unsigned> &users) const {
  SlotUsers result{users, -1, 0, std::vector<SlotInterval>(microbatches)};
  for (unsigned index : users) {
    exec::TaskOp task = tasks[index].task;
    if (auto pass = task.getPass())
      result.stagePasses |= 1u << unsigned(*pass);
    if (auto stage = task.getStage())
      result.stage = result.stage < 0 ? int64_t(*stage) : std::min(result.stage, int64_t(*stage));
    for (auto [number, microbatch] : tasks[index].all) {
      SlotInterval &interval = result.intervals[microbatch];
      interval = interval.isEmpty() ? SlotInterval{number, number}
                                    : SlotInterval{std::min(interval.first, number),
                                                   std::max(interval.last, number)};
    }
  }
  return result;
}

void Liveness::noteUser(Operation &op, Operation *user, const exec::Accesses &used, int now) {
  bool isOfLane = isa<exec::CollectiveOp>(user);
  if (user != &op && isOfLane)
    return; // a wait
  for (Value buffer : llvm::concat<const Value>(used.reads, used.writes))
    lastUser[exec::getRoot(buffer)] = {user, now};
  if (isOfLane && exec::tokenOf(user) && closing.contains(user))
    for (Value buffer : used.writes)
      madeOnLane.insert({exec::getRoot(buffer), {user, now}});
}

int Liveness::findUses() {
  for (auto buffer : program.getOps<exec::BufferOp>())
    uses[buffer] = Use();
  closing = findClosing(program);
  int now = 0;
  for (auto [index, runs] : llvm::enumerate(tasks)) {
    runs.begin = now;
    for (Operation &op : runs.task.getBody().front()) {
      // A collective that overlaps with kernels uses its buffers until it is waited for.
      Operation *user = &op;
      if (auto wait = dyn_cast<exec::WaitOp>(op))
        user = wait.getToken().getDefiningOp();
      exec::Accesses used = accesses.of(user);
      for (Value buffer : llvm::concat<Value>(used.reads, used.writes)) {
        Operation *root = exec::getRoot(buffer);
        uses[root].extend(now, now);
        auto &users = usersOf[root];
        if (users.empty() || users.back() != index)
          users.push_back(index);
      }
      // The running sum is there from one microbatch to the next.
      if (auto kernel = dyn_cast<exec::KernelOp>(op); kernel && readsOwnOutput(kernel.getKernel()))
        sums.insert(exec::getRoot(kernel.getOutputs()[0]));
      if (closing.contains(&op))
        for (Value buffer : used.writes)
          madeOnce.try_emplace(exec::getRoot(buffer), index);
      noteUser(op, user, used, now);
      ++now;
    }
    runs.end = now - 1;
  }
  // The caller writes inputs before the first task.
  for (auto input : program.getOps<exec::InputOp>()) {
    uses[exec::getRoot(input.getBuffer())].extend(0, 0);
    inputs.insert(exec::getRoot(input.getBuffer()));
  }
  return now;
}

void Liveness::extendOverTurns() {
  for (size_t first = 0; first < tasks.size();) {
    size_t last = first;
    int until = tasks[first].last;
    while (last + 1 < tasks.size() && tasks[last + 1].first < until)
      until = std::max(until, tasks[++last].last);
    if (last > first || tasks[first].all.size() > 1) {
      int begin = tasks[first].begin, end = tasks[last].end;
      for (auto &[root, use] : uses) {
        bool isLocal =
            usersOf.lookup(root).size() == 1 && !sums.contains(root) && !inputs.contains(root);
        if (use.last < begin || use.first > end || isLocal)
          continue;
        if (auto made = madeOnce.find(root); made != madeOnce.end() && !sums.contains(root))
          extendToLaterTasks(use, made->second);
        else
          use.extend(begin, end);
      }
    }
    first = last + 1;
  }
}

void Liveness::extendToLaterTasks(Use &use, size_t maker) {
  for (const TaskRuns &other : tasks)
    if (other.last > tasks[maker].last && other.begin <= use.last)
      use.extend(other.begin, std::min(other.end, use.last));
}

void Liveness::extendOverRepetitions() {
  llvm::StringSet<> repeated;
  for (auto run : program.getOps<exec::RunOp>())
    if (run.getInLoop())
      repeated.insert(run.getTask());
  Use loop;
  for (TaskRuns &runs : tasks)
    if (repeated.contains(runs.task.getSymName()))
      loop.extend(runs.begin, runs.end);
  for (auto &[root, use] : uses) {
    bool overlaps = use.last >= loop.first && use.first <= loop.last;
    bool isKept = overlaps && (sums.contains(root) || use.first < loop.first);
    // The caller writes an input before each run, also one that nothing reads.
    if (loop.last >= loop.first && (isKept || inputs.contains(root)))
      use.extend(loop.first, loop.last);
  }
}

/// The bytes of one copy of a buffer, as the arena places it.
static int64_t bytesOf(Operation *root) {
  return int64_t(llvm::alignTo(exec::getNumBytes(cast<MemRefType>(root->getResult(0).getType())),
                               exec::kBufferAlignment));
}

/// The lane of collectives runs them in order: one may write what an earlier one of the lane has
/// read, whether the device has waited for that or not.
void Liveness::giveBytesOfSums() {
  if (madeOnLane.empty())
    return;
  llvm::DenseSet<Operation *> bound; // to what is there before or after the step
  for (auto output : program.getOps<exec::OutputOp>())
    bound.insert(exec::getRoot(output.getBuffer()));
  for (auto state : program.getOps<exec::StateOp>())
    bound.insert(exec::getRoot(state.getBuffer()));
  for (auto update : program.getOps<exec::UpdateOp>())
    bound.insert(exec::getRoot(update.getBuffer()));
  Operation *task = madeOnLane.begin()->second.first->getParentOp();
  auto isPlain = [&](Operation *root, Operation *user) {
    return user->getParentOp() == task && !bound.contains(root) && !inputs.contains(root) &&
           !exec::isOnHost(root->getResult(0)) && !cast<exec::BufferOp>(root).getSlots();
  };
  std::vector<FreedSum> freed;
  for (auto &[root, use] : uses) {
    if (!sums.contains(root))
      continue;
    auto [user, point] = lastUser.lookup(root);
    bool isOfHost = isa<exec::KernelOp>(user) && exec::tokenOf(user);
    if (closing.contains(user) && !isOfHost && isPlain(root, user))
      freed.push_back({root, bytesOf(root), point});
  }
  llvm::stable_sort(freed, [](const FreedSum &a, const FreedSum &b) { return a.last < b.last; });
  std::vector<LateValue> values;
  for (auto &[root, maker] : madeOnLane)
    if (!sums.contains(root) && isPlain(root, maker.first) && uses[root].first == maker.second)
      values.push_back({root, bytesOf(root), maker.second});
  for (auto &[root, place] : placeInSums(freed, values)) {
    uses[place.buffer].extend(uses[root].first, uses[root].last);
    shared[root] = place;
  }
}

void Liveness::giveSlots() {
  std::map<std::vector<unsigned>, size_t> numbers; // of users
  std::vector<SlotUsers> users;
  std::vector<SlottedBuffer> slotted;
  for (auto &[root, use] : uses) {
    auto buffer = cast<exec::BufferOp>(root);
    if (!buffer.getSlots())
      continue;
    auto &own = usersOf[root];
    auto [it, fresh] =
        numbers.try_emplace(std::vector<unsigned>(own.begin(), own.end()), users.size());
    if (fresh)
      users.push_back(describeUsers(it->first));
    slotted.push_back({buffer, bytesOf(root), use.first, use.last, it->second});
  }
  for (auto [buffer, place] : assignSlots(slotted, users))
    shared[buffer] = {place, 0};
}

llvm::MapVector<Operation *, LiveRange> Liveness::compute() {
  findRuns();
  int end = std::max(findUses() - 1, 0);
  extendOverTurns();
  extendOverRepetitions();
  for (auto state : program.getOps<exec::StateOp>())
    uses[exec::getRoot(state.getBuffer())].extend(0, end);
  for (auto output : program.getOps<exec::OutputOp>())
    uses[exec::getRoot(output.getBuffer())].extend(end, end);
  for (auto &[root, use] : uses)
    if (use.last < 0)
      use = {0, 0};
  giveSlots();
  giveBytesOfSums();

  llvm::MapVector<Operation *, LiveRange> liveRanges;
  for (auto &[root, use] : uses)
    if (!shared.contains(root)) {
      int64_t copies = cast<exec::BufferOp>(root).getSlots().value_or(1);
      liveRanges[root] = {bytesOf(root) * copies, use.first, use.last};
    }
  return liveRanges;
}

Operation *Liveness::instructionAt(int point) const {
  for (const TaskRuns &runs : tasks)
    if (runs.begin <= point && point <= runs.end)
      return &*std::next(runs.task->getRegion(0).front().begin(), point - runs.begin);
  return nullptr;
}
