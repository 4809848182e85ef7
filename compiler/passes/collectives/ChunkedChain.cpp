//===- ChunkedChain.cpp - Chains of ops that are computed in chunks -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/ChunkedChain.h"

#include "compiler/analysis/LocalCost.h"
#include "dialects/dist/DistScaledOps.h"
#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dtc;

/// The number of ops after the first collective that a chain leads to among which others are
/// searched: the gradients of rows and of their weights travel in two.
static constexpr unsigned kSearchedAfterEnd = 32;

/// The most ops before a collective that a chain takes up to the last products.
static constexpr unsigned kMostBeforeEnd = 16;

/// An op is computed again for each chunk if its operands have at most this part of the bytes of
/// its results, as those of a broadcast do.
static constexpr int64_t kSmallOperands = 4;

/// Whether both are collectives over the same axes.
static bool haveSameAxes(Operation *a, Operation *b) {
  return cast<dist::CollectiveOpInterface>(a).getAxes() ==
         cast<dist::CollectiveOpInterface>(b).getAxes();
}

bool dtc::feedsProducts(Operation *op) {
  llvm::SetVector<Operation *> after;
  after.insert(op);
  for (size_t i = 0; i < after.size() && i < kSearchedChainOps; ++i)
    for (Operation *user : after[i]->getUsers()) {
      // A value that a fragment yields goes on to another fragment.
      if (isMatrixProduct(user) || (user->hasTrait<mlir::OpTrait::IsTerminator>() &&
                                    isa<dist::FragmentOp>(user->getParentOp())))
        return true;
      if (user->getBlock() == op->getBlock())
        after.insert(user);
    }
  return false;
}

bool dtc::movesComputed(Operation *collective) {
  llvm::SetVector<Operation *> before;
  before.insert(collective);
  for (size_t i = 0; i < before.size() && i < kSearchedChainOps; ++i)
    for (Value operand : before[i]->getOperands()) {
      Operation *definer = operand.getDefiningOp();
      if (!definer || definer->getBlock() != collective->getBlock())
        continue;
      if (definer->getNumOperands() > 1)
        return true;
      before.insert(definer);
    }
  return false;
}

static void forEachNestedOperand(Operation &op, llvm::function_ref<void(Value)> visit) {
  op.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
}

SmallVector<Operation *> ChunkedChain::ops() const {
  SmallVector<Operation *> sorted = llvm::to_vector(llvm::make_first_range(members));
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

const CarriedDims &ChunkedChain::dimsOf(Operation *op) const {
  auto it = members.find(op);
  return it != members.end() ? it->second : copies.find(op)->second;
}

std::optional<ChunkDim> ChunkedChain::dimOf(Value value) const {
  auto it = members.find(value.getDefiningOp());
  if (!value.getDefiningOp() || it == members.end())
    return std::nullopt;
  return it->second.results[cast<OpResult>(value).getResultNumber()];
}

bool ChunkedChain::hasKnownChunks(Value value, ChunkDim dim) const {
  auto it = known->joined.find(value);
  return it != known->joined.end() && it->second.dim == dim &&
         int64_t(it->second.chunks.size()) == chunks &&
         blockSize(value.getType(), dim) == blockElements;
}

bool ChunkedChain::isUsedOutside(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return !contains(user); });
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

bool ChunkedChain::fitsGpus(Operation *op, const CarriedDims &dims) const {
  auto product = dyn_cast<dist::ScaledProductOp>(op);
  if (!product)
    return true;
  auto equation = EinsumEquation::parse(product.getEquation());
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int64_t elements = chunkPart(blockElements, chunks, chunk).size;
    auto typeOf = [&](unsigned operand) {
      Type whole = op->getOperand(operand).getType();
      const std::optional<ChunkDim> &dim = dims.operands[operand];
      return dim ? chunkType(whole, *dim, elements) : cast<RankedTensorType>(whole);
    };
    if (dist::findOddSize(*equation, typeOf(0).getShape(), typeOf(1).getShape()))
      return false;
  }
  return true;
}

bool ChunkedChain::add(Operation *op, const std::optional<CarriedDims> &dims) {
  if (!dims || members.contains(op) || known->emitted.contains(op) || !fitsGpus(op, *dims))
    return false;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), dims->operands))
    if (contains(operand.getDefiningOp()) && dimOf(operand) != dim)
      return false;
  for (auto [result, dim] : llvm::zip_equal(op->getResults(), dims->results)) {
    Type element = getElementTypeOrSelf(result.getType());
    if (!dim && !(dims->sums && (element.isF32() || element.isF64())))
      return false;
    for (OpOperand &use : result.getUses())
      if (auto it = members.find(use.getOwner());
          it != members.end() && it->second.operands[use.getOperandNumber()] != dim)
        return false;
  }
  members.insert({op, *dims});
  return true;
}

std::optional<CarriedDims> ChunkedChain::dimsOfUser(Operation *user) const {
  for (OpOperand &operand : user->getOpOperands())
    if (std::optional<ChunkDim> dim = dimOf(operand.get()))
      return carriedDims(user, *dim, /*ofResult=*/false, operand.getOperandNumber());
  return std::nullopt;
}

void ChunkedChain::keepAncestorsOf(ArrayRef<Operation *> ends) {
  llvm::SetVector<Operation *> kept(ends.begin(), ends.end());
  for (size_t i = 0; i < kept.size(); ++i)
    for (Value operand : kept[i]->getOperands())
      if (contains(operand.getDefiningOp()))
        kept.insert(operand.getDefiningOp());
  members.remove_if([&](const auto &entry) { return !kept.contains(entry.first); });
}

SmallVector<Operation *> ChunkedChain::firstProducts() const {
  llvm::DenseSet<Operation *> afterProduct;
  SmallVector<Operation *> first;
  for (Operation *op : ops()) {
    bool after = llvm::any_of(op->getOperands(), [&](Value operand) {
      return afterProduct.contains(operand.getDefiningOp());
    });
    if (!after && isMatrixProduct(op) && feedsProducts(op))
      first.push_back(op);
    if (after || isMatrixProduct(op))
      afterProduct.insert(op);
  }
  return first;
}

bool ChunkedChain::hasProducts() const {
  return llvm::any_of(llvm::make_first_range(members), isMatrixProduct);
}

bool ChunkedChain::isConvex() const {
  SmallVector<Operation *> sorted = ops();
  llvm::DenseSet<Operation *> dependent;
  unsigned left = 4 * kSearchedChainOps;
  for (Operation &op :
       llvm::make_range(sorted.front()->getIterator(), sorted.back()->getIterator())) {
    if (left-- == 0)
      return false;
    if (contains(&op))
      continue;
    // A copied op depends on no more than its chunks do.
    forEachNestedOperand(op, [&](Value operand) {
      Operation *definer = operand.getDefiningOp();
      bool isCut = isCopied(&op) && dimOf(operand);
      if (dependent.contains(definer) || (contains(definer) && !isCut))
        dependent.insert(&op);
    });
  }
  return llvm::none_of(sorted, [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      // A sum over the factor is complete after the last chunk.
      return dependent.contains(operand.getDefiningOp()) ||
             (contains(operand.getDefiningOp()) && !dimOf(operand));
    });
  });
}

bool ChunkedChain::addConvex(Operation *op, const std::optional<CarriedDims> &dims) {
  if (!add(op, dims))
    return false;
  if (isConvex())
    return true;
  members.erase(op);
  return false;
}

//===----------------------------------------------------------------------===//
// From and to collectives
//===----------------------------------------------------------------------===//

/// Whether the layers before or after need what the collective makes of all chunks, by way of an op
/// that is not in the chain: they would wait for the last chunk as for the whole.
bool ChunkedChain::isAwaitedOutside(Operation *collective) const {
  return llvm::any_of(collective->getUsers(),
                      [&](Operation *user) { return !contains(user) && feedsProducts(user); });
}

bool ChunkedChain::growFrom(Operation *collective, ChunkDim dim) {
  seed = collective;
  blockElements = blockSize(collective->getOperand(0).getType(), dim);
  if (!add(collective, carriedDims(collective, dim, /*ofResult=*/false, 0)))
    return false;
  llvm::DenseSet<Operation *> dependent;
  SmallVector<Operation *> lastOps;
  unsigned left = kSearchedChainOps;
  for (Operation *op = collective->getNextNode(); op && left > 0; op = op->getNextNode(), --left) {
    bool uses = false, depends = false;
    forEachNestedOperand(*op, [&](Value operand) {
      Operation *definer = operand.getDefiningOp();
      depends |= dependent.contains(definer) || llvm::is_contained(lastOps, definer) ||
                 (contains(definer) && !dimOf(operand));
      uses |= contains(definer);
    });
    if (!uses && !depends)
      continue;
    std::optional<CarriedDims> dims;
    if (!depends && op->getNumRegions() == 0)
      dims = dimsOfUser(op);
    // Nothing waits for sums of the gradients of weights, which end no chain.
    bool mayEnd = !movesChunks(op) || (haveSameAxes(collective, op) && feedsProducts(op));
    if (!dims || !dims->isCarried() || !mayEnd || !add(op, dims)) {
      dependent.insert(op);
    } else if (movesChunks(op)) {
      lastOps.push_back(op);
      left = std::min(left, kSearchedAfterEnd);
    }
  }
  keepAncestorsOf(lastOps.empty() ? firstProducts() : lastOps);
  return hasProducts() && contains(collective) && isConvex() && !isAwaitedOutside(collective);
}

bool ChunkedChain::growTo(Operation *collective, ChunkDim dim) {
  seed = collective;
  blockElements = blockSize(collective->getOperand(0).getType(), dim);
  if (!add(collective, carriedDims(collective, dim, /*ofResult=*/false, 0)))
    return false;
  SmallVector<Operation *> worklist{collective};
  while (!worklist.empty() && members.size() <= kMostBeforeEnd) {
    Operation *op = worklist.pop_back_val();
    CarriedDims dims = dimsOf(op);
    for (auto [operand, operandDim] : llvm::zip_equal(op->getOperands(), dims.operands)) {
      Operation *definer = operand.getDefiningOp();
      if (!operandDim || !definer || definer->getBlock() != op->getBlock() ||
          movesChunks(definer) || hasKnownChunks(operand, *operandDim))
        continue;
      if (add(definer, carriedDims(definer, *operandDim, /*ofResult=*/true,
                                   cast<OpResult>(operand).getResultNumber())) &&
          !isMatrixProduct(definer))
        worklist.push_back(definer);
    }
  }
  return hasProducts() && isConvex();
}

//===----------------------------------------------------------------------===//
// Extensions
//===----------------------------------------------------------------------===//

/// The bytes that the op's operands with the factor have to be read and written for, to be cut.
int64_t ChunkedChain::cutBytes(Operation *op, const CarriedDims &dims) const {
  int64_t bytes = 0;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), dims.operands))
    if (dim && !contains(operand.getDefiningOp()) && !isCopied(operand.getDefiningOp()) &&
        !hasKnownChunks(operand, *dim))
      bytes += 2 * tensorBytes(operand.getType());
  return bytes;
}

/// The bytes for which memory is read and written to put the op's results together.
int64_t ChunkedChain::sumBytes(Operation *op, const CarriedDims &dims) const {
  int64_t bytes = 0;
  for (auto [result, dim] : llvm::zip_equal(op->getResults(), dims.results))
    bytes += (dim ? 2 : 3 * (chunks - 1)) * tensorBytes(result.getType());
  return bytes;
}

static int64_t bytesOfOperands(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += tensorBytes(type);
  return bytes;
}

/// Whether computing the op again costs next to nothing.
static bool isCheap(Operation *op, Value result) {
  return !movesChunks(op) && !isMatrixProduct(op) &&
         (op->hasTrait<dtc::OpTrait::IsView>() ||
          kSmallOperands * bytesOfOperands(op) <= tensorBytes(result.getType()));
}

bool ChunkedChain::extendUp() {
  SmallVector<Operation *> users = ops();
  llvm::append_range(users, llvm::make_first_range(copies));
  for (Operation *user : users) {
    CarriedDims dims = dimsOf(user);
    for (auto [operand, dim] : llvm::zip_equal(user->getOperands(), dims.operands)) {
      Operation *definer = operand.getDefiningOp();
      if (!dim || !definer || contains(definer) || isCopied(definer) ||
          definer->getBlock() != user->getBlock() || hasKnownChunks(operand, *dim))
        continue;
      auto carried =
          carriedDims(definer, *dim, /*ofResult=*/true, cast<OpResult>(operand).getResultNumber());
      if (!carried ||
          (movesChunks(definer) && !(haveSameAxes(definer, seed) && movesComputed(definer))))
        continue;
      bool isKept = isUsedOutside(operand);
      if (isKept && isCheap(definer, operand)) {
        copies.insert({definer, *carried});
        return true;
      }
      bool isBetter = movesChunks(definer) || (isMatrixProduct(definer) && movesChunks(user)) ||
                      (definer->getNumResults() == 1 &&
                       cutBytes(definer, *carried) < 2 * tensorBytes(operand.getType()));
      if ((!isKept || movesChunks(definer)) && isBetter && addConvex(definer, carried))
        return true;
    }
  }
  return false;
}

bool ChunkedChain::extendDown() {
  for (Operation *op : ops())
    for (auto [result, dim] : llvm::zip_equal(op->getResults(), CarriedDims(dimsOf(op)).results)) {
      if (!dim || result.use_empty())
        continue;
      Operation *user = *result.getUsers().begin();
      bool isOnly = llvm::all_of(result.getUsers(), [&](Operation *each) { return each == user; });
      if (!isOnly || contains(user) || user->getBlock() != op->getBlock() ||
          isMatrixProduct(user) || movesChunks(user))
        continue;
      std::optional<CarriedDims> dims = dimsOfUser(user);
      if (dims &&
          sumBytes(user, *dims) + cutBytes(user, *dims) < 2 * tensorBytes(result.getType()) &&
          addConvex(user, dims))
        return true;
    }
  return false;
}

/// Adds products that sum over the factor, such as gradients of weights, for values that nothing
/// else needs in one piece, where adding the sums of the chunks takes less than joining the value.
void ChunkedChain::addSums() {
  for (Operation *op : ops())
    for (auto [result, dim] : llvm::zip_equal(op->getResults(), CarriedDims(dimsOf(op)).results)) {
      if (!dim)
        continue;
      llvm::SmallSetVector<Operation *, 4> sums;
      int64_t bytes = 2 * tensorBytes(result.getType());
      bool all = true;
      for (Operation *user : result.getUsers()) {
        if (contains(user) || sums.contains(user))
          continue;
        std::optional<CarriedDims> dims;
        if (user->getBlock() == op->getBlock() && isMatrixProduct(user))
          dims = dimsOfUser(user);
        if (!dims || dims->isCarried()) {
          all = false;
          break;
        }
        sums.insert(user);
        bytes -= sumBytes(user, *dims) + cutBytes(user, *dims);
      }
      if (!all || bytes <= 0)
        continue;
      for (Operation *user : sums)
        addConvex(user, dimsOfUser(user));
    }
}

/// Cheap ops whose results other ops need too are computed for those as before: joining the chunks
/// would cost more.
void ChunkedChain::copyCheapOps() {
  for (Operation *op : ops())
    if (op->getNumResults() == 1 && isUsedOutside(op->getResult(0)) &&
        isCheap(op, op->getResult(0))) {
      copies.insert({op, dimsOf(op)});
      members.erase(op);
    }
}

void ChunkedChain::extend() {
  copyCheapOps();
  while (extendUp())
    ;
  while (extendDown())
    ;
  addSums();
}
