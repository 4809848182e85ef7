//===- AlgorithmCache.cpp - Algorithms of products, kept on disk ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/AlgorithmCache.h"

#include "support/AtomicFile.h"
#include "support/ReadText.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>

namespace dtc::runtime::cuda {

namespace fs = std::filesystem;

/// The first line of a file; another number means another form of lines.
static constexpr std::string_view kHeader = "dtc algorithms of products 1";

/// FNV-1a (Fowler, Noll, Vo).
static uint64_t checksum(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : text)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

/// Takes the next field, up to a tab or the end.
static std::string_view takeField(std::string_view &line) {
  size_t tab = std::min(line.find('\t'), line.size());
  std::string_view field = line.substr(0, tab);
  line.remove_prefix(std::min(tab + 1, line.size()));
  return field;
}

static std::optional<uint64_t> parseHex(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

static std::string formatEntry(const std::string &key, const AlgorithmCache::Algorithm &algorithm) {
  std::string text = key;
  for (uint64_t word : algorithm)
    text += fmt::format("\t{:x}", word);
  return text;
}

static std::optional<std::pair<std::string, AlgorithmCache::Algorithm>>
parseLine(std::string_view line) {
  std::optional<uint64_t> expected = parseHex(takeField(line));
  if (!expected || *expected != checksum(line))
    return std::nullopt;
  std::string key(takeField(line));
  AlgorithmCache::Algorithm algorithm;
  for (uint64_t &word : algorithm) {
    std::optional<uint64_t> value = parseHex(takeField(line));
    if (!value)
      return std::nullopt;
    word = *value;
  }
  return std::pair(std::move(key), algorithm);
}

/// Entries that the cache has already stay. A file that cannot be read has none.
void AlgorithmCache::read() {
  std::error_code none;
  Expected<std::string> text =
      path.empty() || !fs::is_regular_file(path, none) ? std::string() : readText(path);
  if (!text)
    return;
  std::string_view left = *text;
  for (bool isFirst = true; !left.empty(); isFirst = false) {
    size_t end = std::min(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (isFirst && line != kHeader)
      return;
    if (auto entry = parseLine(line))
      algorithms.insert(std::move(*entry));
  }
}

MaybeError AlgorithmCache::write() {
  if (path.empty())
    return std::nullopt;
  read(); // what others have added
  std::string text = std::string(kHeader) + "\n";
  for (const auto &[key, algorithm] : algorithms) {
    std::string entry = formatEntry(key, algorithm);
    text += fmt::format("{:x}\t{}\n", checksum(entry), entry);
  }
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  return writeTextFile(path, text);
}

std::optional<AlgorithmCache::Algorithm> AlgorithmCache::find(const std::string &key) {
  std::lock_guard lock(mutex);
  if (!wasRead)
    read();
  wasRead = true;
  auto found = algorithms.find(key);
  return found == algorithms.end() ? std::nullopt : std::optional(found->second);
}

AlgorithmCache::Algorithm AlgorithmCache::keep(const std::string &key, const Algorithm &algorithm) {
  std::lock_guard lock(mutex);
  auto [place, isNew] = algorithms.emplace(key, algorithm);
  Algorithm kept = place->second;
  if (isNew && !failure)
    failure = write();
  return kept;
}

void AlgorithmCache::forget(const std::string &key) {
  std::lock_guard lock(mutex);
  algorithms.erase(key);
}

MaybeError AlgorithmCache::error() const {
  std::lock_guard lock(mutex);
  return failure;
}

std::string algorithmCachePath() {
  auto inFolder = [](const char *variable, const char *rest) -> std::string {
    const char *folder = std::getenv(variable);
    return folder && *folder ? fs::path(folder) / rest : fs::path();
  };
  for (auto [variable, rest] : {std::pair("DTC_CUDA_CACHE", "products.txt"),
                                std::pair("XDG_CACHE_HOME", "dtc/products.txt"),
                                std::pair("HOME", ".cache/dtc/products.txt")})
    if (std::string path = inFolder(variable, rest); !path.empty())
      return path;
  return "";
}

} // namespace dtc::runtime::cuda
