//===- JsonMembers.cpp - Members of a JSON object, one at a time ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/JsonMembers.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace dtc::runtime {

using Json = nlohmann::json;

namespace {

/// The functions that the parser of nlohmann::json calls; each says whether it goes on.
class MemberReader final : public nlohmann::json_sax<Json> {
public:
  /// `level`: how many objects and lists are open where the members are, 1 or 2. At level 2, they
  /// are those of the object that is the member `within` of the outermost one.
  MemberReader(int level, const std::string &within, const WantsMember &wants,
               const TakeMember &take)
      : level(level), within(within), wants(wants), take(take) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t & /*text*/) override { return add(value); }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t & /*value*/) override { return fail("is no JSON object"); }

  bool start_object(size_t /*count*/) override { return open(Json::object()); }
  bool start_array(size_t /*count*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override;

  bool parse_error(size_t /*position*/, const std::string & /*token*/,
                   const nlohmann::detail::exception & /*exception*/) override {
    return fail("is no JSON object");
  }

  /// After the whole text.
  MaybeError finish() {
    if (!error && level == 2 && !hasObject)
      error = Error{fmt::format("has no object \"{}\"", within)};
    return std::move(error);
  }

private:
  bool fail(std::string message) {
    if (!error)
      error = Error{std::move(message)};
    return false;
  }
  bool add(Json value);
  bool open(Json value);
  bool close();
  bool endMember();

  int level;
  const std::string &within;
  const WantsMember &wants;
  const TakeMember &take;

  MaybeError error;
  int depth = 0;
  bool isWithin = false;  // the next object is the one that has the members
  bool hasObject = false; // it was there
  bool isInside = false;  // it is open
  std::string member;     // the one that is read
  bool isRead = false;    // a member is
  Json value;             // of it
  int values = 0;
  std::vector<Json *> opened;     // objects and lists of the value
  std::vector<std::string> names; // of the members of each that come next
};

} // namespace

bool MemberReader::key(string_t &name) {
  if (depth == 1 && level == 2) {
    isWithin = name == within;
    return !(isWithin && hasObject) || fail(fmt::format("names \"{}\" twice", name));
  }
  if (depth == level && isInside) {
    isRead = wants(name);
    values = 0;
    member = std::move(name);
    return true;
  }
  if (!isRead)
    return true;
  if (opened.back()->contains(name))
    return fail(fmt::format("names \"{}\" twice in \"{}\"", name, member));
  names.back() = std::move(name);
  return true;
}

bool MemberReader::endMember() {
  isRead = false;
  error = take(std::move(member), std::move(value));
  return !error;
}

/// A value that holds no others.
bool MemberReader::add(Json each) {
  if (depth == 0)
    return fail("is no JSON object");
  if (depth == 1 && isWithin)
    return fail(fmt::format("has no object \"{}\"", within));
  if (!isRead)
    return true;
  if (++values > kMaxMemberValues)
    return fail(fmt::format("has more than {} values in \"{}\"", kMaxMemberValues, member));
  if (opened.empty()) {
    value = std::move(each);
    return endMember();
  }
  if (opened.back()->is_array())
    opened.back()->push_back(std::move(each));
  else
    (*opened.back())[names.back()] = std::move(each);
  return true;
}

bool MemberReader::open(Json each) {
  if (depth == 0 && !each.is_object())
    return fail("is no JSON object");
  if (depth == kMaxJsonDepth)
    return fail("is nested too deep");
  ++depth;
  if (depth == level && (level == 1 || isWithin)) {
    if (!each.is_object())
      return fail(fmt::format("has no object \"{}\"", within));
    hasObject = isInside = true;
    return true;
  }
  if (!isRead)
    return true;
  if (++values > kMaxMemberValues)
    return fail(fmt::format("has more than {} values in \"{}\"", kMaxMemberValues, member));
  Json *added = &value;
  if (opened.empty())
    value = std::move(each);
  else if (opened.back()->is_array())
    added = &opened.back()->emplace_back(std::move(each));
  else
    added = &((*opened.back())[names.back()] = std::move(each));
  opened.push_back(added);
  names.emplace_back();
  return true;
}

bool MemberReader::close() {
  isInside &= depth != level;
  --depth;
  if (!isRead)
    return true;
  opened.pop_back();
  names.pop_back();
  return !opened.empty() || endMember();
}

static MaybeError read(std::string_view text, MemberReader reader) {
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.finish();
}

MaybeError readJsonMembers(std::string_view text, const WantsMember &wants,
                           const TakeMember &take) {
  const std::string none;
  return read(text, {1, none, wants, take});
}

MaybeError readJsonMembersWithin(std::string_view text, const std::string &within,
                                 const TakeMember &take) {
  const WantsMember all = [](std::string_view) { return true; };
  return read(text, {2, within, all, take});
}

} // namespace dtc::runtime
