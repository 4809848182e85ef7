//===- OneDnn.cpp - Handles and primitives of oneDNN ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/OneDnn.h"

#include "runtime/backends/cpu/GemmGrid.h"

#include <array>
#include <cassert>

namespace dtc::runtime::cpu {

dnnl_engine_t hostEngine() {
  static const LibraryEngine engine = [] {
    LibraryEngine created;
    if (dnnl_engine_create(created.out(), dnnl_cpu, 0) != dnnl_success)
      return LibraryEngine();
    return created;
  }();
  return engine.get();
}

/// A stream of this thread's own, or null.
static dnnl_stream_t threadStream() {
  thread_local const LibraryStream stream = [] {
    LibraryStream created;
    if (dnnl_stream_create(created.out(), hostEngine(), dnnl_stream_default_flags) != dnnl_success)
      return LibraryStream();
    return created;
  }();
  return stream.get();
}

bool setUserScratchpad(PrimitiveAttributes &attributes) {
  return dnnl_primitive_attr_create(attributes.out()) == dnnl_success &&
         dnnl_primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user) ==
             dnnl_success;
}

bool runPrimitive(const Primitive &primitive, std::span<const PrimitiveOperand> operands) {
  constexpr size_t kMost = 4;
  assert(operands.size() <= kMost);
  dnnl_stream_t stream = threadStream();
  if (!stream)
    return false;
  std::array<LibraryMemory, kMost> memories;
  std::array<dnnl_exec_arg_t, kMost> arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    // The library does not write to its inputs.
    void *data = const_cast<void *>(operands[i].data);
    if (dnnl_memory_create(memories[i].out(), operands[i].desc, hostEngine(), data) != dnnl_success)
      return false;
    arguments[i] = {operands[i].argument, memories[i].get()};
  }
  SingleThreadedLibrary guard;
  return dnnl_primitive_execute(primitive.get(), stream, static_cast<int>(operands.size()),
                                arguments.data()) == dnnl_success &&
         dnnl_stream_wait(stream) == dnnl_success;
}

} // namespace dtc::runtime::cpu
