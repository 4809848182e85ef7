//===- mpi-all-reduce.cpp - All-reduce of dtc and of MPI ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// mpirun -n 2 dtc-benchmark-mpi-all-reduce: for each size the median time that the slowest process
// takes for an AllReduce of f32 by the fabric of processes and by MPI_Allreduce, in turns.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Median.h"
#include "runtime/fabrics/mpi/MpiMessages.h"
#include "runtime/fabrics/processes/ProcessCollective.h"
#include "tools/CommandLine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#define OMPI_SKIP_MPICXX 1 // the functions of C alone
#include <mpi.h>
#include <numeric>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;
using dtc::benchmarks::median;

/// The seconds of the slowest process.
template <typename Work> static double secondsOf(const Work &work) {
  MPI_Barrier(MPI_COMM_WORLD);
  auto begin = std::chrono::steady_clock::now();
  work();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

static int run(Mpi &mpi) {
  auto messages = mpi.openMessages();
  if (!messages) {
    std::fprintf(stderr, "%s\n", messages.error().message.c_str());
    return 1;
  }
  std::vector<int64_t> members(static_cast<size_t>(mpi.numProcesses()));
  std::iota(members.begin(), members.end(), int64_t{0});
  auto processOf = [](int64_t device) { return device; };
  ProcessCollective collective(**messages, ProcessGroup(members, processOf, mpi.process()), 7,
                               HostSharing::Memory);
  if (mpi.process() == 0)
    std::printf("%10s  %12s  %12s  %s\n", "bytes", "dtc, us", "MPI, us", "MPI's time / dtc's");
  for (size_t bytes = 4; bytes <= size_t{64} << 20; bytes *= 4) {
    auto count = static_cast<int64_t>(bytes / sizeof(float));
    std::vector<float> values(static_cast<size_t>(count), 1), sums(values);
    CollectiveSpec spec;
    spec.kind = CollectiveKind::AllReduce;
    spec.input = {DType::F32, {count}};
    spec.members = mpi.numProcesses();
    CollectiveOperands operands{values.data(), sums.data()};
    std::span<const CollectiveOperands> ofMember(&operands, 1);
    std::vector<double> own, theirs;
    for (int round = 0; round < (bytes > (1 << 20) ? 15 : 60); ++round) {
      own.push_back(secondsOf([&] { (void)collective.run({&spec, 1}, {&ofMember, 1}); }));
      theirs.push_back(secondsOf([&] {
        MPI_Allreduce(values.data(), sums.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      }));
    }
    if (mpi.process() == 0)
      std::printf("%10zu  %12.1f  %12.1f  %.2f\n", bytes, 1e6 * median(own), 1e6 * median(theirs),
                  median(theirs) / median(own));
  }
  return 0;
}

static int runMain(int argc, char **argv) {
  auto mpi = Mpi::start();
  return mpi ? run(**mpi) : fail(mpi.error().message);
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
