//===- CollectiveLayout.cpp - Tensors in messages of NCCL -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/CollectiveLayout.h"

#include <vector>

namespace dtc::runtime::nccl {

namespace {

/// A tensor around one of its dimensions: outer x size x inner elements.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;

  Around(const TensorType &type, int64_t dim) {
    for (int64_t i = 0; i < type.rank(); ++i) {
      int64_t extent = type.shape[static_cast<size_t>(i)];
      (i < dim ? outer : i == dim ? size : inner) *= extent;
    }
  }
};

using Strides = std::vector<int64_t>;

/// Between a tensor and the blocks into which `members` split one of its dimensions, one block
/// after the other; `block` is one of them. `packs`: from the tensor to the blocks.
LoopNest<2> blocksOf(const Around &block, int64_t members, bool packs) {
  int64_t row = block.size * block.inner;
  std::vector<int64_t> shape = {members, block.outer, row};
  Strides dense = {block.outer * row, row, 1}, tensor = {row, members * row, 1};
  if (packs)
    return LoopNest<2>(shape, {dense, tensor});
  // In the order of the tensor, which is written.
  return LoopNest<2>(std::vector<int64_t>{block.outer, members, row},
                     {Strides{members * row, row, 1}, Strides{row, block.outer * row, 1}});
}

TensorType blockOf(TensorType type, int64_t dim, int64_t members) {
  type.shape[static_cast<size_t>(dim)] /= members;
  return type;
}

ncclDataType_t plainType(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return ncclFloat64;
  case DType::F32:
    return ncclFloat32;
  case DType::BF16:
    return ncclBfloat16;
  case DType::F16:
    return ncclFloat16;
  case DType::I32:
    return ncclInt32;
  default:
    return ncclUint8;
  }
}

/// Sets in which form the elements are reduced.
void setReduction(CollectiveLayout &layout, const CollectiveSpec &spec) {
  DType dtype = spec.input.dtype;
  bool is16Bits = byteWidth(dtype) == 2;
  if (spec.reduction == ReductionKind::Sum) {
    layout.reduction = ncclSum;
    if (!is16Bits)
      return;
    layout.code = Code::Widened;
    layout.type = ncclFloat32;
    layout.width = 4;
    return;
  }
  bool isMax = spec.reduction == ReductionKind::Max;
  layout.reduction = isMax ? ncclMax : ncclMin;
  if (!isFloat(dtype))
    return;
  layout.code = isMax ? Code::MaxKey : Code::MinKey;
  layout.width = dtype == DType::F64 ? 8 : 4;
  layout.type = dtype == DType::F64 ? ncclUint64 : ncclUint32;
}

} // namespace

Expected<CollectiveLayout> CollectiveLayout::create(const CollectiveSpec &spec) {
  CollectiveLayout layout;
  int64_t elements = spec.input.numElements(), members = spec.members;
  layout.type = plainType(spec.input.dtype);
  layout.width = byteWidth(spec.input.dtype);
  layout.count = layout.sentCount = layout.receivedCount = elements;
  LoopNest<2> pack(std::vector<int64_t>{elements}, {Strides{1}, Strides{1}}), unpack = pack;
  bool packs = false, unpacks = false;
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    setReduction(layout, spec);
    break;
  case CollectiveKind::Permute:
    break;
  case CollectiveKind::AllGather: {
    layout.receivedCount = elements * members;
    Around block(spec.input, spec.dim);
    unpack = blocksOf(block, members, /*packs=*/false);
    unpacks = block.outer != 1;
    break;
  }
  case CollectiveKind::ReduceScatter: {
    setReduction(layout, spec);
    layout.count = layout.receivedCount = elements / members;
    Around block(blockOf(spec.input, spec.dim, members), spec.dim);
    pack = blocksOf(block, members, /*packs=*/true);
    packs = block.outer != 1;
    unpack = LoopNest<2>(std::vector<int64_t>{layout.count}, {Strides{1}, Strides{1}});
    break;
  }
  case CollectiveKind::AllToAll: {
    layout.count = elements / members;
    TensorType block = blockOf(spec.input, spec.splitDim, members);
    Around sent(block, spec.splitDim), received(block, spec.dim);
    pack = blocksOf(sent, members, /*packs=*/true);
    packs = sent.outer != 1;
    unpack = blocksOf(received, members, /*packs=*/false);
    unpacks = received.outer != 1;
    break;
  }
  }
  bool isCoded = layout.code != Code::Same;
  for (auto [nest, wanted, to] : {std::tuple(&pack, packs || isCoded, &layout.pack),
                                  std::tuple(&unpack, unpacks || isCoded, &layout.unpack)}) {
    if (!wanted)
      continue;
    Expected<cuda::DeviceLoops<2>> loops = cuda::DeviceLoops<2>::from(*nest);
    if (!loops)
      return loops.error();
    *to = *loops;
  }
  return layout;
}

} // namespace dtc::runtime::nccl
