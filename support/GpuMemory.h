//===- GpuMemory.h - What runs take of a GPU beside their plan ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The memory that NCCL takes is estimated before a run, for GPUs of one machine that write to each
// other's memory (NVLink). The sizes are those of NCCL 2.30 (github.com/NVIDIA/nccl, tag
// v2.30.7-1):
//
// - src/init.cc, computeBuffSizes(): a receiver has a buffer for each protocol, LL of
//   8 lines x 512 threads x 8 steps x 16 bytes, LL128 of 120 elements x 640 threads x 8 steps x
//   8 bytes, and Simple of 4 MiB.
// - src/transport/p2p.cc, p2pRecvSetup() and p2pSendSetup(): the buffers and 4 KiB of flags on the
//   receiver, 4 KiB of flags on the sender, each rounded up to 2 MiB (CUDA_IPC_MIN), for each
//   channel of each connection. A ring and a tree with the same peer share its connection.
// - src/transport/nvls.cc, ncclNvlsBufferSetup(): 2 x 8 steps of 128 KiB for each of 16 channels
//   and each member, where a switch adds (NVLS), which takes more than two GPUs.
// - src/graph/paths.cc, ncclTopoComputeP2pChannels(): messages have as many channels as
//   collectives, rounded up to a power of two.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_GPUMEMORY_H
#define DTC_SUPPORT_GPUMEMORY_H

#include <cstdint>
#include <string>
#include <vector>

namespace dtc {

/// Bytes of a GPU that each process takes beside plans and communicators: for the code of cuBLASLt,
/// cuDNN and kernels, which CUDA loads when it is used first, and for graphs, whose launches for
/// many tensors have up to 19 KiB of arguments each. On an H100, 590 MiB were measured for a plan
/// of one device, and 1.4 GiB, with communicators, for two processes with one each; the rest is a
/// margin.
inline constexpr uint64_t kGpuLibraryBytes = uint64_t{768} << 20;

/// The communication of a device with the members of its groups and with single devices.
struct CommunicatorNeeds {
  struct Group {
    int64_t members = 2;
    bool reducesAll = false; ///< has all-reduces, for which there are rings and trees
    bool hasRings = false;   ///< has all-gathers or reduce-scatters
    int64_t peers = 0;       ///< members that it exchanges messages with: all-to-all, permute
  };
  std::vector<Group> groups;
  int64_t sends = 0, receives = 0; ///< devices that it sends messages to and gets them from
};

struct NcclChannels {
  /// The number that NCCL chooses for collectives on eight H100 behind NVSwitch ("24 coll
  /// channels").
  static constexpr int64_t kCollectives = 24;
  /// NCCL's MAXCHANNELS.
  static constexpr int64_t kMost = 64;

  int64_t most = kCollectives; ///< of a communicator, by the option, NCCL or the environment
  bool multicasts = true;      ///< whether a switch may add (NVLS)

  int64_t collectives() const;
  /// Of a pair of GPUs that exchange messages: a power of two.
  int64_t messages() const;
};

/// Bytes of one GPU.
struct NcclMemory {
  int64_t communicators = 0;
  uint64_t structures = 0;  ///< of communicators without a connection
  uint64_t collectives = 0; ///< of connections of rings and trees
  uint64_t multicasts = 0;  ///< of buffers that a switch adds in
  uint64_t messages = 0;    ///< of connections of pairs

  uint64_t total() const { return structures + collectives + multicasts + messages; }
  /// "3 communicators of NCCL with up to 24 channels take 588.0 MiB (...)".
  std::string describe(const NcclChannels &channels) const;
};

NcclMemory estimateNcclMemory(const CommunicatorNeeds &needs, const NcclChannels &channels);

} // namespace dtc

#endif // DTC_SUPPORT_GPUMEMORY_H
