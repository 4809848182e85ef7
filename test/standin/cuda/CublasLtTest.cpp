//===- CublasLtTest.cpp - Products on the stand-in of CUDA ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Float8.h"
#include "test/lib/RandomCases.h"
#include "test/standin/cuda/StandinFixture.h"

#include <cublasLt.h>

namespace dtc::standin {

namespace {

template <typename T> constexpr cudaDataType_t kType = CUDA_R_32F;
template <> constexpr cudaDataType_t kType<double> = CUDA_R_64F;
template <> constexpr cudaDataType_t kType<Float16> = CUDA_R_16F;
template <> constexpr cudaDataType_t kType<BFloat16> = CUDA_R_16BF;

class CublasLtTest : public StandinFixture {
protected:
  void SetUp() override {
    StandinFixture::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    cublasLtDestroy(handle);
    StandinFixture::TearDown();
  }

  cublasLtHandle_t handle = nullptr;
};

/// One product D = alpha op(A) op(B) + beta C of small whole numbers, which all types hold.
template <typename T> class Product {
public:
  Product(std::mt19937_64 &random, cublasLtHandle_t handle) : handle(handle) {
    auto draw = [&](uint64_t most) { return 1 + random() % most; };
    m = draw(6), n = draw(6), k = draw(6), batches = draw(3);
    transA = random() % 2, transB = random() % 2;
    alpha = draw(2), beta = random() % 3;
    a = Operand(random, transA ? k : m, transA ? m : k, batches);
    b = Operand(random, transB ? n : k, transB ? k : n, batches);
    c = Operand(random, m, n, batches);
    constexpr bool kWide = sizeof(T) == 8;
    cublasLtMatmulDescCreate(&desc, kWide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                             kWide ? CUDA_R_64F : CUDA_R_32F);
    int32_t opA = transA ? CUBLAS_OP_T : CUBLAS_OP_N, opB = transB ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &opA, sizeof(opA));
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &opB, sizeof(opB));
  }
  ~Product() {
    cublasLtMatmulDescDestroy(desc);
    for (Operand *operand : {&a, &b, &c})
      cublasLtMatrixLayoutDestroy(operand->layout);
  }

  struct Operand {
    Operand() = default;
    Operand(std::mt19937_64 &random, int64_t rows, int64_t columns, int64_t batches)
        : rows(rows), columns(columns), rowMajor(random() % 2),
          leading((rowMajor ? columns : rows) + random() % 3),
          stride(leading * (rowMajor ? rows : columns) + random() % 4) {
      for (int64_t i = 0; i < batches * stride; ++i)
        values.push_back(T(static_cast<float>(int(random() % 9) - 4)));
      int32_t order = rowMajor ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
      int32_t count = static_cast<int32_t>(batches);
      cublasLtMatrixLayoutCreate(&layout, kType<T>, rows, columns, leading);
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, 4);
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, 4);
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                       8);
    }
    size_t index(int64_t batch, int64_t row, int64_t column) const {
      return batch * stride + (rowMajor ? row * leading + column : column * leading + row);
    }
    int64_t rows = 0, columns = 0;
    bool rowMajor = false;
    int64_t leading = 0, stride = 0;
    std::vector<T> values;
    cublasLtMatrixLayout_t layout = nullptr;
  };

  std::vector<T> expected() const {
    std::vector<T> result = c.values;
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t x = 0; x < k; ++x)
            sum +=
                static_cast<double>(
                    a.values[transA ? a.index(batch, x, i) : a.index(batch, i, x)]) *
                static_cast<double>(b.values[transB ? b.index(batch, j, x) : b.index(batch, x, j)]);
          T &element = result[c.index(batch, i, j)];
          element = T(alpha * sum + beta * static_cast<double>(element));
        }
    return result;
  }

  cublasStatus_t run(const T *aData, const T *bData, T *cData, void *workspace, size_t bytes,
                     cudaStream_t stream) const {
    float alpha32 = static_cast<float>(alpha), beta32 = static_cast<float>(beta);
    const void *alphaAt = &alpha32, *betaAt = &beta32;
    if (sizeof(T) == 8) {
      alphaAt = &alpha;
      betaAt = &beta;
    }
    return cublasLtMatmul(handle, desc, alphaAt, aData, a.layout, bData, b.layout, betaAt, cData,
                          c.layout, cData, c.layout, nullptr, workspace, bytes, stream);
  }

  cublasLtHandle_t handle;
  int64_t m, n, k, batches;
  bool transA, transB;
  double alpha, beta;
  Operand a, b, c;
  cublasLtMatmulDesc_t desc = nullptr;
};

template <typename T> class CublasLtTypedTest : public CublasLtTest {};
using Types = ::testing::Types<float, double, Float16, BFloat16>;
TYPED_TEST_SUITE(CublasLtTypedTest, Types);

TYPED_TEST(CublasLtTypedTest, RandomProducts) {
  using T = TypeParam;
  test::forEachRandomCase(100, [&](uint64_t seed) {
    this->restart(seed);
    std::mt19937_64 random(seed);
    Product<T> product(random, this->handle);
    cudaStream_t stream = this->openStream();
    T *a = this->upload(product.a.values, stream), *b = this->upload(product.b.values, stream);
    T *c = this->upload(product.c.values, stream);
    size_t bytes = random() % 2 ? 1024 : 0;
    std::byte *workspace = bytes ? this->template onDevice<std::byte>(bytes) : nullptr;
    ASSERT_EQ(product.run(a, b, c, workspace, bytes, stream), CUBLAS_STATUS_SUCCESS);
    std::vector<T> values = this->read(c, product.c.values.size(), stream);
    std::vector<T> expected = product.expected();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(static_cast<double>(values[i]), static_cast<double>(expected[i])) << i;
  });
}

TEST_F(CublasLtTest, Heuristic) {
  std::mt19937_64 random(3);
  Product<float> product(random, handle);
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulPreferenceCreate(&preference);
  auto ask = [&](cublasLtMatrixLayout_t b, size_t *bytes = nullptr) {
    cublasLtMatmulHeuristicResult_t result;
    int returned = -1;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, product.desc, product.a.layout, b, product.c.layout,
                                       product.c.layout, preference, 1, &result, &returned);
    EXPECT_EQ(returned, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    if (bytes && returned == 1)
      *bytes = result.workspaceSize;
    return status;
  };
  size_t bytes = 1;
  EXPECT_EQ(ask(product.b.layout, &bytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(bytes, 0u);
  uint64_t most = 1 << 20;
  EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(ask(product.b.layout, &bytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_GT(bytes, 0u);
  EXPECT_LE(bytes, most);
  // Another type, another size, an attribute of another size.
  auto wrong = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value, cublasStatus_t status) {
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, product.b.rows, product.b.columns, 100);
    int32_t batches = static_cast<int32_t>(product.batches);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, 4);
    EXPECT_EQ(ask(layout), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(ask(layout), status);
    cublasLtMatrixLayoutDestroy(layout);
  };
  wrong(CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_16F, CUBLAS_STATUS_NOT_SUPPORTED);
  wrong(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t(77), CUBLAS_STATUS_INVALID_VALUE);
  wrong(CUBLASLT_MATRIX_LAYOUT_LD, int64_t(0), CUBLAS_STATUS_INVALID_VALUE);
  wrong(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(9), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(
      cublasLtMatrixLayoutSetAttribute(product.a.layout, CUBLASLT_MATRIX_LAYOUT_LD, &bytes, 4),
      CUBLAS_STATUS_INVALID_VALUE);
  failCall(0, cudaErrorUnknown, "cublasLtMatmulAlgoGetHeuristic");
  EXPECT_EQ(ask(product.b.layout), CUBLAS_STATUS_EXECUTION_FAILED);
  cublasLtMatmulPreferenceDestroy(preference);
}

TEST_F(CublasLtTest, Operands) {
  collect();
  std::mt19937_64 random(3);
  Product<float> product(random, handle);
  cudaStream_t stream = openStream();
  float *a = upload(product.a.values, stream), *b = upload(product.b.values, stream);
  float *c = upload(product.c.values, stream);
  EXPECT_EQ(product.run(product.a.values.data(), b, c, nullptr, 0, stream),
            CUBLAS_STATUS_INVALID_VALUE);
  expectViolation("A is");
  EXPECT_EQ(product.run(a, b + product.b.values.size() - 1, c, nullptr, 0, stream),
            CUBLAS_STATUS_INVALID_VALUE);
  expectViolation("B is");
  EXPECT_EQ(product.run(a, b, c, pinned<std::byte>(8), 8, stream), CUBLAS_STATUS_INVALID_VALUE);
  expectViolation("the workspace is 8 bytes from byte 0 of an allocation of 8 bytes of pinned");
  failWork(counts().work ? 0 : 3, cudaErrorLaunchFailure); // after the three copies
  EXPECT_EQ(product.run(a, b, c, nullptr, 0, stream), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(product.run(a, b, c, nullptr, 0, stream), CUBLAS_STATUS_EXECUTION_FAILED);
}

/// A product of operands of 8 bits, and what cuBLASLt says to it.
struct Float8Product {
  cudaDataType_t a = CUDA_R_8F_E4M3, b = CUDA_R_8F_E4M3, d = CUDA_R_16BF;
  cublasOperation_t transA = CUBLAS_OP_T, transB = CUBLAS_OP_N;
  int64_t m = 16, n = 32, k = 48;
  const float *scaleA = nullptr, *scaleB = nullptr;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;

  cublasStatus_t run(cublasLtHandle_t handle, const void *aData, const void *bData, void *dData,
                     cudaStream_t stream) const {
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
      EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
                CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(transA));
    set(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(transB));
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scaleA);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scaleB);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, m);
    auto layoutOf = [](cudaDataType_t type, bool transposed, int64_t rows, int64_t columns) {
      cublasLtMatrixLayout_t layout = nullptr;
      if (transposed)
        std::swap(rows, columns);
      cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                 static_cast<uint64_t>(columns), rows);
      return layout;
    };
    cublasLtMatrixLayout_t left = layoutOf(a, transA == CUBLAS_OP_T, m, k);
    cublasLtMatrixLayout_t right = layoutOf(b, transB == CUBLAS_OP_T, k, n);
    cublasLtMatrixLayout_t result = layoutOf(d, false, m, n);
    const float one = 1, zero = 0;
    cublasStatus_t status =
        cublasLtMatmul(handle, desc, &one, aData, left, bData, right, &zero, dData, result, dData,
                       result, nullptr, nullptr, 0, stream);
    for (cublasLtMatrixLayout_t layout : {left, right, result})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(desc);
    return status;
  }
};

TEST_F(CublasLtTest, ProductsOf8Bits) {
  std::mt19937_64 random(5);
  std::vector<Float8E4M3> left(16 * 48);
  std::vector<Float8E5M2> right(48 * 32);
  for (Float8E4M3 &value : left)
    value = Float8E4M3(static_cast<float>(int(random() % 9) - 4));
  for (Float8E5M2 &value : right)
    value = Float8E5M2(static_cast<float>(int(random() % 9) - 4));
  cudaStream_t stream = openStream();
  auto *a = upload(left, stream);
  auto *b = upload(right, stream);
  auto *d = onDevice<float>(16 * 32);
  auto *scales = upload(std::vector<float>{0.5F, 0.25F}, stream);
  Float8Product product{
      .b = CUDA_R_8F_E5M2, .d = CUDA_R_32F, .scaleA = scales, .scaleB = scales + 1};
  ASSERT_EQ(product.run(handle, a, b, d, stream), CUBLAS_STATUS_SUCCESS);
  std::vector<float> found = read(d, 16 * 32, stream);
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 32; ++j) {
      float sum = 0;
      for (size_t x = 0; x < 48; ++x)
        sum += left[i * 48 + x] * right[j * 48 + x];
      ASSERT_EQ(found[j * 16 + i], sum / 8) << i << ", " << j;
    }
}

TEST_F(CublasLtTest, RefusesProductsOf8BitsAsGpusDo) {
  cudaStream_t stream = openStream();
  auto *a = onDevice<std::byte>(1 << 14), *b = onDevice<std::byte>(1 << 14),
       *d = onDevice<std::byte>(1 << 14);
  auto expectRefusal = [&](const Float8Product &product) {
    EXPECT_EQ(product.run(handle, a, b, d, stream), CUBLAS_STATUS_NOT_SUPPORTED);
  };
  EXPECT_EQ(Float8Product().run(handle, a, b, d, stream), CUBLAS_STATUS_SUCCESS);
  expectRefusal({.a = CUDA_R_8F_E5M2, .b = CUDA_R_8F_E5M2});
  expectRefusal({.b = CUDA_R_16BF});
  expectRefusal({.d = CUDA_R_64F});
  expectRefusal({.transA = CUBLAS_OP_N});
  expectRefusal({.transB = CUBLAS_OP_T});
  for (int64_t odd : {8, 24}) {
    expectRefusal({.m = odd});
    expectRefusal({.n = odd});
    expectRefusal({.k = odd});
  }
  EXPECT_EQ(Float8Product().run(handle, a + 8, b, d, stream), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Float8Product().run(handle, a, b + 1, d, stream), CUBLAS_STATUS_NOT_SUPPORTED);
  // Scales are of operands of 8 bits alone.
  auto *scale = onDevice<float>(1);
  expectRefusal({.a = CUDA_R_16BF, .b = CUDA_R_16BF, .scaleA = scale});
  // Epilogues of forward passes alone, with a result that has the type of the bias.
  auto *bias = onDevice<BFloat16>(48), *aux = onDevice<BFloat16>(16 * 32);
  for (uint32_t epilogue : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS,
                            CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_GELU_AUX}) {
    Float8Product product{.epilogue = epilogue, .bias = bias, .aux = aux};
    EXPECT_EQ(product.run(handle, a, b, d, stream), CUBLAS_STATUS_SUCCESS) << epilogue;
    product.d = CUDA_R_32F;
    expectRefusal(product);
  }
  for (uint32_t epilogue :
       {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB})
    expectRefusal({.epilogue = epilogue, .bias = bias, .aux = aux});
}

} // namespace

} // namespace dtc::standin
