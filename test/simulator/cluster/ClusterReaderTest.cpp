//===- ClusterReaderTest.cpp - Clusters in files --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterReader.h"
#include "test/lib/RandomCases.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/MutateMessage.h"
#include "test/lib/plans/MutatePlan.h"
#include "test/lib/plans/TempDir.h"
#include "test/simulator/cluster/FullCluster.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <iostream>
#include <iterator>
#include <set>

namespace clusterReaderTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace cluster = dtc::cluster;
using google::protobuf::util::MessageDifferencer;

namespace {

std::string toJson(const cluster::Cluster &cluster, bool camelCase) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = !camelCase;
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(cluster, &json, options).ok());
  return json;
}

std::string presetPath(const std::string &name) {
  return dtc::test::sourcePath("examples/clusters/" + std::string(name));
}

/// Whether a and b differ in no field.
::testing::AssertionResult equal(const cluster::Cluster &a, const cluster::Cluster &b) {
  std::string differences;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(a, b))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << differences;
}

} // namespace

TEST(ClusterReader, ReadsText) {
  auto cluster = parseCluster(kFullClusterText);
  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->name(), "full");
  ASSERT_EQ(cluster->devices_size(), 2);
  EXPECT_EQ(cluster->devices(0).memory_bytes(), 8e10);
  EXPECT_EQ(cluster->devices(0).matrix(1).table().columns(1), 32);
  EXPECT_EQ(cluster->devices(0).matrix(1).table().flops_size(), 6);
  EXPECT_TRUE(cluster->devices(0).fuses_pointwise());
  EXPECT_EQ(cluster->node_kinds(0).link().collectives(0).points(1).bytes(), 1048576);
  EXPECT_EQ(cluster->nodes(0).count(), 2);
  EXPECT_EQ(cluster->network().oversubscription(), 2);
}

TEST(ClusterReader, WritesWhatItReads) {
  auto cluster = parseCluster(kFullClusterText);
  ASSERT_OK(cluster);
  auto again = parseCluster(formatCluster(*cluster));
  ASSERT_OK(again);
  EXPECT_TRUE(equal(*cluster, *again));
}

TEST(ClusterReader, ReadsJsonWithEitherFormOfNames) {
  auto cluster = parseCluster(kFullClusterText);
  ASSERT_OK(cluster);
  for (bool camelCase : {false, true}) {
    std::string json = toJson(*cluster, camelCase);
    EXPECT_EQ(json.find("memoryBytes") != std::string::npos, camelCase);
    auto again = parseCluster("\n\t " + json);
    ASSERT_OK(again);
    EXPECT_TRUE(equal(*cluster, *again));
  }
}

TEST(ClusterReader, JsonMayLeaveOutByNull) {
  auto cluster = parseCluster(R"({
    "devices": [{"name": "a", "memory_bytes": 1e9, "memory_bandwidth": 1e9, "kernels": null,
                 "matrix": [{"dtype": "f32", "flops": 1e12, "table": null}]}],
    "node_kinds": [{"name": "n", "device": "a", "devices": "1", "link": null}],
    "nodes": [{"node": "n", "count": 1}], "network": null})");
  ASSERT_OK(cluster);
  EXPECT_FALSE(cluster->has_network());
  EXPECT_EQ(cluster->node_kinds(0).devices(), 1);
}

TEST(ClusterReader, NamesLineAndColumnInText) {
  struct Case {
    const char *text, *message;
  };
  for (auto [text, message] : {
           Case{"name: \"a\"\nspeed: 3", "line 2, column 1: a Cluster has no field \"speed\"; its "
                                         "fields are \"name\", \"devices\", "},
           // The place is that of the name, wherever the next word is.
           Case{"devices {\n  memory_byte\n\n : 3\n}",
                "line 2, column 3: a DeviceKind has no field \"memory_byte\"; did you mean "
                "\"memory_bytes\"? Its fields are "},
           Case{"speed", "line 1, column 1: a Cluster has no field \"speed\""},
           Case{"devices {\n  memory_bytes: 80 GB\n}",
                "line 2, column 20: a DeviceKind has no field \"GB\""},
           Case{"devices {\n  memory_bytes: \"80\"\n}",
                "line 2, column 17: Expected double, got: \"80\""},
           Case{"devices { compute_units: 1.5 }", "line 1, column 26: Expected integer, got: 1.5"},
           Case{"devices {\n  matrix {\n  }\n",
                "line 4, column 1: Expected identifier, got: the end of the text"},
           Case{"name: \"a\"\nname: \"b\"", "line 2, column 5: Non-repeated field \"name\" is "
                                            "specified multiple times"},
           // The first of several errors.
           Case{"name: \"a\nspeed: 3", "line 1, column 9: String literals cannot cross line"},
       })
    EXPECT_ERROR(parseCluster(text), message) << text;
}

TEST(ClusterReader, NamesLineAndFieldInJson) {
  struct Case {
    const char *text, *message;
  };
  for (auto [text, message] : {
           Case{"{\"name\": \"a\",\n\"speed\": 3}", "line 2: a Cluster has no field \"speed\"; its "
                                                    "fields are "},
           Case{"{\"devices\": [{\"name\": \"a\"},\n{\"memoryByte\":\n3}]}",
                "line 2: a DeviceKind has no field \"memoryByte\"; did you mean \"memory_bytes\"?"},
           Case{"{\"name\": \"a\",\n \"name\": \"b\"}", "line 2: name is given twice"},
           Case{"{\"nodeKinds\": [],\n \"node_kinds\": []}", "line 2: node_kinds is given twice"},
           Case{"{\n\"devices\": {}}", "line 2: devices is an object, expected a list"},
           Case{"{\n\"network\": []}", "line 2: network is a list, expected an object"},
           Case{"{\"devices\": [\n3]}", "line 2: devices[0] is a number, expected an object"},
           Case{"{\"devices\": [\n[]]}", "line 2: devices[0] is a list, expected an object"},
           Case{"{\"devices\": [{\"name\": \"a\"},\nnull]}", "line 2: devices[1] is null, "
                                                             "expected an object"},
           Case{"{\"name\":\n{\"a\": 1}}", "line 2: name is an object, expected one number, "
                                           "string or truth value"},
           Case{"{\"devices\": [{\"compute_units\":\n1.5\n}]}",
                "line 2: devices[0].compute_units is 1.5, expected a whole number"},
           Case{"{\"devices\": [{\"memoryBytes\":\n\"80 GB\"}]}",
                "line 2: devices[0].memory_bytes is \"80 GB\", expected a number"},
           Case{"{\n\"name\": 3}", "line 2: name is 3, expected a string"},
           Case{"{\"devices\": [{\"fuses_pointwise\": \"x\"}]}",
                "line 1: devices[0].fuses_pointwise is \"x\", expected true or false"},
           Case{"{\"devices\": [{\"matrix\": [{\"table\": {\"rows\": [1,\n1.5]}}]}]}",
                "line 2: devices[0].matrix[0].table.rows[1] is 1.5, expected a whole number"},
           Case{"{\"name\": \"a\",\n}", "line 2, column 1: syntax error"},
           Case{"{\"name\": \"a\"", "line 1, column 13: syntax error"},
           Case{"{} x", "line 1, column 4: syntax error"},
           Case{"{\"grams_co2_per_kwh\":\n1e400}", "line 2: number overflow parsing '1e400'"},
       })
    EXPECT_ERROR(parseCluster(text), message) << text;
}

TEST(ClusterReader, RefusesTextsThatAreEmptyOrTooLong) {
  EXPECT_ERROR(parseCluster(""), "the text is empty; expected a cluster");
  EXPECT_ERROR(parseCluster(" \n\t"), "the text is empty; expected a cluster");
  EXPECT_ERROR(parseCluster("# a comment"), "devices is empty");
  EXPECT_ERROR(parseCluster(std::string((16 << 20) + 1, '#')),
               "the text has 16.0 MiB, the largest cluster that is read has 16.0 MiB");
}

TEST(ClusterReader, ReadsFiles) {
  TempDir dir;
  auto cluster = readCluster(dir.write("a.textproto", kFullClusterText));
  ASSERT_OK(cluster);
  EXPECT_OK(readCluster(dir.write("a.json", toJson(*cluster, /*camelCase=*/false))));

  std::string path = dir.write("b.textproto", "name: 3");
  EXPECT_ERROR(readCluster(path), path + ": line 1, column 7: Expected string");
  path = dir.write("c.textproto", "name: \"a\"");
  EXPECT_ERROR(readCluster(path), path + ": devices is empty");
  EXPECT_ERROR(readCluster(dir.path("none")), dir.path("none") + ": cannot open");
}

TEST(ClusterReader, ReadsAllExamples) {
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(presetPath(""))) {
    SCOPED_TRACE(entry.path());
    auto cluster = readCluster(entry.path());
    ASSERT_OK(cluster);
    EXPECT_EQ(cluster->name() + ".textproto", entry.path().filename());
    names.insert(cluster->name());
    for (const cluster::DeviceKind &device : cluster->devices()) {
      // Measured devices have none.
      if (device.busy_watts() > 0) {
        EXPECT_GT(device.busy_watts(), device.idle_watts());
      }
      EXPECT_GT(device.launch_seconds(), 0);
    }
  }
  for (const char *name : {"dgx-a100-80gb", "dgx-h100", "dgx-h200", "dgx-v100", "mixed-a100-h100"})
    EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(ClusterReader, ExampleOfTwoKindsHasTheirDevices) {
  auto mixed = readCluster(presetPath("mixed-a100-h100.textproto"));
  ASSERT_OK(mixed);
  ASSERT_EQ(mixed->devices_size(), 2);
  int i = 0;
  for (const char *name : {"dgx-a100-80gb.textproto", "dgx-h100.textproto"}) {
    auto alone = readCluster(presetPath(name));
    ASSERT_OK(alone);
    EXPECT_EQ(mixed->devices(i).DebugString(), alone->devices(0).DebugString());
    const cluster::NodeKind &node = mixed->node_kinds(i++), &whole = alone->node_kinds(0);
    EXPECT_EQ(node.link().DebugString(), whole.link().DebugString());
    EXPECT_EQ(node.device_network_bandwidth(), whole.device_network_bandwidth());
  }
}

/// docs/clusters.md has a cluster in both forms.
TEST(ClusterReader, ReadsTheDocumentation) {
  std::ifstream file(dtc::test::sourcePath("docs/clusters.md"));
  std::string page{std::istreambuf_iterator<char>(file), {}};
  auto block = [&](const std::string &fence) {
    size_t begin = page.find("\n" + fence + "\n");
    EXPECT_NE(begin, std::string::npos) << fence;
    begin += fence.size() + 2;
    return page.substr(begin, page.find("\n```", begin) - begin);
  };
  auto text = parseCluster(block("```")), json = parseCluster(block("```json"));
  ASSERT_OK(text);
  ASSERT_OK(json);
  EXPECT_EQ(text->name(), "workshop");
  EXPECT_TRUE(equal(*text, *json));
}

/// Damaged texts are refused with a message, or read as a cluster that can be written and read.
TEST(ClusterReader, NeverCrashes) {
  auto original = parseCluster(kFullClusterText);
  ASSERT_OK(original);
  std::string json = toJson(*original, /*camelCase=*/true);
  const uint64_t count = dtc::test::randomCases(6000), seed = dtc::test::randomSeed();
  std::mt19937_64 random(seed);
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::string text;
    if (i % 3 == 0) {
      text = mutateBytes(kFullClusterText, random);
    } else if (i % 3 == 1) {
      text = mutateBytes(json, random);
    } else {
      cluster::Cluster changed = *original;
      mutateMessage(changed, random);
      text = formatCluster(changed);
    }
    SCOPED_TRACE(fmt::format("DTC_RANDOM_SEED={}, text {}:\n{}", seed, i, text));
    auto read = parseCluster(text);
    if (!read) {
      EXPECT_FALSE(read.error().message.empty());
      continue;
    }
    ++accepted;
    EXPECT_OK(checkCluster(*read));
    auto again = parseCluster(formatCluster(*read));
    EXPECT_OK(again);
    if (again) {
      EXPECT_TRUE(equal(*read, *again));
    }
    if (::testing::Test::HasFailure())
      return;
  }
  std::cout << accepted << " of " << count << " were accepted\n";
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, count);
}

} // namespace clusterReaderTest
