//===- Bf16Matmul.cpp - Products of bf16 by oneDNN ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Bf16Matmul.h"

#include "runtime/backends/cpu/GemmGrid.h"

#include <oneapi/dnnl/dnnl.h>
#include <utility>

namespace dtc::runtime::cpu {

namespace {

/// A handle of the library.
template <typename T, dnnl_status_t (*destroy)(T)> class Handle {
public:
  Handle() = default;
  Handle(Handle &&other) noexcept : value(std::exchange(other.value, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~Handle() {
    if (value)
      destroy(value);
  }
  T get() const { return value; }
  T *out() { return &value; }

private:
  T value = nullptr;
};
using Engine = Handle<dnnl_engine_t, dnnl_engine_destroy>;
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;
using Primitive = Handle<dnnl_primitive_t, dnnl_primitive_destroy>;
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Attributes = Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;

/// The engine of the host, or null.
dnnl_engine_t hostEngine() {
  static const Engine engine = [] {
    Engine created;
    if (dnnl_engine_create(created.out(), dnnl_cpu, 0) != dnnl_success)
      return Engine();
    return created;
  }();
  return engine.get();
}

/// A stream of this thread's own, or null.
dnnl_stream_t threadStream() {
  thread_local const Stream stream = [] {
    Stream created;
    if (dnnl_stream_create(created.out(), hostEngine(), dnnl_stream_default_flags) != dnnl_success)
      return Stream();
    return created;
  }();
  return stream.get();
}

bool describe(dnnl_memory_desc_t &desc, int64_t rows, int64_t columns, MatrixStrides strides,
              dnnl_data_type_t type) {
  LeadingDimension leading(rows, columns, strides);
  dnnl_dims_t dims = {rows, columns};
  dnnl_dims_t steps = {leading.transposed ? 1 : leading.size,
                       leading.transposed ? leading.size : 1};
  return dnnl_memory_desc_init_by_strides(&desc, 2, dims, type, steps) == dnnl_success;
}

} // namespace

struct Bf16Matmul::Library {
  dnnl_memory_desc_t a, b, c, scratch;
  Primitive primitive;
};

Bf16Matmul::Bf16Matmul(std::unique_ptr<Library> made)
    : library(std::move(made)), scratchBytes(dnnl_memory_desc_get_size(&library->scratch)) {}
Bf16Matmul::~Bf16Matmul() = default;

bool Bf16Matmul::isFast() {
  // The values of dnnl_cpu_isa_t contain the bits of the instruction sets they build on.
  static const bool fast =
      (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  return fast;
}

std::unique_ptr<const Bf16Matmul> Bf16Matmul::create(const GemmShape &shape, bool wideResult) {
  // The number of threads at creation is part of a primitive.
  SingleThreadedLibrary guard;
  auto library = std::make_unique<Library>();
  dnnl_matmul_desc_t matmul;
  Attributes attributes;
  PrimitiveDesc desc;
  bool created =
      hostEngine() && describe(library->a, shape.m, shape.k, shape.a, dnnl_bf16) &&
      describe(library->b, shape.k, shape.n, shape.b, dnnl_bf16) &&
      describe(library->c, shape.m, shape.n, shape.c, wideResult ? dnnl_f32 : dnnl_bf16) &&
      dnnl_matmul_desc_init(&matmul, &library->a, &library->b, nullptr, &library->c) ==
          dnnl_success &&
      // A scratchpad that belongs to the primitive would not serve several threads.
      dnnl_primitive_attr_create(attributes.out()) == dnnl_success &&
      dnnl_primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user) ==
          dnnl_success &&
      dnnl_primitive_desc_create(desc.out(), &matmul, attributes.get(), hostEngine(), nullptr) ==
          dnnl_success &&
      dnnl_primitive_create(library->primitive.out(), desc.get()) == dnnl_success;
  if (!created)
    return nullptr;
  library->scratch = *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  return std::unique_ptr<const Bf16Matmul>(new Bf16Matmul(std::move(library)));
}

bool Bf16Matmul::run(const BFloat16 *a, const BFloat16 *b, void *c, void *workspace) const {
  dnnl_stream_t stream = threadStream();
  if (!stream)
    return false;
  struct Operand {
    int argument;
    const dnnl_memory_desc_t *desc;
    const void *data;
  };
  const Operand operands[] = {{DNNL_ARG_SRC, &library->a, a},
                              {DNNL_ARG_WEIGHTS, &library->b, b},
                              {DNNL_ARG_DST, &library->c, c},
                              {DNNL_ARG_SCRATCHPAD, &library->scratch, workspace}};
  Memory memories[std::size(operands)];
  dnnl_exec_arg_t arguments[std::size(operands)];
  for (size_t i = 0; i < std::size(operands); ++i) {
    // The library does not write to what it reads.
    void *data = const_cast<void *>(operands[i].data);
    if (dnnl_memory_create(memories[i].out(), operands[i].desc, hostEngine(), data) != dnnl_success)
      return false;
    arguments[i] = {operands[i].argument, memories[i].get()};
  }
  SingleThreadedLibrary guard;
  return dnnl_primitive_execute(library->primitive.get(), stream,
                                static_cast<int>(std::size(arguments)),
                                arguments) == dnnl_success &&
         dnnl_stream_wait(stream) == dnnl_success;
}

} // namespace dtc::runtime::cpu
