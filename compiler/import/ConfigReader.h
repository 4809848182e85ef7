//===- ConfigReader.h - Typed access to a model's configuration -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reads the fields of a config.json. A reader never throws and never stops: a field that is wrong
// is reported by name in the log, the getter returns a value that is safe to go on with, and the
// caller asks once, after the last field, whether there were errors. So a user sees all that is
// wrong at once.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_CONFIGREADER_H
#define DTC_COMPILER_IMPORT_CONFIGREADER_H

#include "compiler/import/ImportModel.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dtc {

class ConfigReader {
public:
  /// Parses `text`; messages call the file `fileName`. If the text is not a JSON object, the log
  /// has an error.
  ConfigReader(llvm::StringRef text, llvm::StringRef fileName, ImportLog &log);

  /// Makes `alias` another name of `field`, as transformers' attribute maps do. Both may be there
  /// if they agree.
  void addAlias(llvm::StringRef field, llvm::StringRef alias);

  bool has(llvm::StringRef field);

  /// An integer in [1, maxSize]. `fallback` is the value that transformers takes where the field is
  /// absent.
  int64_t getSize(llvm::StringRef field, int64_t fallback, int64_t maxSize = kMaxSize);

  /// Like getSize for a field that may be absent or null.
  std::optional<int64_t> getOptionalSize(llvm::StringRef field, int64_t maxSize = kMaxSize);

  /// A finite number that is greater than zero, or at least zero.
  double getPositive(llvm::StringRef field, double fallback);
  double getNonNegative(llvm::StringRef field, double fallback);

  bool getBool(llvm::StringRef field, bool fallback);

  std::string getString(llvm::StringRef field, llvm::StringRef fallback);

  /// The value of a string field in a table of the values that are supported.
  template <typename T>
  T getChoice(llvm::StringRef field, llvm::StringRef fallback,
              llvm::ArrayRef<std::pair<llvm::StringRef, T>> choices) {
    std::string name = getString(field, fallback);
    std::string known;
    for (const auto &[choice, value] : choices) {
      if (choice == name)
        return value;
      known += (known.empty() ? "" : ", ") + choice.str();
    }
    error(quote(field) + " is \"" + name + "\", which is not supported; supported are " + known);
    return choices.front().second;
  }

  /// Reports the field if it is there with a value other than null and the ones given: those are
  /// the values that do not change the model.
  void requireOneOf(llvm::StringRef field, llvm::ArrayRef<nlohmann::json> accepted);

  /// Reports the field if it is a list that is not empty and has none of `accepted`.
  void requireAnyOf(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> accepted);

  /// A rate of dropout, at least 0 and less than 1.
  double getDropoutRate(llvm::StringRef field, double fallback);

  /// Says nothing of the field if it has the value, although it is not read: the value is what the
  /// model computes anyway.
  void acceptUnread(llvm::StringRef field, const nlohmann::json &value);

  /// Lists a key of an object ("rope_scaling.finetuned") among the fields that were not asked for.
  void addUnread(const std::string &name) { unread.push_back(name); }

  /// Warns about fields that were not asked for: one by one about those whose names are nearly
  /// those of fields that were, together about the others that are not known to say nothing of the
  /// model. Null and false ask for nothing.
  void warnAboutUnknownFields();

  /// Whether anything was reported so far.
  bool hasErrors() const { return !log.errors.empty(); }

  /// Reports `message` with the file's name.
  void error(const std::string &message);
  void warning(const std::string &message);

  /// The field's value if it is there, null otherwise. For fields that no getter fits.
  const nlohmann::json *find(llvm::StringRef field);

  /// The field as messages name it: in quotes, by the name that the file uses.
  std::string quote(llvm::StringRef field);

  /// `value` as messages show it: as JSON, cut where it is long.
  static std::string show(const nlohmann::json &value);

  /// No size of a model is larger. A tensor of three such sizes is larger than the dtc dialect
  /// allows, one of any two sizes and the most tokens that importModel allows is not.
  static constexpr int64_t kMaxSize = int64_t{1} << 20;
  /// Tokens are 32-bit integers, but the vocabularies of the world stay far below this.
  static constexpr int64_t kMaxVocab = int64_t{1} << 28;
  static constexpr int64_t kMaxLayers = 4096;

private:
  double getNumber(llvm::StringRef field, double fallback, bool allowZero);
  std::optional<int64_t> checkSize(llvm::StringRef field, const nlohmann::json &value,
                                   int64_t maxSize);

  nlohmann::json object;
  std::string fileName;
  ImportLog &log;
  std::map<std::string, std::string> aliases;
  std::set<std::string> known;
  std::vector<std::string> unread;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_CONFIGREADER_H
