//===- Memory.cpp - Large aligned memory ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Memory.h"

#include "support/Format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dtc {

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

static uint64_t physicalMemoryBytes() {
  long pages = sysconf(_SC_PHYS_PAGES);
  long pageBytes = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || pageBytes <= 0)
    return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(pageBytes);
}

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

static bool contains(const std::vector<std::string> &list, const std::string &element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

namespace {

/// The folders of the control groups of memory. The folder of a group lies in its parent's.
struct ControlGroups {
  std::string root;  // the group that is at `point`
  std::string point; // a folder
  bool unified;      // version 2 of control groups
};

} // namespace

/// See proc_pid_mountinfo(5): "36 35 98:0 ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS".
static std::vector<ControlGroups> memoryGroups(const std::string &root) {
  std::vector<ControlGroups> groups;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::vector<std::string> fields = split(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 5 || fields.end() - dash < 4)
      continue;
    if (dash[1] == "cgroup2" || (dash[1] == "cgroup" && contains(split(dash[3], ','), "memory")))
      groups.push_back({fields[3], fields[4], dash[1] == "cgroup2"});
  }
  return groups;
}

/// The group of this process in the version of `groups`, from cgroups(7): "4:memory:/a/b", and
/// "0::/a/b" for version 2. Relative to the one at groups.point; empty if it is not below it.
static std::string groupOfProcess(const std::string &root, const ControlGroups &groups) {
  std::ifstream lines(root + "/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (groups.unified ? !controllers.empty() : !contains(split(controllers, ','), "memory"))
      continue;
    std::string path = line.substr(second + 1);
    if (groups.root != "/" && path.starts_with(groups.root))
      path.erase(0, groups.root.size());
    else if (groups.root != "/")
      return "";
    return path.starts_with("/") && path.find("/..") == std::string::npos ? path : "";
  }
  return "";
}

MemoryLimit memoryLimit(const std::string &root) {
  MemoryLimit limit{physicalMemoryBytes(), "this machine"};
  for (const ControlGroups &groups : memoryGroups(root)) {
    const char *name = groups.unified ? "memory.max" : "memory.limit_in_bytes";
    // A limit of a group is one of all groups in it.
    for (std::string group = groupOfProcess(root, groups);; group.erase(group.rfind('/'))) {
      std::string path = fmt::format("{}{}/{}", groups.point, group == "/" ? "" : group, name);
      // A group without a limit has "max" in the file, or a number beyond all memory.
      uint64_t bytes = 0;
      if (std::ifstream(root + path) >> bytes && bytes < limit.bytes)
        limit = {bytes, fmt::format("the control group of this process ({})", path)};
      if (group.empty())
        break;
    }
  }
  return limit;
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

PageMemory::PageMemory(PageMemory &&other) noexcept
    : begin(std::exchange(other.begin, nullptr)), length(std::exchange(other.length, 0)) {}

PageMemory &PageMemory::operator=(PageMemory &&other) noexcept {
  std::swap(begin, other.begin);
  std::swap(length, other.length);
  return *this;
}

PageMemory::~PageMemory() {
  if (begin)
    munmap(begin, length);
}

Expected<PageMemory> PageMemory::allocate(size_t bytes) {
  PageMemory memory;
  if (bytes == 0)
    return memory;
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return Error{fmt::format("cannot allocate {} ({} bytes): {}", formatBytes(bytes), bytes,
                             std::strerror(errno))};
  memory.begin = static_cast<std::byte *>(mapped);
  memory.length = bytes;
  // Matrices span many small pages; large ones spare the address translation. Advice may be
  // refused.
  if (bytes >= (size_t{4} << 20))
    madvise(mapped, bytes, MADV_HUGEPAGE);
  return memory;
}

MaybeError PageMemory::populate(size_t offset, size_t bytes) {
  bytes = std::min(bytes, length - std::min(offset, length));
  while (bytes > 0 && madvise(begin + offset, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINVAL) // before Linux 5.14: when each page is first written to
      return std::nullopt;
    if (errno != EINTR && errno != EAGAIN)
      return Error{fmt::format("cannot populate {} ({} bytes): {}", formatBytes(bytes), bytes,
                               std::strerror(errno))};
  }
  return std::nullopt;
}

} // namespace dtc
