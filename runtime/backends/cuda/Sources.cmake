# The sources of the CUDA backend, for nvcc and for the stand-in of CUDA (test/standin/cuda), which has a LoadCublasLt.cpp
# of its own.
set(DTC_CUDA_SOURCES)
foreach(source
  AlgorithmCache.cpp
  Attention.cu
  AttentionGrad.cu
  AttentionGradByWarpgroups.cu
  Cache.cu
  Conv.cu
  Conversion.cu
  CrossEntropy.cu
  CudaBackend.cpp
  CudaDevice.cpp
  CudaError.cpp
  DataMovement.cu
  DotProducts.cu
  Dropout.cu
  Einsum.cu
  ElementwiseBinary.cu
  ElementwiseUnary.cu
  GatedActivation.cu
  HeldLaunches.cpp
  Indexing.cu
  Matmul.cpp
  NormGrads.cu
  Norms.cu
  Optimizer.cu
  Pooling.cu
  QuantizedBlocks.cu
  Reduce.cu
  Rotary.cu
  ScaledProducts.cu
  Sharding.cu
  Softmax.cu)
  list(APPEND DTC_CUDA_SOURCES "${CMAKE_CURRENT_LIST_DIR}/${source}")
endforeach()
