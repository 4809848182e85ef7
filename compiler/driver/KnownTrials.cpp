//===- KnownTrials.cpp - Results that the trials of a search share --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KnownTrials.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <utility>

using namespace mlir;
using namespace dtc;

namespace {
/// All that a function is but for its name: its ops with their locations and attributes, which a
/// context has once each, and which values they read.
class FunctionText {
public:
  explicit FunctionText(func::FuncOp function) {
    for (NamedAttribute attribute : function->getAttrs())
      if (attribute.getName() != function.getSymNameAttrName()) {
        add(attribute.getName().getAsOpaquePointer());
        add(attribute.getValue().getAsOpaquePointer());
      }
    addRegions(function);
  }

  llvm::XXH128_hash_t hash() const {
    return llvm::xxh3_128bits(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(words.data()),
                                             words.size() * sizeof(uintptr_t)));
  }

private:
  void add(const void *pointer) { words.push_back(uintptr_t(pointer)); }
  void add(size_t number) { words.push_back(number); }

  /// Numbers a value that the function makes.
  void define(Value value) {
    add(value.getType().getAsOpaquePointer());
    numbers.try_emplace(value, numbers.size());
  }

  void addOp(Operation &op) {
    add(op.getName().getAsOpaquePointer());
    add(op.getLoc().getAsOpaquePointer());
    add(op.getAttrDictionary().getAsOpaquePointer());
    add(op.getNumOperands());
    for (Value operand : op.getOperands())
      add(numbers.lookup(operand));
    add(op.getNumResults());
    addRegions(&op);
    for (Value result : op.getResults())
      define(result);
  }

  void addRegions(Operation *op) {
    add(op->getNumRegions());
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        add(block.getNumArguments());
        for (BlockArgument argument : block.getArguments())
          define(argument);
        for (Operation &inner : block)
          addOp(inner);
        add(size_t(0)); // no op has this name
      }
  }

  std::vector<uintptr_t> words;
  llvm::DenseMap<Value, size_t> numbers;
};
} // namespace

bool KnownTrials::isNew(int coordinate, int64_t bound, ArrayRef<int64_t> schedule) {
  const RecomputeChoice &choice = choices.at({coordinate, bound});
  std::vector<int64_t> words = {coordinate};
  words.insert(words.end(), choice.recompute.begin(), choice.recompute.end());
  words.insert(words.end(), schedule.begin(), schedule.end());
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::ArrayRef(
      reinterpret_cast<const uint8_t *>(words.data()), words.size() * sizeof(int64_t)));
  asked.emplace_back(hash.high64, hash.low64);
  return !arenasByChoice.contains(asked.back());
}

std::vector<std::optional<int64_t>> KnownTrials::eraseKnown(ModuleOp module) {
  std::vector<std::optional<int64_t>> known;
  left.clear();
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    llvm::XXH128_hash_t hash = FunctionText(function).hash();
    auto found = arenas.find({hash.high64, hash.low64});
    if (found != arenas.end()) {
      known.emplace_back(found->second);
      function.erase();
      continue;
    }
    known.emplace_back();
    left.emplace_back(hash.high64, hash.low64);
  }
  return known;
}

std::vector<int64_t> KnownTrials::complete(ArrayRef<std::optional<int64_t>> known,
                                           ArrayRef<int64_t> lowered) {
  for (auto [fingerprint, arena] : llvm::zip_equal(left, lowered))
    arenas[fingerprint] = arena;
  std::vector<int64_t> built;
  const int64_t *next = lowered.begin();
  for (std::optional<int64_t> arena : known)
    built.push_back(arena ? *arena : *next++);
  if (asked.empty())
    return built;
  std::vector<int64_t> all;
  auto nextBuilt = built.begin();
  for (const Fingerprint &fingerprint : std::exchange(asked, {})) {
    auto [entry, isNew] = arenasByChoice.try_emplace(fingerprint);
    if (isNew)
      entry->second = *nextBuilt++;
    all.push_back(entry->second);
  }
  return all;
}
