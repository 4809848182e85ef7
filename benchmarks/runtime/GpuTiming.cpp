//===- GpuTiming.cpp - Timing work on a GPU -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/runtime/GpuTiming.h"

#include "support/Float16.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace dtc::runtime {

namespace {

template <typename T> void writeUniform(std::byte *to, size_t bytes, std::mt19937 &random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T value(uniform(random));
    std::memcpy(to + at, &value, sizeof(T));
  }
}

void writeIndices(std::byte *to, size_t bytes, std::mt19937 &random) {
  std::uniform_real_distribution<double> uniform(0, std::log(50257.0));
  for (size_t at = 0; at + sizeof(int32_t) <= bytes; at += sizeof(int32_t)) {
    int32_t value = static_cast<int32_t>(std::exp(uniform(random))) - 1;
    std::memcpy(to + at, &value, sizeof(value));
  }
}

void write(std::byte *to, size_t bytes, DType dtype) {
  std::mt19937 random(1);
  switch (dtype) {
  case DType::I32:
    return writeIndices(to, bytes, random);
  case DType::F64:
    return writeUniform<double>(to, bytes, random);
  case DType::F32:
    return writeUniform<float>(to, bytes, random);
  case DType::BF16:
    return writeUniform<BFloat16>(to, bytes, random);
  case DType::F16:
    return writeUniform<Float16>(to, bytes, random);
  default:
    std::memset(to, 0, bytes);
  }
}

} // namespace

Expected<std::unique_ptr<GpuTiming>> GpuTiming::create(const Backend &backend) {
  std::unique_ptr<GpuTiming> timing(new GpuTiming);
  auto device = backend.openDevice(0);
  if (!device)
    return device.error();
  timing->device = std::move(*device);
  auto queue = timing->device->openQueue(QueueKind::Compute);
  if (!queue)
    return queue.error();
  timing->queue = std::move(*queue);
  return timing;
}

Expected<void *> GpuTiming::placeBytes(size_t bytes) {
  auto made = device->allocate(bytes);
  if (!made)
    return made.error();
  memory.push_back(std::move(*made));
  std::byte *data = memory.back()->data();
  if (MaybeError error = queue->clear(data, bytes))
    return *error;
  return static_cast<void *>(data);
}

Expected<void *> GpuTiming::place(const TensorType &type, Contents contents) {
  Expected<void *> data = placeBytes(type.numBytes());
  if (data && (contents == Contents::Random || type.dtype == DType::I32))
    if (MaybeError error = fill(static_cast<std::byte *>(*data), type.numBytes(), type.dtype))
      return *error;
  return data;
}

/// The elements of a large tensor repeat those of its first part.
MaybeError GpuTiming::fill(std::byte *to, size_t bytes, DType dtype) {
  size_t part = std::min(bytes, size_t{8} << 20);
  auto staging = device->allocateStaging(part);
  if (!staging)
    return staging.error();
  write((*staging)->data(), part, dtype);
  for (size_t at = 0; at < bytes; at += part)
    if (MaybeError error = queue->copy(to + at, (*staging)->data(), std::min(part, bytes - at)))
      return error;
  return queue->finish();
}

void GpuTiming::run(benchmark::State &state, const Work &work) {
  constexpr int kPerIteration = 20;
  auto begin = device->createEvent(true), end = device->createEvent(true);
  if (!begin || !end)
    return state.SkipWithError((begin ? end : begin).error().message.c_str());
  MaybeError error = work(*queue);
  auto measure = [&]() -> Expected<double> {
    if (!error)
      error = queue->record(**begin);
    for (int i = 0; i < kPerIteration && !error; ++i)
      error = work(*queue);
    if (!error)
      error = queue->record(**end);
    if (!error)
      error = queue->finish();
    if (error)
      return *error;
    auto from = (*begin)->time(), to = (*end)->time();
    if (!from || !to)
      return (from ? to : from).error();
    return std::chrono::duration<double>(*to - *from).count() / kPerIteration;
  };
  for (auto _ : state) {
    Expected<double> seconds = measure();
    if (!seconds)
      return state.SkipWithError(seconds.error().message.c_str());
    state.SetIterationTime(*seconds);
  }
}

} // namespace dtc::runtime
