//===- ClusterText.cpp - Clusters in Protobuf's text format ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterText.h"

#include "simulator/cluster/ClusterReader.h"
#include "support/NearestName.h"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <optional>
#include <string_view>
#include <vector>

namespace dtc {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::TextFormat;

std::string unknownField(const Descriptor &message, const std::string &field) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i)
    names.push_back(message.field(i)->name());
  std::string guess = didYouMean(field, names);
  return fmt::format("a {} has no field \"{}\"{} fields are {}", message.name(), field,
                     guess.empty() ? "; its" : guess + " Its", quoteNames(names));
}

namespace {

struct UnknownField {
  std::string message, field;
};

/// The parts of Protobuf's message 'Message type "a.B" has no field named "c".'.
std::optional<UnknownField> parseUnknownField(std::string_view text) {
  constexpr std::string_view begin = "Message type \"", middle = "\" has no field named \"",
                             end = "\".";
  size_t at = text.find(middle);
  if (!text.starts_with(begin) || !text.ends_with(end) || at == text.npos)
    return std::nullopt;
  std::string_view field = text.substr(at + middle.size());
  return UnknownField{std::string(text.substr(begin.size(), at - begin.size())),
                      std::string(field.substr(0, field.size() - end.size()))};
}

/// Keeps the first error.
class FirstError : public google::protobuf::io::ErrorCollector {
public:
  /// `pool` has the messages that the text may hold.
  FirstError(const std::string &text, const DescriptorPool &pool) : text(text), pool(pool) {}

  void AddError(int line, int column, const std::string &message) override {
    if (error)
      return;
    std::string words = message;
    if (std::optional<UnknownField> unknown = parseUnknownField(message)) {
      findBefore(unknown->field, line, column);
      if (auto *type = pool.FindMessageTypeByName(unknown->message))
        words = unknownField(*type, unknown->field);
    }
    if (words.ends_with("."))
      words.pop_back();
    if (words.ends_with("got: "))
      words += "the end of the text";
    // Lines and columns are counted from 0.
    error = Error{fmt::format("line {}, column {}: {}", line + 1, column + 1, words)};
  }

  MaybeError error;

private:
  /// Moves the place back to the last `word` before it.
  void findBefore(const std::string &word, int &line, int &column) const {
    size_t begin = 0;
    for (int i = 0; i < line; ++i)
      begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    // Columns count a tab as up to 8; then the place is a little too far, which does no harm.
    size_t end = std::min(begin + static_cast<size_t>(column), text.size());
    size_t found = text.rfind(word, end);
    if (found == std::string::npos)
      return;
    std::string_view before = std::string_view(text).substr(0, found);
    line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    column = static_cast<int>(found - (before.rfind('\n') + 1)); // npos + 1 is 0
  }

  const std::string &text;
  const DescriptorPool &pool;
};

} // namespace

MaybeError parseMessageText(const std::string &text, const std::string &what,
                            google::protobuf::Message &message) {
  FirstError errors(text, *message.GetDescriptor()->file()->pool());
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(text, &message))
    return errors.error.value_or(Error{"the text is no " + what});
  return std::nullopt;
}

Expected<cluster::Cluster> parseClusterText(const std::string &text) {
  cluster::Cluster cluster;
  if (MaybeError error = parseMessageText(text, "cluster (docs/clusters.md)", cluster))
    return *error;
  return cluster;
}

std::string formatCluster(const cluster::Cluster &cluster) {
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(cluster, &text);
  return text;
}

} // namespace dtc
