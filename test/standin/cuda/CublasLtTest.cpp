//===- CublasLtTest.cpp - Products on the stand-in of CUDA ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Float16.h"
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

} // namespace

} // namespace dtc::standin
