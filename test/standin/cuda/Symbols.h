//===- Symbols.h - The program's own table of symbols --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_SYMBOLS_H
#define DTC_TEST_STANDIN_CUDA_SYMBOLS_H

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace dtc::standin {

/// The name of the function that begins at `address`, as C++ writes it; its address in a program
/// without a table of symbols.
std::string functionName(const void *address);

/// The thread-local variables that functions declare, as the calling thread has them: the shared
/// memory of kernels. None in a program without a table of symbols.
std::vector<std::span<std::byte>> functionThreadLocals();

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_SYMBOLS_H
