//===- ExpandRingAttention.cpp - Attention to keys that go round ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context"
// (arXiv:2310.01889), section 3. Each shard of keys and values passes all devices of a ring, while
// these work on the shard before. Gradients of keys and values travel with them, and at last home.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"

#include "compiler/analysis/DescribeLocation.h"
#include "dialects/dtc/DtcOps.h"
#include "support/SequenceOrder.h"
#include "support/ShardExtent.h"

#include <limits>

namespace dtc {
#define GEN_PASS_DEF_EXPANDRINGATTENTIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Replaces one op. OpT is AttentionOp or AttentionGradOp.
template <typename OpT> class RingExpansion {
public:
  RingExpansion(OpT op, const LinkedMesh &mesh)
      : op(op), builder(op), mesh(mesh), members(mesh.product(axisList())), shifts(findShifts()) {}

  void run();

private:
  AxisList axisList() {
    AxisList list;
    for (auto name : op.getSequenceAxes()->template getAsRange<StringAttr>())
      list.push_back(*mesh.find(name.getValue()));
    return list;
  }
  /// The shifts with which some query sees some key, in order; the first is 0.
  SmallVector<int64_t> findShifts();
  bool seesKeys(const SequenceOrder &queries, const SequenceOrder &keys, int64_t count);

  /// The value from the device whose number is `shift` less.
  Value permute(Value value, int64_t shift) {
    if (shift == 0)
      return value;
    Operation *moved =
        dist::PermuteOp::create(builder, op.getLoc(), value.getType(), value, mesh.name,
                                *op.getSequenceAxes(), *op.getSequenceAxes(), shift);
    moved->setAttr(dist::kReasonAttrName, reason);
    return place(moved);
  }
  /// Puts an op onto the stage of the one that it is made for.
  Value place(Operation *made) {
    if (Attribute stage = op->getAttr(dist::kStageAttrName))
      made->setAttr(dist::kStageAttrName, stage);
    return made->getResult(0);
  }
  Value convert(Value value, Type like) {
    return value.getType() == like ? value
                                   : place(ConvertOp::create(builder, op.getLoc(), like, value));
  }
  Value add(Value lhs, Value rhs) { return place(AddOp::create(builder, op.getLoc(), lhs, rhs)); }
  /// The op on the shard of keys and values with a shift.
  OpT createTile(Value k, Value v, int64_t shift);
  /// A shard is on its way while there is work on the one before.
  void expand();

  OpT op;
  OpBuilder builder;
  const LinkedMesh &mesh;
  int64_t members;
  SmallVector<int64_t> shifts;
  DictionaryAttr reason;
};

} // namespace

template <typename OpT>
bool RingExpansion<OpT>::seesKeys(const SequenceOrder &queries, const SequenceOrder &keys,
                                  int64_t count) {
  int64_t window =
      op.getWindow() ? static_cast<int64_t>(*op.getWindow()) : std::numeric_limits<int64_t>::max();
  for (int64_t i = 0, endOfRun; i < count; i = endOfRun) {
    endOfRun = queries.endOfRun(i, count);
    int64_t first = queries.at(i), last = queries.at(endOfRun - 1);
    for (int64_t j = 0, endOfKeys; j < count; j = endOfKeys) {
      endOfKeys = keys.endOfRun(j, count);
      if (keys.at(j) <= last && first - keys.at(endOfKeys - 1) < window)
        return true;
    }
  }
  return false;
}

template <typename OpT> SmallVector<int64_t> RingExpansion<OpT>::findShifts() {
  int64_t size = static_cast<int64_t>(*op.getSequence());
  int64_t parts = op.getZigzag() ? static_cast<int64_t>(*op.getZigzag()) : 0;
  int64_t count = op.getQ().getType().getDimSize(1);
  auto orderOf = [&](int64_t member) {
    ShardExtent block = ShardExtent::whole(size);
    int64_t below = members;
    for (unsigned axis : axisList()) {
      below /= mesh.axes[axis].size;
      block = block.part(mesh.axes[axis].size, member / below % mesh.axes[axis].size);
    }
    return SequenceOrder::of(block, size, parts);
  };
  SmallVector<int64_t> found;
  for (int64_t shift = 0; shift < members; ++shift) {
    bool isNeeded = shift == 0 || !op.getCausal();
    for (int64_t member = 0; member < members && !isNeeded; ++member)
      isNeeded = seesKeys(orderOf(member), orderOf((member + members - shift) % members), count);
    if (isNeeded)
      found.push_back(shift);
  }
  return found;
}

template <typename OpT> OpT RingExpansion<OpT>::createTile(Value k, Value v, int64_t shift) {
  auto tile = cast<OpT>(builder.clone(*op.getOperation()));
  tile.getKMutable().assign(k);
  tile.getVMutable().assign(v);
  tile.setKeyShift(shift);
  return tile;
}

template <> void RingExpansion<AttentionOp>::expand() {
  Type own = op.getOut().getType(), wide = getWideTensor(op.getOut().getType());
  Value k = op.getK(), v = op.getV(), out, lse;
  for (auto [i, shift] : llvm::enumerate(shifts)) {
    Value nextK, nextV;
    if (i + 1 < shifts.size()) {
      nextK = permute(k, shifts[i + 1] - shift);
      nextV = permute(v, shifts[i + 1] - shift);
    }
    AttentionOp tile = createTile(k, v, shift);
    if (i == 0) {
      out = convert(tile.getOut(), wide);
      lse = tile.getLse();
    } else {
      auto merged =
          MergeAttentionOp::create(builder, op.getLoc(), out, lse, tile.getOut(), tile.getLse());
      out = place(merged);
      lse = merged.getMergedLse();
    }
    k = nextK;
    v = nextV;
  }
  op.getOut().replaceAllUsesWith(convert(out, own));
  op.getLse().replaceAllUsesWith(lse);
}

template <> void RingExpansion<AttentionGradOp>::expand() {
  Type own = op.getDq().getType(), wide = getWideTensor(op.getDq().getType());
  Value k = op.getK(), v = op.getV(), dq, dk, dv;
  for (auto [i, shift] : llvm::enumerate(shifts)) {
    Value nextK, nextV;
    if (i + 1 < shifts.size()) {
      nextK = permute(k, shifts[i + 1] - shift);
      nextV = permute(v, shifts[i + 1] - shift);
    }
    if (i > 0) {
      dk = permute(dk, shift - shifts[i - 1]);
      dv = permute(dv, shift - shifts[i - 1]);
    }
    AttentionGradOp tile = createTile(k, v, shift);
    Value more = convert(tile.getDq(), wide);
    dq = i == 0 ? more : add(dq, more);
    dk = i == 0 ? tile.getDk() : add(dk, tile.getDk());
    dv = i == 0 ? tile.getDv() : add(dv, tile.getDv());
    k = nextK;
    v = nextV;
  }
  int64_t home = (members - shifts.back()) % members;
  op.getDq().replaceAllUsesWith(convert(dq, own));
  op.getDk().replaceAllUsesWith(permute(dk, home));
  op.getDv().replaceAllUsesWith(permute(dv, home));
}

template <typename OpT> void RingExpansion<OpT>::run() {
  std::string axes = mesh.str(axisList());
  auto text = [&](StringRef key, const std::string &value) {
    return builder.getNamedAttr(key, builder.getStringAttr(value));
  };
  bool isGradient = std::is_same_v<OpT, AttentionGradOp>;
  reason = builder.getDictionaryAttr(
      {text("value", isGradient ? "a shard of keys, values or their gradients, on its way round"
                                : "a shard of keys or values, on its way round"),
       text("from", "the device before along " + axes), text("to", "the next one"),
       text("consumer",
            (op->getName().getStringRef() + " in " + describeLocation(op.getLoc())).str()),
       text("remedy", "")});
  expand();
  op.erase();
}

namespace {

class ExpandRingAttentionPass
    : public dtc::impl::ExpandRingAttentionPassBase<ExpandRingAttentionPass> {
  template <typename OpT>
  static LogicalResult expandAll(func::FuncOp function, const LinkedMesh &mesh) {
    SmallVector<OpT> ops;
    function.walk([&](OpT op) {
      if (op.getKeyShift())
        ops.push_back(op);
    });
    for (OpT op : ops) {
      if (!op.getSequenceAxes())
        return op.emitOpError() << "has keys that go round devices, but no axis splits its "
                                   "sequence; map the sequence to the axis cp, or gather keys and "
                                   "values: --context-exchange all-gather";
      RingExpansion<OpT>(op, mesh).run();
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [](func::FuncOp function, const LinkedMesh &mesh) {
          return success(succeeded(expandAll<AttentionOp>(function, mesh)) &&
                         succeeded(expandAll<AttentionGradOp>(function, mesh)));
        })))
      signalPassFailure();
  }
};

} // namespace
