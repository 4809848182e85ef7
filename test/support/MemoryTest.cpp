//===- MemoryTest.cpp - Tests of memory limits ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Memory.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace memoryTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

/// The files of a system in a folder.
class MemoryLimits : public ::testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(dir.path(path)).parent_path());
    dir.write(path, text);
  }
  /// With lines of other file systems around.
  void mount(const std::string &line) {
    write("proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" + line +
                                     "\nbroken line\n40 22 0:40 / /tmp rw - tmpfs tmpfs rw\n");
  }
  MemoryLimit limit() const { return memoryLimit(dir.path("")); }

  TempDir dir;
  const uint64_t machine = memoryLimit(dir.path("none")).bytes;
};

} // namespace

TEST_F(MemoryLimits, AMachineHasItsMemory) {
  EXPECT_GT(machine, 64u << 20);
  EXPECT_LT(machine, uint64_t{1} << 50);
  EXPECT_EQ(limit().bytes, machine);
  EXPECT_EQ(limit().holder, "this machine");
  EXPECT_LE(memoryLimit().bytes, machine);
}

TEST_F(MemoryLimits, OfAContainerWithItsOwnView) {
  mount("31 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw");
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(limit().bytes, 1u << 20);
  EXPECT_EQ(limit().holder, "the control group of this process (/sys/fs/cgroup/memory.max)");
}

TEST_F(MemoryLimits, TheSmallestOfNestedGroupsHolds) {
  mount("31 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate");
  write("proc/self/cgroup", "0::/user.slice/job/step\n");
  write("sys/fs/cgroup/user.slice/memory.max", "4194304\n");
  write("sys/fs/cgroup/user.slice/job/memory.max", "2097152\n");
  write("sys/fs/cgroup/user.slice/job/step/memory.max", "max\n");
  EXPECT_EQ(limit().bytes, 2u << 20);
  EXPECT_EQ(limit().holder,
            "the control group of this process (/sys/fs/cgroup/user.slice/job/memory.max)");
  // Groups beside it do not count.
  write("sys/fs/cgroup/other/memory.max", "1\n");
  EXPECT_EQ(limit().bytes, 2u << 20);
}

TEST_F(MemoryLimits, WithoutALimitItIsTheMachine) {
  mount("31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/memory.max", "max\n");
  write("sys/fs/cgroup/memory.max", "999999999999999999999999\n"); // too large a number
  EXPECT_EQ(limit().bytes, machine);
  EXPECT_EQ(limit().holder, "this machine");
}

TEST_F(MemoryLimits, OfVersionOne) {
  mount("35 22 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "36 22 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "37 22 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/a/b\n0::/u\n");
  write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3145728\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit().bytes, 3u << 20);
}

TEST_F(MemoryLimits, OfAContainerInTheHostsView) {
  // The root of the mount that the container sees is its own group on the host.
  mount("36 22 0:31 /docker/abc /sys/fs/cgroup/memory ro master:12 - cgroup cgroup rw,memory");
  write("proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
  write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(limit().bytes, 1u << 20);
  // A process from outside of what is mounted.
  for (const char *group : {"/docker/abcdef", "/elsewhere", "/../.."}) {
    write("proc/self/cgroup", std::string("4:memory:") + group + "\n");
    EXPECT_EQ(limit().bytes, 2u << 20) << group;
  }
}

static bool isResident(const PageMemory &memory, size_t offset, size_t bytes) {
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(mincore(memory.data() + offset, bytes, pages.data()), 0);
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

TEST(PageMemory, PopulateBacksPagesWithMemory) {
  if (sysconf(_SC_PAGE_SIZE) != 4096)
    GTEST_SKIP() << "pages of another size";
  constexpr size_t kBytes = (3 << 20) + 100;
  PageMemory memory = std::move(*PageMemory::allocate(kBytes));
  memory.data()[5] = std::byte{7};
  EXPECT_FALSE(isResident(memory, 0, kBytes));
  ASSERT_OK(memory.populate(1 << 20, 1 << 20));
  EXPECT_TRUE(isResident(memory, 1 << 20, 1 << 20));
  EXPECT_FALSE(isResident(memory, 2 << 20, kBytes - (2 << 20)));
  ASSERT_OK(memory.populate(0, kBytes + 5000)); // up to its end
  EXPECT_TRUE(isResident(memory, 0, kBytes));
  EXPECT_EQ(memory.data()[5], std::byte{7});
  EXPECT_EQ(memory.data()[kBytes - 1], std::byte{0});
}

TEST(PageMemory, PopulatesNothing) {
  PageMemory memory = std::move(*PageMemory::allocate(0));
  EXPECT_OK(memory.populate(0, 100));
  memory = std::move(*PageMemory::allocate(8192));
  EXPECT_OK(memory.populate(8192, 100));
}

} // namespace memoryTest
