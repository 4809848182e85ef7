//===- ClusterJson.cpp - Clusters in JSON ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Protobuf converts the JSON. It names no lines, and takes trailing commas, objects in place of
// lists and fields given twice. So the text is walked once before, beside the schema.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterText.h"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace dtc {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

namespace {

/// Reads characters, and says to others how far it is.
struct TrackedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *at;
  const char **reached;

  reference operator*() const { return *at; }
  TrackedIterator &operator++() {
    *reached = ++at;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator &other) const { return at == other.at; }
  bool operator!=(const TrackedIterator &other) const { return at != other.at; }
};

/// Walks a text, which begins with '{', beside the schema. Ends at the first error, or at the value
/// of a path.
class SchemaWalk {
public:
  /// `wanted`: a path in the form of Protobuf's messages, "devices[0].name".
  SchemaWalk(const std::string &text, std::string wanted) : text(text), wanted(std::move(wanted)) {}

  MaybeError run() {
    reached = text.data();
    const char *end = text.data() + text.size();
    if (!json::sax_parse(TrackedIterator{reached, &reached}, TrackedIterator{end, &reached}, this))
      return error;
    return std::nullopt;
  }

  /// The line of the wanted value.
  std::optional<int64_t> wantedLine() const { return lineOfWanted; }

  // The interface of nlohmann::json for listeners to its parser, with its names.
  // NOLINTBEGIN(readability-identifier-naming)
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;
  /// A null is the same as a field that is left out; lists have no such elements.
  bool null() { return !frames.back().list || scalar("null"); }
  bool boolean(bool) { return scalar("a truth value"); }
  bool number_integer(number_integer_t) { return scalar("a number"); }
  bool number_unsigned(number_unsigned_t) { return scalar("a number"); }
  bool number_float(number_float_t, const string_t &) { return scalar("a number"); }
  bool string(string_t &) { return scalar("a string"); }
  bool binary(binary_t &) { return scalar("binary data"); }

  bool start_object(size_t) {
    const Descriptor *message = cluster::Cluster::descriptor();
    if (!frames.empty()) {
      enterElement();
      const FieldDescriptor *field = frames.back().field;
      if (!field->message_type() || field->is_repeated() != frames.back().list)
        return fail("an object");
      message = field->message_type();
    }
    frames.push_back({.message = message});
    return true;
  }

  bool key(string_t &name) {
    Frame &frame = frames.back();
    frame.field = frame.message->FindFieldByName(name);
    if (!frame.field)
      frame.field = frame.message->FindFieldByCamelcaseName(name);
    if (!frame.field)
      return failWith(unknownField(*frame.message, name));
    if (!frame.seen.insert(frame.field).second)
      return failWith(fmt::format("{} is given twice", path()));
    return true;
  }

  bool end_object() {
    frames.pop_back();
    return true;
  }

  bool start_array(size_t) {
    enterElement();
    if (frames.back().list || !frames.back().field->is_repeated())
      return fail("a list");
    frames.push_back({.field = frames.back().field, .list = true});
    return true;
  }

  bool end_array() {
    frames.pop_back();
    return true;
  }

  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &exception) {
    std::string_view words = exception.what();
    // "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error ..."
    if (words.starts_with("["))
      words.remove_prefix(std::min(words.find("] ") + 2, words.size()));
    constexpr std::string_view at = "parse error at ";
    if (!words.starts_with(at))
      return failWith(std::string(words));
    words.remove_prefix(at.size());
    error = Error{std::string(words)};
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

private:
  /// An object, or a list in it.
  struct Frame {
    const Descriptor *message = nullptr;
    const FieldDescriptor *field = nullptr; // the one whose value is read
    bool list = false;
    int64_t index = -1;
    std::set<const FieldDescriptor *> seen = {};
  };

  void enterElement() {
    if (frames.back().list)
      ++frames.back().index;
  }

  bool scalar(const char *found) {
    enterElement();
    const Frame &frame = frames.back();
    if (frame.field->message_type() || frame.field->is_repeated() != frame.list ||
        std::string_view(found) == "null")
      return fail(found);
    if (!wanted.empty() && path() == wanted) {
      lineOfWanted = line();
      return false;
    }
    return true;
  }

  std::string path() const {
    std::string text;
    for (const Frame &frame : frames) {
      if (frame.list)
        text += fmt::format("[{}]", frame.index);
      else if (frame.field)
        text += (text.empty() ? "" : ".") + frame.field->name();
    }
    return text;
  }

  int64_t line() const {
    // The last character that was read ends the value, or comes after a number: it is left out.
    return 1 + std::count(text.data(), std::max(text.data(), reached - 1), '\n');
  }

  bool fail(const char *found) {
    const Frame &frame = frames.back();
    std::string expected = "one number, string or truth value";
    if (frame.field->is_repeated() && !frame.list)
      expected = "a list";
    else if (frame.field->message_type())
      expected = "an object";
    return failWith(fmt::format("{} is {}, expected {}", path(), found, expected));
  }

  bool failWith(std::string message) {
    error = Error{fmt::format("line {}: {}", line(), message)};
    return false;
  }

  const std::string &text;
  std::string wanted;
  const char *reached = nullptr;
  std::vector<Frame> frames;
  std::optional<int64_t> lineOfWanted;
  MaybeError error;
};

} // namespace

/// Says 'invalid value 1.5 for type TYPE_INT64' of a field in our words.
static std::optional<std::string> rewriteTypeError(const std::string &path,
                                                   std::string_view message) {
  static constexpr std::pair<std::string_view, const char *> types[] = {
      {" for type TYPE_DOUBLE", "a number"},
      {" for type TYPE_INT64", "a whole number"},
      {" for type TYPE_STRING", "a string"},
      {" for type TYPE_BOOL", "true or false"}};
  constexpr std::string_view begin = "invalid value ";
  if (!message.starts_with(begin))
    return std::nullopt;
  message.remove_prefix(begin.size());
  for (auto [end, expected] : types)
    if (message.ends_with(end))
      return fmt::format("{} is {}, expected {}", path,
                         message.substr(0, message.size() - end.size()), expected);
  return std::nullopt;
}

Expected<cluster::Cluster> parseClusterJson(const std::string &text) {
  if (MaybeError error = SchemaWalk(text, "").run())
    return *error;
  cluster::Cluster cluster;
  google::protobuf::util::Status status =
      google::protobuf::util::JsonStringToMessage(text, &cluster);
  if (status.ok())
    return cluster;
  // "(devices[0].name): invalid value 3 for type TYPE_STRING"
  std::string message(status.message());
  size_t end = message.find("): ");
  if (!message.starts_with("(") || end == std::string::npos)
    return Error{message};
  std::string path = message.substr(1, end - 1);
  SchemaWalk walk(text, path);
  (void)walk.run(); // for the line: the error is known
  std::string words = fmt::format("{}: {}", path, message.substr(end + 3));
  if (std::optional<std::string> clear = rewriteTypeError(path, message.substr(end + 3)))
    words = *clear;
  return Error{walk.wantedLine() ? fmt::format("line {}: {}", *walk.wantedLine(), words) : words};
}

} // namespace dtc
