//===- ChunkEmission.cpp - The ops of chunks ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/ChunkEmission.h"

#include "dialects/dist/ChunkAttribute.h"
#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

using namespace mlir;
using namespace dtc;

ChunkEmission::ChunkEmission(const ChunkedChain &chain, const KnownChunks &known)
    : chain(chain), known(known), builder(chain.ops().front()->getContext()), ops(chain.ops()) {
  builder.setInsertionPointToEnd(&block);
  findPhases();
  int64_t numChunks = chain.numChunks();
  for (int64_t step = 0; step < numChunks + numPhases - 1; ++step)
    for (unsigned phase = 0; phase < numPhases; ++phase) {
      int64_t chunk = step - phase;
      if (chunk < 0 || chunk >= numChunks)
        continue;
      for (Operation *op : ops)
        if (phases.lookup(op) == phase)
          emitOp(op, chunk);
    }
  joinResults();
}

/// The phase in which the op has its operands.
unsigned ChunkEmission::firstPhase(Operation *op) const {
  unsigned phase = 0;
  for (Value operand : op->getOperands())
    if (Operation *definer = operand.getDefiningOp(); chain.contains(definer))
      phase = std::max(phase, phases.lookup(definer) + movesChunks(definer));
    else if (chain.isCopied(definer))
      phase = std::max(phase, firstPhase(definer));
  return phase;
}

void ChunkEmission::findPhases() {
  for (Operation *op : ops) {
    unsigned phase = phases[op] = firstPhase(op);
    numPhases = std::max(numPhases, phase + 1);
  }
}

Value ChunkEmission::chunkOf(Value value, ChunkDim dim, int64_t chunk) {
  if (chain.hasKnownChunks(value, dim))
    return known.joined.find(value)->second.chunks[chunk];
  Value &local = chunks[{value, chunk}];
  if (local)
    return local;
  if (Operation *definer = value.getDefiningOp(); chain.isCopied(definer)) {
    emitOp(definer, chunk);
    return chunks.lookup({value, chunk});
  }
  ChunkPart part = chunkPart(chain.size(), chain.numChunks(), chunk);
  return local = sliceChunk(builder, value.getLoc(), value, dim, part);
}

void ChunkEmission::emitOp(Operation *op, int64_t chunk) {
  const CarriedDims &dims = chain.dimsOf(op);
  ChunkPart part = chunkPart(chain.size(), chain.numChunks(), chunk);
  SmallVector<Value> operands;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), dims.operands))
    operands.push_back(dim ? chunkOf(operand, *dim, chunk) : operand);
  SmallVector<Type> types;
  for (auto [type, dim] : llvm::zip_equal(op->getResultTypes(), dims.results))
    types.push_back(dim ? Type(chunkType(type, *dim, part.size)) : type);
  Operation *local;
  if (movesChunks(op)) {
    local = cloneWithTypes(builder, op, operands, types);
    local->setAttr(dist::kChunkAttrName, builder.getI64IntegerAttr(chunk));
  } else {
    local = cast<ShardingRuleOpInterface>(op).buildLocal(builder, operands, types);
  }
  if (!dims.isCarried())
    sumOps.insert(local);
  for (auto [from, to, dim] : llvm::zip_equal(op->getResults(), local->getResults(), dims.results))
    if (dim)
      chunks[{from, chunk}] = to;
    else
      addSum(from, to);
}

void ChunkEmission::addSum(Value value, Value part) {
  Value &sum = sums[value];
  sum = sum ? Value(AddOp::create(builder, value.getLoc(), sum, part)) : part;
  if (sum != part)
    sumOps.insert(sum.getDefiningOp());
}

void ChunkEmission::joinResults() {
  for (Operation *op : ops)
    for (auto [result, dim] : llvm::zip_equal(op->getResults(), chain.dimsOf(op).results)) {
      if (!dim || !chain.isUsedOutside(result))
        continue;
      SmallVector<Value> parts;
      for (int64_t chunk = 0; chunk < chain.numChunks(); ++chunk)
        parts.push_back(chunks.lookup({result, chunk}));
      Operation *last = &block.back();
      joined[result] = joinChunks(builder, result.getLoc(), parts, *dim);
      bool isInside = !movesChunks(op) && llvm::all_of(result.getUses(), [&](OpOperand &use) {
        if (chain.contains(use.getOwner()))
          return true;
        auto dims = carriedDims(use.getOwner(), *dim, /*ofResult=*/false, use.getOperandNumber());
        return dims && dims->isCarried();
      });
      for (Operation *join = last->getNextNode(); join; join = join->getNextNode()) {
        joins.insert(join);
        if (isInside)
          uncounted.insert(join);
      }
    }
}

SmallVector<Operation *> ChunkEmission::countedOps() {
  SmallVector<Operation *> counted;
  for (Operation &op : block)
    if (!uncounted.contains(&op))
      counted.push_back(&op);
  return counted;
}

void ChunkEmission::replaceChain(KnownChunks &known) {
  Operation *first = ops.front(), *last = ops.back();
  // Ops that do not depend on the chain come before it, so that the chunks find all their operands.
  llvm::DenseSet<Operation *> dependent;
  for (Operation &op :
       llvm::make_early_inc_range(llvm::make_range(first->getIterator(), last->getIterator()))) {
    bool depends = chain.contains(&op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        depends |= dependent.contains(operand.getDefiningOp());
    });
    if (depends)
      dependent.insert(&op);
    else
      op.moveBefore(first);
  }
  for (Operation &op : block)
    known.emitted.insert(&op);
  known.joins.insert(joins.begin(), joins.end());
  first->getBlock()->getOperations().splice(first->getIterator(), block.getOperations());
  for (Operation *op : ops)
    for (auto [result, dim] : llvm::zip_equal(op->getResults(), chain.dimsOf(op).results)) {
      Value replacement = dim ? joined.lookup(result) : sums.lookup(result);
      if (!replacement)
        continue;
      result.replaceUsesWithIf(replacement,
                               [&](OpOperand &use) { return !chain.contains(use.getOwner()); });
      if (!dim)
        continue;
      JoinedChunks &entry = known.joined[replacement];
      entry.dim = *dim;
      for (int64_t chunk = 0; chunk < chain.numChunks(); ++chunk)
        entry.chunks.push_back(chunks.lookup({result, chunk}));
    }
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}
