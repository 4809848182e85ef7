//===- CheckpointFolder.cpp - The checkpoints of a run --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointFolder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dtc::runtime {

namespace fs = std::filesystem;

static constexpr std::string_view kStepPrefix = "step-";
static constexpr std::string_view kTemporaryPrefix = ".tmp-";

std::string checkpointName(int64_t step) { return fmt::format("{}{:07}", kStepPrefix, step); }

/// The step of a name that checkpointName() gives.
static std::optional<int64_t> stepOf(const std::string &name) {
  int64_t step = 0;
  if (!name.starts_with(kStepPrefix))
    return std::nullopt;
  std::from_chars(name.data() + kStepPrefix.size(), name.data() + name.size(), step);
  return step >= 0 && name == checkpointName(step) ? std::optional(step) : std::nullopt;
}

Expected<std::vector<int64_t>> checkpointSteps(const std::string &folder) {
  std::vector<int64_t> steps;
  std::error_code code;
  fs::directory_iterator entries(folder, code), end;
  if (code == std::errc::no_such_file_or_directory)
    return steps;
  for (; !code && entries != end; entries.increment(code))
    if (std::optional<int64_t> step = stepOf(entries->path().filename().string()))
      steps.push_back(*step);
  if (code)
    return Error{fmt::format("{}: cannot read: {}", folder, code.message())};
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// A name is on the disk once its folder is.
static MaybeError flushFolder(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int code = fd < 0 || fsync(fd) != 0 ? errno : 0;
  if (fd >= 0)
    close(fd);
  // A file system that cannot flush folders says so.
  if (code == 0 || code == EINVAL)
    return std::nullopt;
  return Error{fmt::format("{}: cannot write: {}", path, std::strerror(code))};
}

static MaybeError removeAll(const std::string &path) {
  std::error_code code;
  fs::remove_all(path, code);
  return code ? MaybeError(Error{fmt::format("{}: cannot remove: {}", path, code.message())})
              : std::nullopt;
}

static MaybeError renameTo(const std::string &from, const std::string &to) {
  if (rename(from.c_str(), to.c_str()) == 0)
    return std::nullopt;
  return Error{fmt::format("{}: cannot rename {} to it: {}", to, from, std::strerror(errno))};
}

static std::string withoutSlash(const std::string &path) {
  std::string folder = fs::path(path).lexically_normal().string();
  if (folder.size() > 1 && folder.ends_with('/'))
    folder.pop_back();
  return folder;
}

/// Why `folder` cannot be made. `made` is the error of making it.
static std::string whyNoFolder(const std::string &folder, const std::error_code &made) {
  std::error_code ignored;
  if (fs::exists(folder, ignored))
    return "is not a folder";
  if (fs::is_symlink(fs::symlink_status(folder, ignored)))
    return fmt::format(
        "is a link to {}, which does not exist; make that folder, or remove the link",
        fs::read_symlink(folder, ignored).string());
  return fmt::format("cannot make the folder: {}", made.message());
}

CheckpointFolder CheckpointFolder::follow(const std::string &path) {
  return CheckpointFolder(withoutSlash(path), std::nullopt);
}

Expected<CheckpointFolder> CheckpointFolder::open(const std::string &path) {
  std::error_code code;
  std::string folder = withoutSlash(path);
  if (fs::create_directories(folder, code)) {
    fs::path parent = fs::path(folder).parent_path();
    if (MaybeError error = flushFolder(parent.empty() ? "." : parent.string()))
      return *error;
  } else if (std::error_code ignored; !fs::is_directory(folder, ignored)) {
    return Error{fmt::format("{}: {}", path, whyNoFolder(folder, code))};
  }
  Expected<LockedFile> lock = LockedFile::open(folder + "/.lock");
  if (!lock)
    return lock.error();
  CheckpointFolder result(folder, std::move(*lock));
  fs::directory_iterator entries(folder, code), end;
  std::vector<std::string> leftovers;
  for (; !code && entries != end; entries.increment(code))
    if (entries->path().filename().string().starts_with(kTemporaryPrefix))
      leftovers.push_back(entries->path().string());
  if (code)
    return Error{fmt::format("{}: cannot read: {}", path, code.message())};
  for (const std::string &leftover : leftovers)
    if (MaybeError error = removeAll(leftover))
      return *error;
  return result;
}

Expected<std::optional<Checkpoint>> CheckpointFolder::newest(std::vector<std::string> &refused) {
  Expected<std::vector<int64_t>> steps = checkpointSteps(folder);
  if (!steps)
    return steps.error();
  for (size_t i = steps->size(); i-- > 0;) {
    int64_t step = (*steps)[i];
    Expected<Checkpoint> checkpoint = Checkpoint::open(pathOf(step));
    MaybeError error = checkpoint ? checkpoint->verify() : checkpoint.error();
    if (!error && checkpoint->manifest().position.step != step)
      error = Error{fmt::format("{}: is the checkpoint of step {}", pathOf(step),
                                checkpoint->manifest().position.step)};
    if (!error)
      return std::optional(std::move(*checkpoint));
    refused.push_back(error->message);
    refusedSteps.insert(step);
  }
  if (refused.empty())
    return std::optional<Checkpoint>();
  return Error{fmt::format("{}: no checkpoint can be used; to start anew, remove them or name "
                           "another folder: {}",
                           folder, fmt::join(refused, "; "))};
}

std::string CheckpointFolder::temporaryPath(int64_t step) const {
  return fmt::format("{}/{}{}", folder, kTemporaryPrefix, checkpointName(step));
}

MaybeError CheckpointFolder::begin(int64_t step) const {
  std::string path = temporaryPath(step);
  if (MaybeError error = removeAll(path))
    return error;
  if (mkdir(path.c_str(), 0777) != 0)
    return Error{fmt::format("{}: cannot make the folder: {}", path, std::strerror(errno))};
  return std::nullopt;
}

MaybeError CheckpointFolder::commit(int64_t step) const {
  std::string path = temporaryPath(step);
  if (MaybeError error = flushFolder(path))
    return error;
  // A link counts where it exists itself, wherever it leads.
  if (std::error_code code;
      refusedSteps.count(step) && fs::exists(fs::symlink_status(pathOf(step), code)))
    if (MaybeError error = remove(step))
      return error;
  if (MaybeError error = renameTo(path, pathOf(step)))
    return error;
  return flushFolder(folder);
}

void CheckpointFolder::discard(int64_t step) const { (void)removeAll(temporaryPath(step)); }

MaybeError CheckpointFolder::remove(int64_t step) const {
  // Under its own name it is whole or not there, also if the process ends.
  std::string path = fmt::format("{}/{}old-{}", folder, kTemporaryPrefix, checkpointName(step));
  if (MaybeError error = renameTo(pathOf(step), path))
    return error;
  return removeAll(path);
}

MaybeError CheckpointFolder::keepNewest(int64_t step, int64_t count) const {
  Expected<std::vector<int64_t>> steps = checkpointSteps(folder);
  if (!steps)
    return steps.error();
  // A refused one after this step is of a trajectory that the run comes to again.
  std::erase_if(*steps, [&](int64_t other) { return other > step; });
  for (size_t i = steps->size(); i-- > 0;) {
    bool isGood = (*steps)[i] == step || !refusedSteps.count((*steps)[i]);
    if (count > 0) {
      count -= isGood;
      continue;
    }
    if (MaybeError error = remove((*steps)[i]))
      return error;
  }
  return std::nullopt;
}

} // namespace dtc::runtime
