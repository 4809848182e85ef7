//===- GpuMemoryReport.cpp - What a run takes of a GPU, as text -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/GpuMemoryReport.h"

#include "plan/CommunicatorUse.h"
#include "support/Format.h"

#include <fmt/format.h>

namespace dtc {

std::string formatGpuMemory(const plan::Plan &plan, const NcclChannels &channels) {
  uint64_t arena = 0;
  NcclMemory nccl;
  for (int p = 0; p < plan.programs_size(); ++p) {
    NcclMemory own = estimateNcclMemory(communicatorNeeds(plan, p), channels);
    if (p == 0 || plan.programs(p).arena_bytes() + own.total() > arena + nccl.total()) {
      arena = plan.programs(p).arena_bytes();
      nccl = own;
    }
  }
  std::string text = "memory of a GPU, beside the workspace that its kernels need\n";
  auto row = [&](const char *kind, uint64_t bytes, const std::string &remark = "") {
    text += fmt::format("  {:<28} {:>12}{}\n", kind, formatBytes(bytes),
                        remark.empty() ? "" : "  " + remark);
  };
  row("arena of the plan", arena);
  row("libraries, kernels, graphs", kGpuLibraryBytes, "measured on an H100, with a margin");
  if (nccl.communicators > 0) {
    row("communicators of NCCL", nccl.structures, fmt::format("{}", nccl.communicators));
    auto each = [](int64_t count) {
      return fmt::format("{} channel{} each", count, count == 1 ? "" : "s");
    };
    row("  collectives", nccl.collectives, each(channels.collectives()));
    if (nccl.multicasts > 0)
      row("  sums in the switch", nccl.multicasts);
    if (nccl.messages > 0)
      row("  messages", nccl.messages, each(channels.messages()));
  }
  row("sum", arena + kGpuLibraryBytes + nccl.total());
  return text;
}

} // namespace dtc
