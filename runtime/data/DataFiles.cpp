//===- DataFiles.cpp - The files of a data set ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataFiles.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <glob.h>
#include <map>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utility>

namespace dtc::runtime {

namespace {
struct FoundFile {
  std::string path, pattern;
};
} // namespace

/// Appends the files that match.
static MaybeError findMatches(const std::string &pattern, std::vector<FoundFile> &files) {
  struct stat status;
  bool isPattern = pattern.find_first_of("*?[") != std::string::npos;
  if (!isPattern || stat(pattern.c_str(), &status) == 0) {
    files.push_back({pattern, pattern});
    return std::nullopt;
  }
  static thread_local std::string failure; // of a folder; the callback gets no pointer of ours
  failure.clear();
  glob_t matches{};
  int result = glob(
      pattern.c_str(), GLOB_NOSORT,
      [](const char *path, int code) {
        // A path that does not exist, or is no folder, has no match.
        if (code == ENOENT || code == ENOTDIR)
          return 0;
        failure = fmt::format("{}: {}", path, std::strerror(code));
        return 1;
      },
      &matches);
  for (size_t i = 0; result == 0 && i < matches.gl_pathc; ++i)
    files.push_back({matches.gl_pathv[i], pattern});
  globfree(&matches);
  if (result == 0)
    return std::nullopt;
  if (result == GLOB_NOMATCH)
    return Error{fmt::format("{}: no file matches this pattern; * and ? stand for characters of "
                             "names in one folder",
                             pattern)};
  return Error{fmt::format("{}: cannot look for files: {}", pattern,
                           failure.empty() ? "out of memory" : failure)};
}

/// Whether a file is there twice, by the same path or as another name of it.
static MaybeError checkDistinct(const std::vector<FoundFile> &files) {
  std::map<std::pair<dev_t, ino_t>, const FoundFile *> seen;
  for (const FoundFile &file : files) {
    struct stat status;
    if (stat(file.path.c_str(), &status) != 0)
      continue; // opening it says why
    auto [first, isNew] = seen.try_emplace({status.st_dev, status.st_ino}, &file);
    if (isNew)
      continue;
    const FoundFile &other = *first->second;
    auto nameOf = [](const FoundFile &each) {
      return each.pattern == each.path ? each.path
                                       : fmt::format("{} of {}", each.path, each.pattern);
    };
    if (other.path == file.path)
      return Error{
          fmt::format("{}: is given twice{}; give each file once", file.path,
                      other.pattern == file.pattern
                          ? ""
                          : fmt::format(", by {} and by {}", other.pattern, file.pattern))};
    return Error{
        fmt::format("{} and {} are one file; give each file once", nameOf(other), nameOf(file))};
  }
  return std::nullopt;
}

Expected<std::vector<std::string>> findDataFiles(const std::vector<std::string> &patterns) {
  std::vector<FoundFile> files;
  for (const std::string &pattern : patterns)
    if (MaybeError error = findMatches(pattern, files))
      return *error;
  std::stable_sort(files.begin(), files.end(),
                   [](const FoundFile &a, const FoundFile &b) { return a.path < b.path; });
  if (MaybeError error = checkDistinct(files))
    return *error;
  std::vector<std::string> paths;
  for (FoundFile &file : files)
    paths.push_back(std::move(file.path));
  return paths;
}

MaybeError allowOpenFiles(size_t count) {
  constexpr rlim_t others = 128; // plans, metrics, libraries
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return std::nullopt; // opening them will tell
  rlim_t wanted = count + others;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted)
    return std::nullopt;
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < count)
    return Error{fmt::format("{} files are more than this process may have open, which is {}; "
                             "raise the limit (ulimit -Hn), or join them to fewer files",
                             count, limit.rlim_max)};
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  return std::nullopt;
}

} // namespace dtc::runtime
