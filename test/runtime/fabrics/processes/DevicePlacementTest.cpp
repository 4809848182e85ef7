//===- DevicePlacementTest.cpp - Placement of devices on processes --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/DevicePlacement.h"

#include "runtime/fabrics/processes/ProcessFabric.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

namespace placementTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

static Mesh meshOf(const std::vector<std::pair<const char *, int64_t>> &sizes) {
  std::vector<MeshAxis> axes = {{"mb", 4, true}};
  for (auto [name, size] : sizes)
    axes.push_back({name, size, false});
  return Mesh(axes);
}

/// The host of each process, with `counts` processes on the hosts in turn.
static std::vector<std::string> hosts(const std::vector<size_t> &counts) {
  std::vector<std::string> names;
  for (size_t host = 0; host < counts.size(); ++host)
    names.insert(names.end(), counts[host], std::string(1, static_cast<char>('a' + host)));
  return names;
}

TEST(PlaceDevices, ConsecutiveOnesInEachProcess) {
  EXPECT_EQ(placeDevices(4, 2), (std::vector<int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(placeDevices(5, 3), (std::vector<int64_t>{0, 0, 1, 1, 2}));
  EXPECT_EQ(placeDevices(3, 3), (std::vector<int64_t>{0, 1, 2}));
}

TEST(PlaceDevices, EachProcessHasADevice) {
  auto ends = openThreadMessages(3);
  EXPECT_ERROR(openProcessFabric(Mesh({{"dp", 2, false}}), ends[0]),
               "the plan is for 2 devices, but there are 3 processes");
}

TEST(DevicePlacement, ProcessesForDevices) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
  EXPECT_EQ(*processesFor(mesh, 1), 8);
  EXPECT_EQ(*processesFor(mesh, 4), 2);
  EXPECT_ERROR(processesFor(mesh, 3),
               "the plan's 8 devices cannot be divided into processes with 3 "
               "each; 1, 2, 4 or 8 fit");
  EXPECT_ERROR(processesFor(mesh, 16), "1, 2, 4 or 8 fit");
  EXPECT_ERROR(processesFor(meshOf({}), 2), "the plan's 1 device cannot be divided into processes "
                                            "with 2 each; 1 fit");
}

TEST(DevicePlacement, SaysWhereEachAxisLies) {
  EXPECT_EQ(*describePlacement(meshOf({{"dp", 2}, {"tp", 2}, {"pp", 2}}), hosts({2, 2})),
            "8 devices, 4 processes, 2 hosts\n"
            "host a:\n  process 0: devices 0-1\n  process 1: devices 2-3\n"
            "host b:\n  process 2: devices 4-5\n  process 3: devices 6-7\n"
            "axes, the last one innermost:\n"
            "  dp=2: between hosts\n"
            "  tp=2: in a host, between processes\n"
            "  pp=2: in a process\n");
  EXPECT_EQ(*describePlacement(meshOf({{"dp", 4}}), hosts({2, 2})),
            "4 devices, 4 processes, 2 hosts\n"
            "host a:\n  process 0: device 0\n  process 1: device 1\n"
            "host b:\n  process 2: device 2\n  process 3: device 3\n"
            "axes, the last one innermost:\n"
            "  dp=4: between 2 hosts, 2 in each\n");
  EXPECT_EQ(*describePlacement(meshOf({}), hosts({1})),
            "1 device, 1 process, 1 host\nhost a:\n  process 0: device 0\n"
            "axes, the last one innermost:\n");
}

TEST(DevicePlacement, UnequalProcesses) {
  auto text = describePlacement(meshOf({{"dp", 2}, {"tp", 4}}), hosts({3}));
  ASSERT_OK(text);
  EXPECT_TRUE(contains(*text, "  process 0: devices 0-2\n  process 1: devices 3-5\n"
                              "  process 2: devices 6-7\n"))
      << *text;
  EXPECT_TRUE(text->ends_with(
      "note: not all processes have as many devices; 1, 2, 4 or 8 processes would\n"))
      << *text;
}

TEST(DevicePlacement, NumbersThatDoNotFit) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 6}});
  EXPECT_ERROR(describePlacement(mesh, hosts({13})),
               "the plan is for 12 devices, but there are 13 processes");
  EXPECT_ERROR(describePlacement(mesh, hosts({4, 4, 4})),
               "host a has 4 devices, from device 0 on, so that an axis of the mesh would lie "
               "across hosts in parts of different sizes; give each host 1, 2, 3, 6 or 12 devices");
  EXPECT_OK(describePlacement(mesh, hosts({3, 3, 3, 3})));
  EXPECT_OK(describePlacement(mesh, hosts({6, 6})));
  // As many each as fit, but not from where an axis begins.
  EXPECT_ERROR(describePlacement(mesh, hosts({3, 6, 3})), "host b has 6 devices, from device 3 on");
  EXPECT_ERROR(describePlacement(mesh, {"a", "b", "a", "b"}),
               "the processes of host a are not consecutive: process 2 is there too");
}

} // namespace placementTest
