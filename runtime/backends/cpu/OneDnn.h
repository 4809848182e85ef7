//===- OneDnn.h - Handles and primitives of oneDNN ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ONEDNN_H
#define DTC_RUNTIME_BACKENDS_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <span>
#include <utility>

namespace dtc::runtime::cpu {

/// A handle of the library.
template <typename T, dnnl_status_t (*destroy)(T)> class LibraryHandle {
public:
  LibraryHandle() = default;
  LibraryHandle(LibraryHandle &&other) noexcept : value(std::exchange(other.value, nullptr)) {}
  LibraryHandle &operator=(LibraryHandle &&other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~LibraryHandle() {
    if (value)
      destroy(value);
  }
  T get() const { return value; }
  T *out() { return &value; }

private:
  T value = nullptr;
};
using LibraryEngine = LibraryHandle<dnnl_engine_t, dnnl_engine_destroy>;
using LibraryStream = LibraryHandle<dnnl_stream_t, dnnl_stream_destroy>;
using LibraryMemory = LibraryHandle<dnnl_memory_t, dnnl_memory_destroy>;
using Primitive = LibraryHandle<dnnl_primitive_t, dnnl_primitive_destroy>;
using PrimitiveDesc = LibraryHandle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using PrimitiveAttributes = LibraryHandle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;

/// The engine of the host, or null.
dnnl_engine_t hostEngine();

/// Sets attributes with which the caller gives a primitive its scratchpad: one that belongs to the
/// primitive would not serve several threads. False if the library cannot.
bool setUserScratchpad(PrimitiveAttributes &attributes);

/// An argument of a primitive: DNNL_ARG_SRC, say, and its elements.
struct PrimitiveOperand {
  int argument;
  const dnnl_memory_desc_t *desc;
  const void *data;
};

/// Runs the primitive, of at most 4 operands, on this thread alone. False if the library fails for
/// want of memory; results then have no meaning.
bool runPrimitive(const Primitive &primitive, std::span<const PrimitiveOperand> operands);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ONEDNN_H
