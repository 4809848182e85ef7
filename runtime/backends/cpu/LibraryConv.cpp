//===- LibraryConv.cpp - Convolutions of f32 by oneDNN --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/LibraryConv.h"

#include "runtime/backends/cpu/GemmGrid.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/OneDnn.h"

#include <atomic>

namespace dtc::runtime::cpu {

namespace {

/// The operands of a kernel in its order: the two that it reads, and its result.
template <typename T> using Operands = std::array<T, 3>;

/// A range of one of the dimensions of a convolution; the others are whole.
struct Range {
  enum Axis { Batch, Groups, InChannels, OutChannels } axis;
  int64_t begin, count;

  int64_t offset(Axis of) const { return axis == of ? begin : 0; }
  int64_t size(Axis of, int64_t whole) const { return axis == of ? count : whole; }
};

/// The dimension that threads share: the first one that the result has and that is as large as
/// their number, else the largest. Channels are a dimension of the library's tensors only where
/// there are no groups.
Range::Axis sharedAxis(const ConvCall &call, int threads, int64_t &size) {
  struct Candidate {
    Range::Axis axis;
    int64_t size;
  };
  std::vector<Candidate> candidates;
  if (call.kind != ConvKind::WeightGrad)
    candidates.push_back({Range::Batch, call.batch});
  candidates.push_back({Range::Groups, call.groups});
  if (call.groups == 1 && call.kind != ConvKind::InputGrad)
    candidates.push_back({Range::OutChannels, call.outChannels});
  if (call.groups == 1 && call.kind == ConvKind::InputGrad)
    candidates.push_back({Range::InChannels, call.inChannels});
  Candidate best = candidates.front();
  for (const Candidate &each : candidates)
    if (best.size < threads && each.size > best.size)
      best = each;
  size = best.size;
  return best.axis;
}

/// A part of a dense tensor: its shape, its strides, and the offset of its first element.
struct Subtensor {
  int rank = 0;
  dnnl_dims_t shape = {}, strides = {};
  int64_t offset = 0;

  /// Appends a dimension of the part.
  void append(int64_t size, int64_t stride, int64_t begin = 0) {
    shape[rank] = size;
    strides[rank] = stride;
    offset += begin * stride;
    ++rank;
  }
  void appendSpatial(std::span<const int64_t> sizes) {
    int64_t stride = 1;
    for (int64_t size : sizes)
      stride *= size;
    for (int64_t size : sizes)
      append(size, stride /= size);
  }
  bool describe(dnnl_memory_desc_t &desc) const {
    return dnnl_memory_desc_init_by_strides(&desc, rank, shape, dnnl_f32, strides) == dnnl_success;
  }
  /// A description that leaves the order in memory to the library.
  bool describeAny(dnnl_memory_desc_t &desc) const {
    return dnnl_memory_desc_init_by_tag(&desc, rank, shape, dnnl_f32, dnnl_format_tag_any) ==
           dnnl_success;
  }
};

/// The spatial dimensions as the library has them: three, or the last two if the first is trivial.
struct SpatialSizes {
  explicit SpatialSizes(const SpatialDims &dims) {
    const SpatialDim &front = dims[0];
    bool isTrivial = front.in == 1 && front.out == 1 && front.windows.size == 1;
    for (size_t i = isTrivial ? 1 : 0; i < dims.size(); ++i) {
      const Windows &windows = dims[i].windows;
      strides[in.size()] = windows.stride;
      dilates[in.size()] = windows.dilation - 1;
      padding[in.size()] = windows.padding;
      in.push_back(dims[i].in);
      out.push_back(dims[i].out);
      window.push_back(windows.size);
    }
  }
  std::vector<int64_t> in, out, window;
  dnnl_dims_t strides = {}, dilates = {}, padding = {};
};

/// x, w and y of a part, in the order of the kernel's operands.
Operands<Subtensor> subtensorsOf(const ConvCall &call, const Range &range,
                                 const SpatialSizes &sizes) {
  int64_t groups = range.size(Range::Groups, call.groups);
  int64_t group = range.offset(Range::Groups);
  int64_t inElements = dtc::inElements(call.dims), outElements = dtc::outElements(call.dims);
  auto withChannels = [&](Range::Axis axis, int64_t channels, int64_t elements) {
    Subtensor tensor;
    tensor.append(range.size(Range::Batch, call.batch), call.groups * channels * elements,
                  range.offset(Range::Batch));
    tensor.append(groups * range.size(axis, channels), elements,
                  group * channels + range.offset(axis));
    return tensor;
  };
  Subtensor x = withChannels(Range::InChannels, call.inChannels, inElements);
  x.appendSpatial(sizes.in);
  Subtensor y = withChannels(Range::OutChannels, call.outChannels, outElements);
  y.appendSpatial(sizes.out);
  Subtensor w;
  int64_t window = windowElements(call.dims), ofGroup = call.outChannels * call.inChannels * window;
  if (call.groups > 1)
    w.append(groups, ofGroup, group);
  w.append(range.size(Range::OutChannels, call.outChannels), call.inChannels * window,
           range.offset(Range::OutChannels));
  w.append(range.size(Range::InChannels, call.inChannels), window, range.offset(Range::InChannels));
  w.appendSpatial(sizes.window);
  switch (call.kind) {
  case ConvKind::InputGrad:
    return {y, w, x};
  case ConvKind::WeightGrad:
    return {x, y, w};
  case ConvKind::Forward:
    break;
  }
  return {x, w, y};
}

/// How the library names the operands, in the order of the kernel's.
struct OperandNames {
  Operands<int> arguments;
  Operands<dnnl_query_t> queries;
};
OperandNames namesOf(ConvKind kind) {
  switch (kind) {
  case ConvKind::InputGrad:
    return {{DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
            {dnnl_query_diff_dst_md, dnnl_query_weights_md, dnnl_query_diff_src_md}};
  case ConvKind::WeightGrad:
    return {{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
            {dnnl_query_src_md, dnnl_query_diff_dst_md, dnnl_query_diff_weights_md}};
  case ConvKind::Forward:
    break;
  }
  return {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
          {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md}};
}

/// The descriptor of the primitive of a kind. False if the library cannot do it.
bool describePrimitive(ConvKind kind, const Operands<dnnl_memory_desc_t> &at,
                       const SpatialSizes &sizes, const PrimitiveAttributes &attributes,
                       PrimitiveDesc &desc) {
  constexpr dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
  const dnnl_memory_desc_t &x = at[kind == ConvKind::InputGrad ? 2 : 0],
                           &w = at[kind == ConvKind::WeightGrad ? 2 : 1],
                           &y = at[kind == ConvKind::Forward     ? 2
                                   : kind == ConvKind::InputGrad ? 0
                                                                 : 1];
  dnnl_convolution_desc_t forward, conv;
  if (dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training, algorithm, &x, &w,
                                                 nullptr, &y, sizes.strides, sizes.dilates,
                                                 sizes.padding, sizes.padding) != dnnl_success)
    return false;
  PrimitiveDesc hint;
  if (dnnl_primitive_desc_create(hint.out(), &forward, attributes.get(), hostEngine(), nullptr) !=
      dnnl_success)
    return false;
  dnnl_status_t status = dnnl_success;
  switch (kind) {
  case ConvKind::Forward:
    desc = std::move(hint);
    return true;
  case ConvKind::InputGrad:
    status = dnnl_dilated_convolution_backward_data_desc_init(
        &conv, algorithm, &x, &w, &y, sizes.strides, sizes.dilates, sizes.padding, sizes.padding);
    break;
  case ConvKind::WeightGrad:
    status = dnnl_dilated_convolution_backward_weights_desc_init(&conv, algorithm, &x, &w, nullptr,
                                                                 &y, sizes.strides, sizes.dilates,
                                                                 sizes.padding, sizes.padding);
    break;
  }
  return status == dnnl_success &&
         dnnl_primitive_desc_create(desc.out(), &conv, attributes.get(), hostEngine(),
                                    hint.get()) == dnnl_success;
}

/// Whether the library is to be asked: its kernels count in 32 bits, and are not made for paddings
/// with which a window sees nothing else.
bool suitsLibrary(const ConvCall &call) {
  static constexpr int64_t most = 1 << 15, mostElements = int64_t{1} << 30;
  for (int64_t elements : {call.xElements(), call.wElements(), call.yElements()})
    if (elements < 1 || elements > mostElements)
      return false;
  return std::all_of(call.dims.begin(), call.dims.end(), [](const SpatialDim &dim) {
    const Windows &windows = dim.windows;
    return windows.stride < most && windows.dilation < most && windows.size < most &&
           windows.padding < std::min(most, windows.extent());
  });
}

} // namespace

/// The part of one thread: copies of operands into the library's order, the primitive, and the copy
/// of its result back.
struct LibraryConv::Part {
  /// An operand; without a copy the library takes it as it lies.
  struct Operand {
    int argument = 0;
    int64_t offset = 0;
    dnnl_memory_desc_t plain, chosen;
    Primitive copy;
    dnnl_memory_desc_t copyScratch;
    size_t copiedBytes = 0;
  };

  bool prepare(const ConvCall &call, const Range &range);
  bool prepareCopy(Operand &operand, bool isResult, const PrimitiveAttributes &attributes);
  bool run(const Operands<const float *> &at, WorkspaceCursor workspace) const;

  Operands<Operand> operands;
  Primitive conv;
  dnnl_memory_desc_t convScratch;
  size_t scratchBytes = 0, bytes = 0;
};

bool LibraryConv::Part::prepareCopy(Operand &operand, bool isResult,
                                    const PrimitiveAttributes &attributes) {
  if (dnnl_memory_desc_equal(&operand.plain, &operand.chosen))
    return true;
  const dnnl_memory_desc_t &from = isResult ? operand.chosen : operand.plain,
                           &to = isResult ? operand.plain : operand.chosen;
  PrimitiveDesc desc;
  if (dnnl_reorder_primitive_desc_create(desc.out(), &from, hostEngine(), &to, hostEngine(),
                                         attributes.get()) != dnnl_success ||
      dnnl_primitive_create(operand.copy.out(), desc.get()) != dnnl_success)
    return false;
  operand.copyScratch = *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  operand.copiedBytes = roundToLines(dnnl_memory_desc_get_size(&operand.chosen));
  scratchBytes =
      std::max(scratchBytes, roundToLines(dnnl_memory_desc_get_size(&operand.copyScratch)));
  bytes += operand.copiedBytes;
  return true;
}

bool LibraryConv::Part::prepare(const ConvCall &call, const Range &range) {
  SpatialSizes sizes(call.dims);
  Operands<Subtensor> tensors = subtensorsOf(call, range, sizes);
  OperandNames names = namesOf(call.kind);
  Operands<dnnl_memory_desc_t> any;
  for (size_t i = 0; i < 3; ++i) {
    operands[i].argument = names.arguments[i];
    operands[i].offset = tensors[i].offset;
    if (!tensors[i].describe(operands[i].plain) || !tensors[i].describeAny(any[i]))
      return false;
  }
  PrimitiveAttributes attributes;
  PrimitiveDesc desc;
  if (!setUserScratchpad(attributes) ||
      !describePrimitive(call.kind, any, sizes, attributes, desc) ||
      dnnl_primitive_create(conv.out(), desc.get()) != dnnl_success)
    return false;
  convScratch = *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  scratchBytes = roundToLines(dnnl_memory_desc_get_size(&convScratch));
  for (size_t i = 0; i < 3; ++i) {
    operands[i].chosen = *dnnl_primitive_desc_query_md(desc.get(), names.queries[i], 0);
    if (!prepareCopy(operands[i], /*isResult=*/i == 2, attributes))
      return false;
  }
  bytes += scratchBytes;
  return true;
}

bool LibraryConv::Part::run(const Operands<const float *> &at, WorkspaceCursor workspace) const {
  auto *scratch = workspace.take<std::byte>(static_cast<int64_t>(scratchBytes));
  Operands<const void *> given, used;
  for (size_t i = 0; i < 3; ++i) {
    given[i] = used[i] = at[i] + operands[i].offset;
    if (operands[i].copy.get())
      used[i] = workspace.take<std::byte>(static_cast<int64_t>(operands[i].copiedBytes));
  }
  auto copy = [&](const Operand &operand, size_t i, bool isResult) {
    const PrimitiveOperand plain{isResult ? DNNL_ARG_TO : DNNL_ARG_FROM, &operand.plain, given[i]},
        chosen{isResult ? DNNL_ARG_FROM : DNNL_ARG_TO, &operand.chosen, used[i]},
        own{DNNL_ARG_SCRATCHPAD, &operand.copyScratch, scratch};
    const PrimitiveOperand all[] = {plain, chosen, own};
    return !operand.copy.get() || runPrimitive(operand.copy, all);
  };
  const PrimitiveOperand all[] = {{operands[0].argument, &operands[0].chosen, used[0]},
                                  {operands[1].argument, &operands[1].chosen, used[1]},
                                  {operands[2].argument, &operands[2].chosen, used[2]},
                                  {DNNL_ARG_SCRATCHPAD, &convScratch, scratch}};
  return copy(operands[0], 0, /*isResult=*/false) && copy(operands[1], 1, /*isResult=*/false) &&
         runPrimitive(conv, all) && copy(operands[2], 2, /*isResult=*/true);
}

LibraryConv::LibraryConv() = default;
LibraryConv::~LibraryConv() = default;

std::unique_ptr<const LibraryConv> LibraryConv::create(const ConvCall &call, int threads) {
  if (!suitsLibrary(call) || !hostEngine())
    return nullptr;
  // The number of threads at creation is part of a primitive.
  SingleThreadedLibrary guard;
  std::unique_ptr<LibraryConv> made(new LibraryConv());
  int64_t size = 0;
  Range::Axis axis = sharedAxis(call, threads, size);
  int64_t terms = call.yElements() * call.inChannels * windowElements(call.dims);
  int count = numParts(threads, size, grainFor(terms / size, /*weight=*/2));
  for (int part = 0; part < count; ++part) {
    int64_t begin = partBegin(size, count, part);
    auto prepared = std::make_unique<Part>();
    if (!prepared->prepare(call, {axis, begin, partBegin(size, count, part + 1) - begin}))
      return nullptr;
    made->partBytes = std::max(made->partBytes, prepared->bytes);
    made->parts.push_back(std::move(prepared));
  }
  return made;
}

bool LibraryConv::run(const float *first, const float *second, float *result,
                      void *workspace) const {
  std::atomic<bool> succeeded = true;
  forParts(static_cast<int>(parts.size()), [&](int part) {
    auto *own = static_cast<std::byte *>(workspace) + static_cast<size_t>(part) * partBytes;
    if (!parts[static_cast<size_t>(part)]->run({first, second, result}, WorkspaceCursor(own)))
      succeeded = false;
  });
  return succeeded;
}

} // namespace dtc::runtime::cpu
