//===- PackedCollective.cpp - Tensors in messages of NCCL -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/PackedCollective.h"

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
void setReduction(PackedCollective &packed, const CollectiveSpec &spec) {
  DType dtype = spec.input.dtype;
  bool is16Bits = byteWidth(dtype) == 2;
  if (spec.reduction == ReductionKind::Sum) {
    packed.reduction = ncclSum;
    if (!is16Bits)
      return;
    packed.code = Code::Widened;
    packed.type = ncclFloat32;
    packed.width = 4;
    return;
  }
  bool isMax = spec.reduction == ReductionKind::Max;
  packed.reduction = isMax ? ncclMax : ncclMin;
  if (!isFloat(dtype))
    return;
  packed.code = isMax ? Code::MaxKey : Code::MinKey;
  packed.width = dtype == DType::F64 ? 8 : 4;
  packed.type = dtype == DType::F64 ? ncclUint64 : ncclUint32;
}

} // namespace

Expected<PackedCollective> PackedCollective::create(const CollectiveSpec &spec) {
  PackedCollective packed;
  int64_t elements = spec.input.numElements(), members = spec.members;
  packed.type = plainType(spec.input.dtype);
  packed.width = byteWidth(spec.input.dtype);
  packed.count = packed.sentCount = packed.receivedCount = elements;
  LoopNest<2> pack(std::vector<int64_t>{elements}, {Strides{1}, Strides{1}}), unpack = pack;
  bool packs = false, unpacks = false;
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    setReduction(packed, spec);
    break;
  case CollectiveKind::Permute:
    break;
  case CollectiveKind::AllGather: {
    packed.receivedCount = elements * members;
    Around block(spec.input, spec.dim);
    unpack = blocksOf(block, members, /*packs=*/false);
    unpacks = block.outer != 1;
    break;
  }
  case CollectiveKind::ReduceScatter: {
    setReduction(packed, spec);
    packed.count = packed.receivedCount = elements / members;
    Around block(blockOf(spec.input, spec.dim, members), spec.dim);
    pack = blocksOf(block, members, /*packs=*/true);
    packs = block.outer != 1;
    unpack = LoopNest<2>(std::vector<int64_t>{packed.count}, {Strides{1}, Strides{1}});
    break;
  }
  case CollectiveKind::AllToAll: {
    packed.count = elements / members;
    TensorType block = blockOf(spec.input, spec.splitDim, members);
    Around sent(block, spec.splitDim), received(block, spec.dim);
    pack = blocksOf(sent, members, /*packs=*/true);
    packs = sent.outer != 1;
    unpack = blocksOf(received, members, /*packs=*/false);
    unpacks = received.outer != 1;
    break;
  }
  }
  bool isCoded = packed.code != Code::Same;
  for (auto [nest, wanted, to] : {std::tuple(&pack, packs || isCoded, &packed.pack),
                                  std::tuple(&unpack, unpacks || isCoded, &packed.unpack)}) {
    if (!wanted)
      continue;
    Expected<cuda::DeviceLoops<2>> loops = cuda::DeviceLoops<2>::from(*nest);
    if (!loops)
      return loops.error();
    *to = *loops;
  }
  return packed;
}

} // namespace dtc::runtime::nccl
