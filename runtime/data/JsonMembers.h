//===- JsonMembers.h - Members of a JSON object, one at a time ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// For JSON that may come from anybody: the time is linear in the text, the memory is that of one
// member, and reading stops at the first error.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_JSONMEMBERS_H
#define DTC_RUNTIME_DATA_JSONMEMBERS_H

#include "support/Error.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// Levels of objects and lists, the outermost one included, that a text may have.
inline constexpr int kMaxJsonDepth = 8;
/// Values that a member may have, objects and lists included.
inline constexpr int kMaxMemberValues = 1024;

/// Whether a member of the outermost object is read; the others are skipped.
using WantsMember = std::function<bool(std::string_view name)>;
/// Takes a member; reading stops at its error.
using TakeMember = std::function<MaybeError(std::string name, nlohmann::json value)>;

/// Reads the members of the outermost object of a text, in their order. An error that is not of
/// `take` continues a sentence about the text: "is no JSON object", "is nested too deep".
MaybeError readJsonMembers(std::string_view text, const WantsMember &wants, const TakeMember &take);

/// The same for the members of an object that is the member `within` of the outermost one. It is an
/// error if there is no such object, or more than one.
MaybeError readJsonMembersWithin(std::string_view text, const std::string &within,
                                 const TakeMember &take);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_JSONMEMBERS_H
