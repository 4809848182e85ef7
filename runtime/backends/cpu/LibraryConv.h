//===- LibraryConv.h - Convolutions of f32 by oneDNN ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_LIBRARYCONV_H
#define DTC_RUNTIME_BACKENDS_CPU_LIBRARYCONV_H

#include "calls/WindowCalls.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace dtc::runtime::cpu {

/// A convolution of f32, or one of its gradients, cut into parts of the result, one for a thread.
/// Each part is a primitive on one thread, whose operands are copied into the order in memory that
/// the library chooses. Immutable: one object may run in many threads at once.
class LibraryConv {
public:
  /// Null if the library cannot do it, or the sizes are such that plain loops have to.
  static std::unique_ptr<const LibraryConv> create(const ConvCall &call, int threads);
  ~LibraryConv();

  size_t workspaceBytes() const { return parts.size() * partBytes; }
  /// The operands are those of the kernel, in its order. False if the library fails for want of
  /// memory; the result then has no meaning. `workspace` is aligned to 64 bytes.
  bool run(const float *first, const float *second, float *result, void *workspace) const;

private:
  struct Part;
  LibraryConv();

  std::vector<std::unique_ptr<Part>> parts;
  size_t partBytes = 0;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_LIBRARYCONV_H
