//===- CudnnDescriptorTest.cpp - Tests of cuDNN's descriptors ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <cudnn_graph.h>

namespace dtc::standin {

namespace {

class CudnnDescriptors : public StandinFixture {
protected:
  void SetUp() override {
    StandinFixture::SetUp();
    ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor),
              CUDNN_STATUS_SUCCESS);
  }
  void expectError(cudnnStatus_t found, cudnnStatus_t expected, const std::string &part) {
    EXPECT_EQ(found, expected);
    char text[1000];
    cudnnGetLastErrorString(text, sizeof(text));
    EXPECT_NE(std::string(text).find(part), std::string::npos) << text << "\nexpected: " << part;
  }
  cudnnBackendDescriptor_t tensor = nullptr;
  int64_t number = 8;
};

TEST_F(CudnnDescriptors, RefuseWhatTheyDoNotHave) {
  expectError(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_TYPE_INT64, 1,
                                       &number),
              CUDNN_STATUS_NOT_SUPPORTED, "which the stand-in does not have");
  expectError(
      cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT32, 1, &number),
      CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "CUDNN_ATTR_TENSOR_UNIQUE_ID");
  int64_t several[2] = {1, 2};
  expectError(
      cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 2, several),
      CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "2 elements, expected 1 to 1");
  cudnnBackendDescriptor_t other = nullptr;
  expectError(
      cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, &other),
      CUDNN_STATUS_NOT_SUPPORTED, "descriptor type 10");
}
TEST_F(CudnnDescriptors, AreCompleteOrNotFinalized) {
  expectError(cudnnBackendFinalize(tensor), CUDNN_STATUS_BAD_PARAM,
              "is not set in a CUDNN_BACKEND_"
              "TENSOR_DESCRIPTOR");
  int64_t found = 0;
  expectError(cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                       nullptr, &found),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
  cudnnBackendDescriptor_t operation = nullptr;
  ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, &operation),
            CUDNN_STATUS_SUCCESS);
  expectError(cudnnBackendSetAttribute(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "before it is finalized");
  EXPECT_EQ(cudnnBackendDestroyDescriptor(tensor), CUDNN_STATUS_SUCCESS);
  expectError(cudnnBackendDestroyDescriptor(tensor), CUDNN_STATUS_BAD_PARAM,
              "no descriptor that exists");
}

} // namespace

} // namespace dtc::standin
