# The sources of the fabric of GPUs, for NCCL and for its stand-in (test/standin/cuda), which has a LoadNccl.cpp of its own.
set(DTC_NCCL_SOURCES)
foreach(source
  PackedCollective.cpp
  Encode.cu
  NcclCommunicator.cpp
  NcclFabric.cpp
  NcclGroup.cpp
  NcclMessages.cpp
  NcclTransfers.cpp
  NcclWorld.cpp)
  list(APPEND DTC_NCCL_SOURCES "${CMAKE_CURRENT_LIST_DIR}/${source}")
endforeach()
