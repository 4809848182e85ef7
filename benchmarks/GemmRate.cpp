//===- GemmRate.cpp - Measured rate of the matrix library -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/GemmRate.h"

#include "benchmarks/Median.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

using namespace dtc::benchmarks;

template <typename Work> static double secondsOf(const Work &work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

GemmRate::GemmRate(int64_t size, int threads) : size(size), threads(threads) {
  auto elements = static_cast<size_t>(size * size);
  a.resize(elements);
  b.resize(elements);
  c.resize(elements);
  // Any values but zeros and denormals.
  for (size_t i = 0; i < elements; ++i) {
    a[i] = 0.5f + static_cast<float>(i % 13) / 13;
    b[i] = 0.25f - static_cast<float>(i % 7) / 7;
  }
}

GemmRates GemmRate::measure(int count) {
  omp_set_num_threads(threads);
  auto sgemm = [&] {
    if (dnnl_sgemm('N', 'N', size, size, size, 1, a.data(), size, b.data(), size, 0, c.data(),
                   size) != dnnl_success) {
      std::fputs("error: dnnl_sgemm failed\n", stderr);
      std::exit(1);
    }
  };

  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  dnnl::memory::desc type({size, size}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  dnnl::matmul primitive(dnnl::matmul::primitive_desc(engine, type, type, type));
#else
  dnnl::matmul primitive(dnnl::matmul::primitive_desc({type, type, type}, engine));
#endif
  dnnl::memory lhs(type, engine, a.data()), rhs(type, engine, b.data()),
      out(type, engine, c.data());
  auto matmul = [&] {
    primitive.execute(stream, {{DNNL_ARG_SRC, lhs}, {DNNL_ARG_WEIGHTS, rhs}, {DNNL_ARG_DST, out}});
    stream.wait();
  };

  if (!isWarm) {
    sgemm();
    matmul();
    isWarm = true;
  }
  std::vector<double> sgemmSeconds, matmulSeconds;
  for (int i = 0; i < count; ++i) {
    sgemmSeconds.push_back(secondsOf(sgemm));
    matmulSeconds.push_back(secondsOf(matmul));
  }
  auto n = static_cast<double>(size);
  double flops = 2 * n * n * n;
  return {flops / median(std::move(sgemmSeconds)), flops / median(std::move(matmulSeconds))};
}
