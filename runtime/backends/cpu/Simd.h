//===- Simd.h - Inner loops for the instruction set of the host -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The binary runs on any x86-64, yet the inner loops use the instructions that the host has.
// simd(body) holds three copies of the body, compiled for the baseline, for x86-64-v3 (AVX2, FMA)
// and for x86-64-v4 (AVX-512), and calls one of them. `flatten` inlines everything that the body
// calls, so that its callees are compiled for that instruction set too.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_SIMD_H
#define DTC_RUNTIME_BACKENDS_CPU_SIMD_H

// GCC 12 is the first to know the levels of x86-64 by name. Sanitized code three times over, all
// inlined, would take it minutes to compile.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 &&           \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define DTC_SIMD_VERSIONS 1
#else
#define DTC_SIMD_VERSIONS 0
#endif

namespace dtc::runtime::cpu {

#if DTC_SIMD_VERSIONS
namespace detail {

enum class InstructionSet { Baseline, V3, V4 };

inline InstructionSet instructionSet() {
  static const InstructionSet set = __builtin_cpu_supports("x86-64-v4") ? InstructionSet::V4
                                    : __builtin_cpu_supports("x86-64-v3")
                                        ? InstructionSet::V3
                                        : InstructionSet::Baseline;
  return set;
}

// The body comes by value: a reference would let the compiler suspect that stores of the body
// change what it captured.
template <typename Body>
[[gnu::target("arch=x86-64-v4"), gnu::flatten, gnu::noinline]] void runV4(Body body) {
  body();
}
template <typename Body>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline]] void runV3(Body body) {
  body();
}
template <typename Body> [[gnu::flatten, gnu::noinline]] void runBaseline(Body body) { body(); }

} // namespace detail
#endif

/// Runs `body`, a lambda that captures by value and returns nothing.
template <typename Body> inline void simd(const Body &body) {
#if DTC_SIMD_VERSIONS
  switch (detail::instructionSet()) {
  case detail::InstructionSet::V4:
    return detail::runV4(body);
  case detail::InstructionSet::V3:
    return detail::runV3(body);
  case detail::InstructionSet::Baseline:
    return detail::runBaseline(body);
  }
#else
  body();
#endif
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_SIMD_H
