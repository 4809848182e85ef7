//===- DataReadBenchmark.cpp - Reading samples, and mapping them ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A sample is a window of a file at a random place. The file has 1 GiB, all of it in the OS page
// cache, so that the call or the address translation is what it costs. The argument is the bytes of
// a sample: 1,025 tokens of 16 bits, and larger ones.
//
//===----------------------------------------------------------------------===//

#include "support/InputFile.h"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace dtc;

namespace {

constexpr uint64_t kFileBytes = uint64_t{1} << 30;

/// A file that is removed at the end of the program.
class File {
public:
  File() {
    int fd = mkstemp(path.data());
    std::vector<char> part(size_t{1} << 20, 1);
    for (uint64_t written = 0; fd >= 0 && written < kFileBytes; written += part.size())
      if (write(fd, part.data(), part.size()) != static_cast<ssize_t>(part.size()))
        break;
    if (fd >= 0)
      close(fd);
  }
  ~File() { unlink(path.c_str()); }

  static const std::string &get() {
    static File file;
    return file.path;
  }

private:
  std::string path = "/tmp/dtc-benchmark-XXXXXX";
};

/// Reads samples by `read(offset, bytes)`.
template <typename Read> void readSamples(benchmark::State &state, const Read &read) {
  std::mt19937_64 random(1);
  std::vector<std::byte> sample(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    read(random() % (kFileBytes - sample.size()), std::span(sample));
    benchmark::DoNotOptimize(sample.data());
    benchmark::ClobberMemory();
  }
}

} // namespace

static void inputFile(benchmark::State &state) {
  Expected<InputFile> file = InputFile::open(File::get());
  if (!file || file->size() != kFileBytes)
    return state.SkipWithError("cannot make a file of 1 GiB in /tmp");
  readSamples(state, [&](uint64_t offset, std::span<std::byte> out) {
    if (MaybeError error = file->read(offset, out))
      state.SkipWithError(error->message.c_str());
  });
}
BENCHMARK(inputFile)->Arg(2050)->Arg(8194)->Arg(65538);

static void mapping(benchmark::State &state) {
  int fd = open(File::get().c_str(), O_RDONLY | O_CLOEXEC);
  void *mapped = fd < 0 ? MAP_FAILED : mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0)
    close(fd);
  if (mapped == MAP_FAILED)
    return state.SkipWithError("cannot map the file");
  readSamples(state, [&](uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), static_cast<const std::byte *>(mapped) + offset, out.size());
  });
  munmap(mapped, kFileBytes);
}
BENCHMARK(mapping)->Arg(2050)->Arg(8194)->Arg(65538);
