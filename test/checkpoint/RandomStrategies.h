//===- RandomStrategies.h - Random models with random strategies ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_CHECKPOINT_RANDOMSTRATEGIES_H
#define DTC_TEST_CHECKPOINT_RANDOMSTRATEGIES_H

#include <cstdint>
#include <random>
#include <string>

namespace dtc::test {

/// A configuration of a GPT-2 or a Llama of two or three layers, whose sizes few meshes divide, for
/// sequences of up to 9 tokens. The vocabulary has kWords words or more. Nothing drops out.
std::string randomConfig(std::mt19937_64 &random);

/// A strategy as of strategy(), without a type of computation: up to 16 devices on up to four axes,
/// any ZeRO stage, any schedule, sequence parallelism, recomputation, buckets, and at most as many
/// microbatches as each device has samples of a batch of `batch` samples, 16 or more.
std::string randomStrategy(std::mt19937_64 &random, int64_t batch);

} // namespace dtc::test

#endif // DTC_TEST_CHECKPOINT_RANDOMSTRATEGIES_H
