//===- Bf16Matmul.cpp - Products of bf16 by oneDNN ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Bf16Matmul.h"

#include "runtime/backends/cpu/GemmGrid.h"
#include "runtime/backends/cpu/OneDnn.h"

namespace dtc::runtime::cpu {

namespace {

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

std::unique_ptr<const Bf16Matmul> Bf16Matmul::create(const GemmShape &shape, bool wideResult) {
  // The number of threads at creation is part of a primitive.
  SingleThreadedLibrary guard;
  auto library = std::make_unique<Library>();
  dnnl_matmul_desc_t matmul;
  PrimitiveAttributes attributes;
  PrimitiveDesc desc;
  bool created =
      hostEngine() && describe(library->a, shape.m, shape.k, shape.a, dnnl_bf16) &&
      describe(library->b, shape.k, shape.n, shape.b, dnnl_bf16) &&
      describe(library->c, shape.m, shape.n, shape.c, wideResult ? dnnl_f32 : dnnl_bf16) &&
      dnnl_matmul_desc_init(&matmul, &library->a, &library->b, nullptr, &library->c) ==
          dnnl_success &&
      setUserScratchpad(attributes) &&
      dnnl_primitive_desc_create(desc.out(), &matmul, attributes.get(), hostEngine(), nullptr) ==
          dnnl_success &&
      dnnl_primitive_create(library->primitive.out(), desc.get()) == dnnl_success;
  if (!created)
    return nullptr;
  library->scratch = *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  return std::unique_ptr<const Bf16Matmul>(new Bf16Matmul(std::move(library)));
}

bool Bf16Matmul::run(const BFloat16 *a, const BFloat16 *b, void *c, void *workspace) const {
  const PrimitiveOperand operands[] = {{DNNL_ARG_SRC, &library->a, a},
                                       {DNNL_ARG_WEIGHTS, &library->b, b},
                                       {DNNL_ARG_DST, &library->c, c},
                                       {DNNL_ARG_SCRATCHPAD, &library->scratch, workspace}};
  return runPrimitive(library->primitive, operands);
}

} // namespace dtc::runtime::cpu
