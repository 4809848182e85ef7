//===- DataMovement.cpp - Kernels that move elements ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/DataMovement.h"

#include "calls/DataMovementCalls.h"
#include "runtime/backends/cpu/StridedCopy.h"

#include <cstring>

namespace dtc::runtime::cpu {

namespace {

template <typename T> void fillElements(T *out, int64_t count, T value, int threads) {
  parallelFor(threads, count, kElementGrain,
              [=](int64_t begin, int64_t end, int) { std::fill(out + begin, out + end, value); });
}

PrepareResult prepareFill(const FillCall &call) {
  return withElementBits(call.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel(
        [bits = call.bits, count = call.type.numElements()](const CpuArguments &args) {
          fillElements(output<T>(args, 0), count, static_cast<T>(bits), args.threads);
        });
  });
}

PrepareResult prepareConstant(std::string data) {
  return makeKernel([data = std::move(data)](const CpuArguments &args) {
    std::copy(data.begin(), data.end(), output<char>(args, 0));
  });
}

PrepareResult prepareCopy(int64_t bytes) {
  return makeKernel([bytes](const CpuArguments &args) {
    const char *from = input<char>(args, 0);
    char *to = output<char>(args, 0);
    parallelFor(args.threads, bytes, 4 * kElementGrain, [=](int64_t begin, int64_t end, int) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
  });
}

PrepareResult prepareStrided(StridedCall call) {
  return withElementBits(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel([copy = StridedCopy(std::move(call.loops)),
                       offset = call.offset](const CpuArguments &args) {
      copy.run(output<T>(args, 0), input<T>(args, 0) + offset, args.threads);
    });
  });
}

PrepareResult preparePad(PadCall call) {
  return withElementBits(call.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel([copy = StridedCopy(std::move(call.block.loops)), bits = call.bits,
                       offset = call.block.offset,
                       count = call.type.numElements()](const CpuArguments &args) {
      T *to = output<T>(args, 0);
      fillElements(to, count, static_cast<T>(bits), args.threads);
      copy.run(to + offset, input<T>(args, 0), args.threads);
    });
  });
}

PrepareResult prepareConcat(ConcatCall call) {
  struct ConcatOperand {
    StridedCopy copy;
    int64_t offset;
  };
  std::vector<ConcatOperand> parts;
  for (BlockWrite &block : call.blocks)
    parts.push_back({StridedCopy(std::move(block.loops)), block.offset});
  return withElementBits(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel([parts = std::move(parts)](const CpuArguments &args) {
      for (size_t i = 0; i < parts.size(); ++i)
        parts[i].copy.run(output<T>(args, 0) + parts[i].offset, input<T>(args, i), args.threads);
    });
  });
}

PrepareResult prepareZigzag(ZigzagCall call) {
  struct Half {
    StridedCopy copy;
    int64_t to, from;
  };
  std::vector<Half> halves;
  for (ZigzagCall::Half &half : call.halves)
    halves.push_back({StridedCopy(std::move(half.loops)), half.to, half.from});
  return withElementBits(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel([halves = std::move(halves)](const CpuArguments &args) {
      for (const Half &half : halves)
        half.copy.run(output<T>(args, 0) + half.to, input<T>(args, 0) + half.from, args.threads);
    });
  });
}

} // namespace

std::span<const KernelEntry> dataMovementKernels() {
  static constexpr KernelEntry entries[] = {
      {"fill", prepareBy<checkFill, prepareFill>},
      {"constant", prepareBy<checkConstant, prepareConstant>},
      {"copy", prepareBy<checkCopy, prepareCopy>},
      {"broadcast", prepareBy<checkBroadcast, prepareStrided>},
      {"transpose", prepareBy<checkTranspose, prepareStrided>},
      {"slice", prepareBy<checkSlice, prepareStrided>},
      {"pad", prepareBy<checkPad, preparePad>},
      {"concat", prepareBy<checkConcat, prepareConcat>},
      {"zigzag", prepareBy<checkZigzag, prepareZigzag>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
