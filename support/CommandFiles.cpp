//===- CommandFiles.cpp - The files of one command ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/CommandFiles.h"

#include "support/FilePath.h"

#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <sys/stat.h>
#include <tuple>

namespace dtc {

/// Equal for two paths of one file; nullopt where nothing can be written over. For a file that does
/// not exist, the place where it would be made.
static std::optional<std::tuple<dev_t, ino_t, std::string>> identityOf(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return std::tuple(dev_t{0}, ino_t{0}, followLinks(path));
  if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
    return std::nullopt;
  return std::tuple(status.st_dev, status.st_ino, std::string());
}

void CommandFiles::reads(const std::string &what, const std::string &path) {
  if (!path.empty())
    inputs.push_back({what, path});
}

void CommandFiles::writes(const std::string &what, const std::string &path) {
  if (!path.empty())
    outputs.push_back({what, path});
}

void CommandFiles::writesInto(const std::string &what, const std::string &folder,
                              const std::string &file) {
  writes(what, folder);
  if (!folder.empty())
    writes(what, (std::filesystem::path(folder) / file).string());
}

void CommandFiles::replacesFolder(const std::string &what, const std::string &folder) {
  writes(what, folder);
  if (!folder.empty())
    outputs.back().isFolder = true;
}

static bool liesIn(const std::string &path, const std::string &folder) {
  std::string parent = followLinks(folder);
  return followLinks(path).starts_with(parent.ends_with('/') ? parent : parent + '/');
}

MaybeError CommandFiles::check() const {
  auto overwrites = [](const Use &use, const char *which, const Use &other) {
    return Error{fmt::format("{} {} would overwrite {} of the same command, {} {}; name another "
                             "file",
                             use.what, use.path, which, other.what, other.path)};
  };
  std::map<std::tuple<dev_t, ino_t, std::string>, const Use *> read, written;
  for (const Use &use : inputs)
    if (auto identity = identityOf(use.path))
      read.try_emplace(*identity, &use);
  for (const Use &use : outputs) {
    auto identity = identityOf(use.path);
    if (!identity)
      continue;
    if (auto input = read.find(*identity); input != read.end())
      return overwrites(use, "an input", *input->second);
    if (auto [other, isFirst] = written.try_emplace(*identity, &use); !isFirst)
      return overwrites(use, "another output", *other->second);
  }
  for (const Use &folder : outputs) {
    if (!folder.isFolder)
      continue;
    for (const Use &use : inputs)
      if (liesIn(use.path, folder.path))
        return overwrites(folder, "an input", use);
    for (const Use &use : outputs)
      if (liesIn(use.path, folder.path))
        return overwrites(folder, "another output", use);
  }
  return std::nullopt;
}

} // namespace dtc
