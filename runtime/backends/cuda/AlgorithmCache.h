//===- AlgorithmCache.h - Algorithms of products, kept on disk ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A text file with a line for each product that was timed on some GPU: a checksum, a key, and the
// algorithm that was the fastest, as cuBLASLt has it. The key names the GPU, the version of
// cuBLASLt and the product. Lines whose checksum is wrong, and files that begin otherwise, are
// ignored; a file is replaced as a whole, with the lines that others have added meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ALGORITHMCACHE_H
#define DTC_RUNTIME_BACKENDS_CUDA_ALGORITHMCACHE_H

#include "support/Error.h"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace dtc::runtime::cuda {

/// Its functions may be called from any thread.
class AlgorithmCache {
public:
  /// An algorithm in the form that cuBLASLt calls opaque: it may be stored and used again with the
  /// same version.
  using Algorithm = std::array<uint64_t, 8>;

  /// The file need not exist; without a path the algorithms live as long as the cache.
  explicit AlgorithmCache(std::string path) : path(std::move(path)) {}

  /// Keys have no tabs and no line feeds.
  std::optional<Algorithm> find(const std::string &key);
  /// Keeps the algorithm unless there is one already; gives the one that is kept. Where the file
  /// cannot be written, the algorithms live as long as the cache, and error() says why.
  Algorithm keep(const std::string &key, const Algorithm &algorithm);
  MaybeError error() const;
  /// Forgets an algorithm that cannot be used.
  void forget(const std::string &key);

private:
  void read();
  MaybeError write();

  const std::string path;
  mutable std::mutex mutex;
  bool wasRead = false;
  std::map<std::string, Algorithm> algorithms;
  MaybeError failure;
};

/// The path of the file, where DTC_CUDA_CACHE does not name its folder: dtc/ in the user's folder
/// for caches. Empty where there is none.
std::string algorithmCachePath();

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ALGORITHMCACHE_H
