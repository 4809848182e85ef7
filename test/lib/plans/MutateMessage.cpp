//===- MutateMessage.cpp - Random changes of a message --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/MutateMessage.h"

#include <cmath>
#include <google/protobuf/descriptor.h>
#include <vector>

namespace dtc::runtime::testing {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// All messages in the tree, the root among them, so that large parts are changed more often.
static void collect(Message *message, std::vector<Message *> &all) {
  all.push_back(message);
  const auto *reflection = message->GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor *field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    if (!field->is_repeated()) {
      collect(reflection->MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
      collect(reflection->MutableRepeatedMessage(message, field, i), all);
  }
}

static int64_t edgeNumber(int64_t old, std::mt19937_64 &random) {
  static constexpr int64_t edges[] = {0,
                                      1,
                                      -1,
                                      2,
                                      3,
                                      4,
                                      7,
                                      8,
                                      63,
                                      64,
                                      128,
                                      1000,
                                      INT32_MAX,
                                      INT32_MIN,
                                      INT64_MAX,
                                      INT64_MIN,
                                      int64_t{1} << 32,
                                      int64_t{1} << 40};
  switch (random() % 4) {
  case 0:
    return static_cast<int64_t>(static_cast<uint64_t>(old) + 1);
  case 1:
    return static_cast<int64_t>(static_cast<uint64_t>(old) - 1);
  case 2:
    return static_cast<int64_t>(random() % 16);
  default:
    return edges[random() % std::size(edges)];
  }
}

static double edgeDouble(std::mt19937_64 &random) {
  static constexpr double edges[] = {0, -1, 1, 1e300, -1e300, 1e-300, INFINITY, NAN};
  return edges[random() % std::size(edges)];
}

static void mutateSingle(Message &message, const FieldDescriptor *field, std::mt19937_64 &random) {
  const auto *r = message.GetReflection();
  if (random() % 8 == 0)
    return r->ClearField(&message, field);
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
    return r->SetInt64(&message, field, edgeNumber(r->GetInt64(message, field), random));
  case FieldDescriptor::CPPTYPE_UINT64:
    return r->SetUInt64(&message, field,
                        static_cast<uint64_t>(edgeNumber(
                            static_cast<int64_t>(r->GetUInt64(message, field)), random)));
  case FieldDescriptor::CPPTYPE_UINT32:
    return r->SetUInt32(&message, field,
                        static_cast<uint32_t>(edgeNumber(r->GetUInt32(message, field), random)));
  case FieldDescriptor::CPPTYPE_ENUM:
    return r->SetEnumValue(&message, field, static_cast<int>(random() % 9));
  case FieldDescriptor::CPPTYPE_BOOL:
    return r->SetBool(&message, field, !r->GetBool(message, field));
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return r->SetDouble(&message, field, edgeDouble(random));
  case FieldDescriptor::CPPTYPE_STRING: {
    std::string text = r->GetString(message, field);
    if (random() % 2 == 0 || text.empty())
      text += static_cast<char>('a' + random() % 26);
    else
      text.erase(random() % text.size(), 1);
    return r->SetString(&message, field, text);
  }
  default:
    return;
  }
}

static void mutateRepeated(Message &message, const FieldDescriptor *field,
                           std::mt19937_64 &random) {
  const auto *r = message.GetReflection();
  int size = r->FieldSize(message, field);
  int at = static_cast<int>(random() % static_cast<uint64_t>(size));
  switch (random() % 4) {
  case 0:
    r->SwapElements(&message, field, at, size - 1);
    return r->RemoveLast(&message, field);
  case 1:
    return r->SwapElements(&message, field, at,
                           static_cast<int>(random() % static_cast<uint64_t>(size)));
  default:
    break;
  }
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
    return r->SetRepeatedInt64(&message, field, at,
                               edgeNumber(r->GetRepeatedInt64(message, field, at), random));
  case FieldDescriptor::CPPTYPE_UINT32:
    return r->SetRepeatedUInt32(&message, field, at, static_cast<uint32_t>(random() % 128));
  case FieldDescriptor::CPPTYPE_STRING:
    return r->AddString(&message, field, r->GetRepeatedString(message, field, at));
  case FieldDescriptor::CPPTYPE_MESSAGE:
    // Entries of maps have unique keys.
    if (!field->is_map())
      r->AddMessage(&message, field)->CopyFrom(r->GetRepeatedMessage(message, field, at));
    return;
  default:
    return;
  }
}

void mutateMessage(Message &message, std::mt19937_64 &random) {
  std::vector<Message *> all;
  collect(&message, all);
  Message &chosen = *all[random() % all.size()];
  const auto *descriptor = chosen.GetDescriptor();
  if (descriptor->field_count() == 0)
    return;
  const FieldDescriptor *field = descriptor->field(
      static_cast<int>(random() % static_cast<uint64_t>(descriptor->field_count())));
  if (!field->is_repeated())
    return mutateSingle(chosen, field, random);
  if (chosen.GetReflection()->FieldSize(chosen, field) > 0)
    mutateRepeated(chosen, field, random);
}

} // namespace dtc::runtime::testing
