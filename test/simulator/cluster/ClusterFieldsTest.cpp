//===- ClusterFieldsTest.cpp - Tests of the ranges of cluster fields ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterReader.h"
#include "test/lib/plans/Expect.h"
#include "test/simulator/cluster/FullCluster.h"

#include <cmath>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <vector>

namespace clusterFieldsTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace cluster = dtc::cluster;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

cluster::Cluster full() {
  cluster::Cluster cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kFullClusterText, &cluster));
  return cluster;
}

/// A number of a cluster, with its path.
struct Number {
  std::string path;
  Message *message;
  const FieldDescriptor *field;
  int index; // in its list, or -1

  bool isWhole() const { return field->cpp_type() == FieldDescriptor::CPPTYPE_INT64; }
  void set(double value) const {
    const auto *reflection = message->GetReflection();
    if (isWhole() && index < 0)
      reflection->SetInt64(message, field, static_cast<int64_t>(value));
    else if (isWhole())
      reflection->SetRepeatedInt64(message, field, index, static_cast<int64_t>(value));
    else if (index < 0)
      reflection->SetDouble(message, field, value);
    else
      reflection->SetRepeatedDouble(message, field, index, value);
  }
};

/// All numbers that are given.
void collectNumbers(Message &message, const std::string &path, std::vector<Number> &all) {
  const auto *reflection = message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    std::string fieldPath = path.empty() ? field->name() : path + "." + field->name();
    int size = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      std::string element = field->is_repeated() ? fmt::format("{}[{}]", fieldPath, i) : fieldPath;
      if (field->message_type())
        collectNumbers(field->is_repeated()
                           ? *reflection->MutableRepeatedMessage(&message, field, i)
                           : *reflection->MutableMessage(&message, field),
                       element, all);
      else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
               field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE)
        all.push_back({element, &message, field, field->is_repeated() ? i : -1});
    }
  }
}

/// The numbers that the schema has in a message and those below.
void collectFields(const Descriptor &message, bool withWhole, std::set<std::string> &all) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor &field = *message.field(i);
    if (field.message_type())
      collectFields(*field.message_type(), withWhole, all);
    else if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
             (withWhole && field.cpp_type() == FieldDescriptor::CPPTYPE_INT64))
      all.insert(field.full_name());
  }
}

/// Sets each number of the full cluster in turn, and expects an error that begins with its path.
void expectRefused(double value, bool ofWhole) {
  cluster::Cluster original = full();
  std::vector<Number> numbers;
  collectNumbers(original, "", numbers);
  std::set<std::string> fields;
  for (size_t i = 0; i < numbers.size(); ++i) {
    cluster::Cluster cluster = original;
    std::vector<Number> copies;
    collectNumbers(cluster, "", copies);
    if (copies[i].isWhole() && !ofWhole)
      continue;
    fields.insert(copies[i].field->full_name());
    copies[i].set(value);
    std::string error = messageOf(checkCluster(cluster));
    EXPECT_TRUE(error.starts_with(copies[i].path + " is ")) << copies[i].path << ": " << error;
  }
  std::set<std::string> schema;
  collectFields(*cluster::Cluster::descriptor(), ofWhole, schema);
  EXPECT_EQ(fields, schema) << "fullClusterText does not give all";
}

} // namespace

TEST(ClusterFields, RefusesNegativeNumbers) { expectRefused(-1, /*ofWhole=*/true); }
TEST(ClusterFields, RefusesLargeNumbers) { expectRefused(1.1e18, /*ofWhole=*/true); }
TEST(ClusterFields, RefusesSmallNumbers) { expectRefused(1e-19, /*ofWhole=*/false); }
TEST(ClusterFields, RefusesWhatIsNotFinite) {
  expectRefused(std::numeric_limits<double>::quiet_NaN(), /*ofWhole=*/false);
  expectRefused(INFINITY, /*ofWhole=*/false);
  expectRefused(-INFINITY, /*ofWhole=*/false);
}

} // namespace clusterFieldsTest
