//===- ClusterFields.cpp - Ranges and words of cluster fields -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterFields.h"

#include "simulator/cluster/CollectiveTime.h"
#include "support/NearestName.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <map>
#include <string>
#include <vector>

namespace dtc {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

/// The numbers that a field may hold. A number without a rule is 0 or more.
enum class Range { NotNegative, Positive, Share, ShareBelowOne, Factor, AtLeastTwo };

const std::map<std::string, Range, std::less<>> &ranges() {
  static const std::map<std::string, Range, std::less<>> table = {
      {"MatrixTable.rows", Range::Positive},
      {"MatrixTable.columns", Range::Positive},
      {"MatrixTable.depths", Range::Positive},
      {"MatrixTable.flops", Range::Positive},
      {"Tile.rows", Range::Positive},
      {"Tile.columns", Range::Positive},
      {"Tile.efficiency", Range::Share},
      {"MatrixRate.sustained", Range::Share},
      {"TimePoint.seconds", Range::Positive},
      {"DeviceKind.memory_bytes", Range::Positive},
      {"DeviceKind.memory_bandwidth", Range::Positive},
      {"DeviceKind.usable_memory", Range::Share},
      {"DeviceKind.overlap_slowdown", Range::ShareBelowOne},
      {"CollectiveTable.members", Range::AtLeastTwo},
      {"ArrivalSkew.members", Range::AtLeastTwo},
      {"ArrivalSkew.work_seconds", Range::Positive},
      {"Link.sustained", Range::Share},
      {"NodeKind.devices", Range::Positive},
      {"NodeGroup.count", Range::Positive},
      {"HostLink.bandwidth", Range::Positive},
      {"HostLink.sustained", Range::Share},
      {"Network.sustained", Range::Share},
      {"Network.oversubscription", Range::Factor},
      {"Cluster.power_usage_effectiveness", Range::Factor},
  };
  return table;
}

/// The kinds of tables of measured times of a link.
std::vector<std::string> tableKinds() {
  constexpr auto &kinds = EnumNames<CollectiveKind>::list;
  std::vector<std::string> names(kinds.begin(), kinds.end());
  names.push_back(kTransferTable);
  return names;
}

/// The words that a field may hold.
const std::map<std::string, std::vector<std::string>, std::less<>> &words() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> table = {
      {"MatrixRate.dtype", {"f32", "f64", "bf16", "f16", "fp8"}},
      {"KernelRate.dtype", {"", "f32", "f64", "bf16", "f16"}},
      {"CollectiveTable.kind", tableKinds()},
  };
  return table;
}

/// Texts that must not be empty, and lists that must have an element; with the name of an element.
const std::map<std::string, const char *, std::less<>> &required() {
  static const std::map<std::string, const char *, std::less<>> table = {
      {"Cluster.devices", "at least one kind of device"},
      {"Cluster.node_kinds", "at least one kind of node"},
      {"Cluster.nodes", "at least one node group"},
      {"DeviceKind.name", "a name"},
      {"DeviceKind.matrix", "the rate of at least one dtype"},
      {"NodeKind.name", "a name"},
      {"KernelRate.kernel", "the name of a kernel"},
      {"MatrixTable.rows", "at least one size"},
      {"MatrixTable.columns", "at least one size"},
      {"MatrixTable.depths", "at least one size"},
      {"CollectiveTable.points", "at least one measured time"},
  };
  return table;
}

/// The expected range of a number, or null if the number is in it.
const char *outOfRange(double value, Range range) {
  switch (range) {
  case Range::NotNegative:
    return value >= 0 ? nullptr : "0 or more";
  case Range::Positive:
    return value > 0 ? nullptr : "more than 0";
  case Range::Share:
    return value >= 0 && value <= 1 ? nullptr : "a share from 0 to 1";
  case Range::ShareBelowOne:
    return value >= 0 && value < 1 ? nullptr : "a share from 0 to less than 1";
  case Range::Factor:
    return value == 0 || value >= 1 ? nullptr : "1 or more, or 0 for 1";
  case Range::AtLeastTwo:
    return value >= 2 ? nullptr : "2 or more";
  }
  return nullptr;
}

class FieldChecker {
public:
  /// Checks all fields of a message and of those in it, in the order of the schema, so that missing
  /// fields are found as well. `path` names the message.
  MaybeError check(const Message &message, const std::string &path) {
    const Reflection &reflection = *message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor &field = *message.GetDescriptor()->field(i);
      std::string fieldPath = path.empty() ? field.name() : path + "." + field.name();
      MaybeError error;
      if (field.is_repeated())
        error = checkList(message, field, fieldPath);
      else if (!field.message_type())
        error = checkValue(message, field, -1, fieldPath);
      else if (reflection.HasField(message, &field))
        error = check(reflection.GetMessage(message, &field), fieldPath);
      if (error)
        return error;
    }
    return std::nullopt;
  }

private:
  /// The rule for a field, by its message and its name.
  template <typename Table> static auto rule(const Table &table, const FieldDescriptor &field) {
    auto found = table.find(field.containing_type()->name() + "." + field.name());
    return found == table.end() ? nullptr : &found->second;
  }

  MaybeError checkList(const Message &message, const FieldDescriptor &field,
                       const std::string &path) {
    const Reflection &reflection = *message.GetReflection();
    int size = reflection.FieldSize(message, &field);
    auto *expected = rule(required(), field);
    if (size == 0 && expected)
      return Error{fmt::format("{} is empty, expected {}", path, *expected)};
    for (int i = 0; i < size; ++i) {
      std::string element = fmt::format("{}[{}]", path, i);
      MaybeError error = field.message_type()
                             ? check(reflection.GetRepeatedMessage(message, &field, i), element)
                             : checkValue(message, field, i, element);
      if (!error && i > 0)
        error = checkRising(message, field, i, element);
      if (error)
        return error;
    }
    return std::nullopt;
  }

  /// Sizes and points are looked up by bisection.
  MaybeError checkRising(const Message &message, const FieldDescriptor &field, int index,
                         const std::string &path) {
    const Reflection &reflection = *message.GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      int64_t before = reflection.GetRepeatedInt64(message, &field, index - 1);
      int64_t value = reflection.GetRepeatedInt64(message, &field, index);
      if (value <= before)
        return Error{
            fmt::format("{} is {}, expected more than the {} before it", path, value, before)};
    } else if (field.message_type() == cluster::TimePoint::descriptor()) {
      auto at = [&](int i) -> const cluster::TimePoint & {
        return static_cast<const cluster::TimePoint &>(
            reflection.GetRepeatedMessage(message, &field, i));
      };
      if (at(index).bytes() <= at(index - 1).bytes())
        return Error{fmt::format("{}.bytes is {}, expected more than the {} before it", path,
                                 at(index).bytes(), at(index - 1).bytes())};
    }
    return std::nullopt;
  }

  /// One value; `index` in its list, -1 if it is not in one.
  MaybeError checkValue(const Message &message, const FieldDescriptor &field, int index,
                        const std::string &path) {
    const Reflection &reflection = *message.GetReflection();
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return checkCount(index < 0 ? reflection.GetInt64(message, &field)
                                  : reflection.GetRepeatedInt64(message, &field, index),
                        field, path);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return checkNumber(index < 0 ? reflection.GetDouble(message, &field)
                                   : reflection.GetRepeatedDouble(message, &field, index),
                         field, path);
    case FieldDescriptor::CPPTYPE_STRING:
      return checkText(reflection.GetString(message, &field), field, path);
    default:
      return std::nullopt;
    }
  }

  static Range rangeOf(const FieldDescriptor &field) {
    auto *range = rule(ranges(), field);
    return range ? *range : Range::NotNegative;
  }

  MaybeError checkCount(int64_t value, const FieldDescriptor &field, const std::string &path) {
    if (const char *expected = outOfRange(static_cast<double>(value), rangeOf(field)))
      return Error{fmt::format("{} is {}, expected {}", path, value, expected)};
    if (value > kLargestCount)
      return Error{fmt::format("{} is {}, expected at most {}", path, value, kLargestCount)};
    return std::nullopt;
  }

  MaybeError checkNumber(double value, const FieldDescriptor &field, const std::string &path) {
    if (const char *expected = outOfRange(value, rangeOf(field)))
      return Error{fmt::format("{} is {}, expected {}", path, value, expected)};
    if (value > kLargestNumber)
      return Error{fmt::format("{} is {}, expected at most {}", path, value, kLargestNumber)};
    if (value != 0 && value < kSmallestNumber)
      return Error{fmt::format("{} is {}, expected at least {}", path, value, kSmallestNumber)};
    return std::nullopt;
  }

  MaybeError checkText(const std::string &value, const FieldDescriptor &field,
                       const std::string &path) {
    auto *expected = rule(required(), field);
    if (value.empty() && expected)
      return Error{fmt::format("{} is empty, expected {}", path, *expected)};
    auto *choices = rule(words(), field);
    if (!choices || std::ranges::find(*choices, value) != choices->end())
      return std::nullopt;
    return Error{fmt::format("{} is \"{}\", expected one of {}{}", path, value,
                             quoteNames(*choices), didYouMean(value, *choices))};
  }
};

} // namespace

MaybeError checkFields(const cluster::Cluster &cluster) {
  return FieldChecker().check(cluster, "");
}

} // namespace dtc
