//===- FoldSlices.cpp - Slices that kernels read where they lie -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/parts/PartsPasses.h"

#include "mlir/IR/Builders.h"

#include <functional>
#include <numeric>
#include <optional>

namespace dtc {
#define GEN_PASS_DEF_FOLDSLICESPASS
#include "compiler/passes/PartsPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// A kernel of queries, keys and values, its first three inputs, and the kernel of the tensor that
/// has all three in each row.
struct JoinedKernel {
  StringRef name, joined;
  bool writesParts; // its outputs are the gradients of the three
};
constexpr JoinedKernel kJoinedKernels[] = {{"attention", "joined_attention", false},
                                           {"attention_grad", "joined_attention_grad", true}};
constexpr unsigned kParts = 3;

/// Parts of a tensor: ranges of one dimension.
struct Parts {
  Value whole;
  int64_t dim = 0;
};

} // namespace

static ArrayRef<int64_t> sizesOf(Value value) {
  return cast<MemRefType>(value.getType()).getShape();
}

/// The value that a chain of views leads to.
static Value sourceOf(Value value) {
  while (auto view = value.getDefiningOp<exec::ViewOp>())
    value = view.getSource();
  return value;
}

/// The kernel that writes a value itself, not a reuse or a view of it.
static exec::KernelOp writerOf(Value value) {
  for (Operation *user : value.getUsers())
    if (auto kernel = dyn_cast<exec::KernelOp>(user))
      if (llvm::is_contained(kernel.getOutputs(), value))
        return kernel;
  return {};
}

/// Whether nothing takes the bytes of a value, or of a view of it, for another one.
static bool keepsBytes(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (auto view = dyn_cast<exec::ViewOp>(user))
      return keepsBytes(view.getResult());
    return !isa<exec::ReuseOp>(user);
  });
}

/// The only instruction that reads a value, or views of it; none if there are others, or if
/// something else uses it.
static exec::KernelOp onlyReaderOf(Value value) {
  exec::KernelOp reader;
  SmallVector<Value> names{value};
  while (!names.empty())
    for (Operation *user : names.pop_back_val().getUsers()) {
      if (auto view = dyn_cast<exec::ViewOp>(user)) {
        names.push_back(view.getResult());
        continue;
      }
      auto kernel = dyn_cast<exec::KernelOp>(user);
      if (!kernel)
        return {};
      if (llvm::is_contained(kernel.getOutputs(), value))
        continue;
      if (reader && reader != kernel)
        return {};
      reader = kernel;
    }
  return reader;
}

static int64_t elementsOfRow(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin() + 2, shape.end(), int64_t{1}, std::multiplies<>());
}

/// Whether a part of a tensor, a range of dimension `dim`, is one range of each row of it, and
/// `heads` are its rows.
static bool areHeads(ArrayRef<int64_t> part, ArrayRef<int64_t> heads, int64_t dim) {
  return heads.size() == 4 && dim >= 2 && part.take_front(2) == heads.take_front(2) &&
         elementsOfRow(part) == elementsOfRow(heads) &&
         llvm::all_of(part.slice(2, dim - 2), [](int64_t size) { return size == 1; });
}

/// The tensor whose slices the first three inputs of a kernel are, one after the other and all of
/// it.
static std::optional<Parts> slicesOf(exec::KernelOp kernel) {
  std::optional<Parts> parts;
  int64_t next = 0;
  for (Value input : kernel.getInputs().take_front(kParts)) {
    Value slice = sourceOf(input);
    exec::KernelOp writer = writerOf(slice);
    if (!writer || writer.getKernel() != "slice" || writer.getToken())
      return std::nullopt;
    Value whole = writer.getInputs().front();
    auto offsets = writer.getSettings().getAs<DenseI64ArrayAttr>("offsets");
    std::optional<int64_t> cut;
    for (int64_t d = 0; d < offsets.size(); ++d) {
      if (sizesOf(slice)[d] == sizesOf(whole)[d])
        continue;
      if (cut)
        return std::nullopt;
      cut = d;
    }
    if (!cut || offsets[*cut] != next || (parts && (parts->whole != whole || parts->dim != *cut)) ||
        !areHeads(sizesOf(slice), sizesOf(input), *cut))
      return std::nullopt;
    parts = Parts{whole, *cut};
    next += sizesOf(slice)[*cut];
  }
  if (next != sizesOf(parts->whole)[parts->dim] || !keepsBytes(sourceOf(parts->whole)))
    return std::nullopt;
  return parts;
}

/// The concatenation that alone reads the outputs of a kernel.
static exec::KernelOp concatOf(exec::KernelOp kernel, const Parts &parts) {
  exec::KernelOp concat;
  for (auto [i, output] : llvm::enumerate(kernel.getOutputs())) {
    exec::KernelOp reader = onlyReaderOf(output);
    if (!reader || (concat && reader != concat) || reader.getKernel() != "concat" ||
        reader.getInputs().size() != kParts || sourceOf(reader.getInputs()[i]) != output ||
        reader->getBlock() != kernel->getBlock())
      return {};
    concat = reader;
  }
  Value joined = concat.getOutputs().front();
  bool isAlike = concat.getSettings().getAs<IntegerAttr>("dim").getInt() == parts.dim &&
                 sizesOf(joined) == sizesOf(parts.whole);
  // Only bytes of its own are free before the concatenation.
  return isAlike && joined.getDefiningOp<exec::BufferOp>() ? concat : exec::KernelOp();
}

/// A view of a tensor as rows of the heads of queries, keys and values, of `size` elements each.
static Value rowsOf(Value whole, int64_t size) {
  auto type = cast<MemRefType>(whole.getType());
  ArrayRef<int64_t> shape = type.getShape();
  auto rows =
      MemRefType::get({shape[0], shape[1], elementsOfRow(shape) / size, size},
                      type.getElementType(), MemRefLayoutAttrInterface(), type.getMemorySpace());
  if (rows == type)
    return whole;
  for (Operation *user : whole.getUsers())
    if (auto view = dyn_cast<exec::ViewOp>(user); view && view.getType() == rows)
      return view.getResult();
  OpBuilder builder(whole.getContext());
  builder.setInsertionPointAfterValue(whole);
  return exec::ViewOp::create(builder, whole.getLoc(), rows, whole);
}

/// Erases a value that no instruction has, and the values that it is a view of in turn.
static void eraseUnused(Value value) {
  while (value.use_empty()) {
    Operation *declaration = value.getDefiningOp();
    Value source = declaration->getNumOperands() ? declaration->getOperand(0) : Value();
    declaration->erase();
    if (!source)
      return;
    value = source;
  }
}

/// Erases an input that nothing reads any more, and the slice that makes it.
static void eraseUnread(Value input) {
  Value slice = sourceOf(input);
  eraseUnused(input);
  if (!llvm::hasSingleElement(slice.getUses()))
    return;
  if (exec::KernelOp writer = writerOf(slice)) {
    writer->erase();
    eraseUnused(slice);
  }
}

/// The declaration of the bytes that a value lies in.
static exec::BufferOp bufferOf(Value value) {
  Operation *declaration = value.getDefiningOp();
  while (isa<exec::ViewOp, exec::ReuseOp>(declaration))
    declaration = declaration->getOperand(0).getDefiningOp();
  return cast<exec::BufferOp>(declaration);
}

/// Where each microbatch has its slices, as the forward and the backward pass of a pipeline need
/// them, each needs the whole.
static void keepForMicrobatches(Value whole, ArrayRef<Value> slices) {
  for (Value slice : slices)
    if (auto slots = bufferOf(slice).getSlotsAttr())
      bufferOf(whole).setSlotsAttr(slots);
}

static void fold(exec::KernelOp kernel, const JoinedKernel &joined) {
  std::optional<Parts> parts = slicesOf(kernel);
  if (!parts)
    return;
  exec::KernelOp concat = joined.writesParts ? concatOf(kernel, *parts) : exec::KernelOp();
  if (joined.writesParts && !concat)
    return;
  SmallVector<Value> slices(kernel.getInputs().take_front(kParts)), outputs(kernel.getOutputs());
  int64_t size = sizesOf(kernel.getInputs().front()).back();
  SmallVector<Value> inputs{rowsOf(parts->whole, size)};
  llvm::append_range(inputs, kernel.getInputs().drop_front(kParts));
  if (concat)
    outputs = {rowsOf(concat.getOutputs().front(), size)};
  keepForMicrobatches(parts->whole, slices);
  OpBuilder builder(kernel);
  exec::KernelOp::create(builder, kernel.getLoc(), /*token=*/Type(), joined.joined, inputs, outputs,
                         kernel.getSettings(), kernel.getFlops(), /*after=*/ValueRange());
  SmallVector<Value> gradients;
  if (concat) {
    llvm::append_range(gradients, concat.getInputs());
    concat->erase();
  }
  kernel->erase();
  for (Value gradient : gradients)
    eraseUnused(gradient);
  for (Value slice : slices)
    eraseUnread(slice);
}

namespace {
struct FoldSlicesPass : dtc::impl::FoldSlicesPassBase<FoldSlicesPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<std::pair<exec::KernelOp, const JoinedKernel *>> kernels;
    getOperation()->walk([&](exec::KernelOp kernel) {
      for (const JoinedKernel &joined : kJoinedKernels)
        if (kernel.getKernel() == joined.name && !kernel.getToken())
          kernels.emplace_back(kernel, &joined);
    });
    for (auto [kernel, joined] : kernels)
      fold(kernel, *joined);
  }
};
} // namespace
