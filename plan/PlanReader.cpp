//===- PlanReader.cpp - Plans in files ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"

#include "plan/PlanVerifier.h"
#include "support/AtomicFile.h"
#include "support/Format.h"
#include "support/MappedFile.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

namespace dtc {

/// The version that the first bytes state, 0 if they do not begin as a plan does. Fields are
/// written in the order of their numbers, and `version` is field 1.
static uint32_t peekVersion(const void *data, size_t bytes) {
  google::protobuf::io::CodedInputStream stream(static_cast<const uint8_t *>(data),
                                                static_cast<int>(std::min<size_t>(bytes, 16)));
  uint32_t version = 0;
  if (stream.ReadTag() != 8 || !stream.ReadVarint32(&version))
    return 0;
  return version;
}

Expected<std::shared_ptr<const plan::Plan>> parsePlan(const void *data, size_t bytes,
                                                      VerifierResult *facts) {
  if (bytes == 0)
    return Error{"the file is empty; expected a plan written by dtc-compile"};
  if (bytes > kMaxPlanFileBytes)
    return Error{fmt::format("the file has {}, the largest plan that is read has {}",
                             formatBytes(bytes), formatBytes(kMaxPlanFileBytes))};
  // This version may not be able to parse a newer plan; the message about the version is better.
  uint32_t version = peekVersion(data, bytes);
  auto plan = std::make_shared<plan::Plan>();
  google::protobuf::LogSilencer quiet;
  if (!plan->ParseFromArray(data, static_cast<int>(bytes))) {
    if (version > kPlanVersion)
      return *checkPlanVersion(version);
    return Error{version == kPlanVersion
                     ? "the plan is truncated or damaged; compile the model again"
                     : "is not a plan; expected a file written by dtc-compile"};
  }
  Expected<VerifierResult> found = verifyPlan(*plan);
  if (!found)
    return found.error();
  if (facts)
    *facts = std::move(*found);
  return std::shared_ptr<const plan::Plan>(std::move(plan));
}

Expected<std::shared_ptr<const plan::Plan>> readPlan(const std::string &path,
                                                     VerifierResult *facts) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  auto plan = parsePlan(file->bytes().data(), file->bytes().size(), facts);
  if (!plan)
    return plan.error().inContext(path);
  return plan;
}

std::string serializePlan(const plan::Plan &plan) {
  std::string bytes;
  google::protobuf::io::StringOutputStream output(&bytes);
  google::protobuf::io::CodedOutputStream coded(&output);
  // Maps have no order of their own.
  coded.SetSerializationDeterministic(true);
  plan.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

MaybeError writePlan(const plan::Plan &plan, const std::string &path) {
  // Protobuf cannot serialize a larger plan, and no reader would take it.
  if (plan.ByteSizeLong() > kMaxPlanFileBytes)
    return Error{fmt::format("{}: the plan takes {}, the largest plan that is read has {}", path,
                             formatBytes(plan.ByteSizeLong()), formatBytes(kMaxPlanFileBytes))};
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = file->write(serializePlan(plan)))
    return error;
  return file->commit();
}

} // namespace dtc
