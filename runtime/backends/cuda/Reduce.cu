//===- Reduce.cu - Sums and extremes over dimensions ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The elements that make up a result are cut into chunks, by sizes alone; every chunk of every
// result is combined on its own, and a second launch combines the chunks of a result in order. So
// results are repeatable bit by bit. Where the innermost dimension is reduced, a block combines a
// chunk; where it is kept, a thread does, and neighbouring threads read neighbouring elements.
//
//===----------------------------------------------------------------------===//

#include "calls/ReduceCall.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceLoops.h"
#include "runtime/backends/cuda/Elements.h"

namespace dtc::runtime::cuda {

namespace {

/// The work of a launch: for chunk c of result r, the combination of the elements [c * chunk,
/// (c + 1) * chunk) of those that are reduced, at index c * (number of results) + r of the output.
struct Work {
  DeviceLoops<1> kept, reduced;
  int64_t chunk;
};

template <typename Op, typename W, typename In, typename Out>
__global__ void __launch_bounds__(256)
    reduceByThreads(const Work __grid_constant__ work, const In *in, Out *out) {
  int64_t begin = int64_t{blockIdx.y} * work.chunk;
  int64_t end = begin + work.chunk < work.reduced.count ? begin + work.chunk : work.reduced.count;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < work.kept.count; i += step) {
    int64_t base[1], offset[1];
    work.kept.offsetsAt(i, base);
    W result = Op::template identity<W>();
    for (int64_t k = begin; k < end; ++k) {
      work.reduced.offsetsAt(k, offset);
      result = Op::combine(result, widen(in[base[0] + offset[0]]));
    }
    out[int64_t{blockIdx.y} * work.kept.count + i] = narrow<Out>(result);
  }
}

template <typename Op, typename W, typename In, typename Out>
__global__ void __launch_bounds__(256)
    reduceByBlocks(const Work __grid_constant__ work, const In *in, Out *out) {
  int64_t begin = int64_t{blockIdx.y} * work.chunk;
  int64_t end = begin + work.chunk < work.reduced.count ? begin + work.chunk : work.reduced.count;
  for (int64_t i = blockIdx.x; i < work.kept.count; i += gridDim.x) {
    int64_t base[1], offset[1];
    work.kept.offsetsAt(i, base);
    W result = Op::template identity<W>();
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x) {
      work.reduced.offsetsAt(k, offset);
      result = Op::combine(result, widen(in[base[0] + offset[0]]));
    }
    result = reduceBlock<Op>(result);
    if (threadIdx.x == 0)
      out[int64_t{blockIdx.y} * work.kept.count + i] = narrow<Out>(result);
  }
}

/// The launches of a call.
struct Schedule {
  Work first, second;
  bool byBlocks = false;
  int64_t chunks = 1;
};

/// Makes enough chunks to give some hundred thousand threads work, and no more.
Schedule scheduleOf(const DeviceLoops<1> &kept, const DeviceLoops<1> &reduced, bool reducesInner) {
  Schedule schedule;
  int64_t results = std::max<int64_t>(kept.count, 1);
  schedule.byBlocks = reducesInner && reduced.count >= 64;
  // A thread combines at least 64 elements of a chunk, a block 4096.
  int64_t least = schedule.byBlocks ? 4096 : 64;
  int64_t wanted = schedule.byBlocks ? 1024 / results : 262144 / results;
  int64_t most = std::clamp<int64_t>(wanted, 1, 1024);
  int64_t chunks = std::clamp<int64_t>(reduced.count / least, 1, most);
  int64_t chunk = std::max<int64_t>((reduced.count + chunks - 1) / chunks, 1);
  schedule.chunks = std::max<int64_t>((reduced.count + chunk - 1) / chunk, 1);
  schedule.first = {kept, reduced, chunk};
  // The second launch: of `chunks` rows of `results` elements, the columns.
  schedule.second = {DeviceLoops<1>::contiguous(kept.count),
                     DeviceLoops<1>::contiguous(schedule.chunks), schedule.chunks};
  schedule.second.reduced.strides[0][0] = kept.count;
  return schedule;
}

template <typename Op, typename W, typename In, typename Out>
MaybeError enqueueReduce(CudaQueue &queue, const Work &work, int64_t chunks, bool byBlocks,
                         const In *in, Out *out) {
  auto rows = static_cast<unsigned>(chunks);
  if (byBlocks) {
    LaunchShape shape = blockPerRow(work.kept.count, work.chunk / 4);
    shape.threads = std::min(shape.threads, 256u);
    shape.blocksY = rows;
    return launch(queue, shape, reduceByBlocks<Op, W, In, Out>, work, in, out);
  }
  LaunchShape shape = gridStride(queue, work.kept.count);
  shape.blocksY = rows;
  return launch(queue, shape, reduceByThreads<Op, W, In, Out>, work, in, out);
}

template <typename Op, typename In, typename Out>
std::unique_ptr<CudaKernel> makeReduce(const Schedule &schedule) {
  using W = Wide<In>;
  bool twoStages = schedule.chunks > 1;
  size_t workspace = twoStages ? arrayBytes<W>(schedule.chunks * schedule.first.kept.count) : 0;
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) -> MaybeError {
        const In *in = input<In>(args, 0);
        Out *out = output<Out>(args, 0);
        if (!twoStages)
          return enqueueReduce<Op, W>(queue, schedule.first, 1, schedule.byBlocks, in, out);
        W *partial = static_cast<W *>(args.workspace);
        if (MaybeError error = enqueueReduce<Op, W>(queue, schedule.first, schedule.chunks,
                                                    schedule.byBlocks, in, partial))
          return error;
        // Few results of many chunks: a block each.
        bool byBlocks = schedule.chunks >= 64 && schedule.first.kept.count < 4096;
        return enqueueReduce<Op, W>(queue, schedule.second, 1, byBlocks,
                                    static_cast<const W *>(partial), out);
      },
      workspace);
}

template <typename Op>
std::unique_ptr<CudaKernel> makeReduce(const ReduceCall &call, const Schedule &schedule) {
  return withFloatType(call.in, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    if (call.out == call.in)
      return makeReduce<Op, T, T>(schedule);
    return makeReduce<Op, T, Wide<T>>(schedule);
  });
}

PrepareResult prepareReduce(const ReduceCall &call) {
  Expected<DeviceLoops<1>> kept = DeviceLoops<1>::from(call.kept);
  if (!kept)
    return kept.error();
  Expected<DeviceLoops<1>> reduced = DeviceLoops<1>::from(call.reduced);
  if (!reduced)
    return reduced.error();
  Schedule schedule = scheduleOf(*kept, *reduced, call.reducesInner);
  switch (call.kind) {
  case ReductionKind::Sum:
    return makeReduce<SumOf>(call, schedule);
  case ReductionKind::Max:
    return makeReduce<MaxOf>(call, schedule);
  default:
    return makeReduce<MinOf>(call, schedule);
  }
}

} // namespace

std::span<const KernelEntry> reduceKernels() {
  static constexpr KernelEntry entries[] = {{"reduce", prepareBy<checkReduce, prepareReduce>}};
  return entries;
}

} // namespace dtc::runtime::cuda
