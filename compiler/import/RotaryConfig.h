//===- RotaryConfig.h - Rotary positions of a configuration ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_ROTARYCONFIG_H
#define DTC_COMPILER_IMPORT_ROTARYCONFIG_H

#include "compiler/import/Family.h"

#include <set>
#include <string>

namespace dtc {

/// The fields of a configuration about rotary positions: those of a family, and the scaling:
/// 'rope_parameters', as transformers writes it since version 5, or 'rope_scaling' before.
class RotaryConfig {
public:
  /// Reads the fields for heads of `headSize` elements, of latent attention those that are rotated;
  /// the reader has an error where one is wrong or not understood.
  RotaryConfig(ConfigReader &reader, const Family &family, int64_t headSize, int64_t positions,
               int64_t seq);

  /// The frequencies of all layers, or of those with attention to all keys.
  Rotary full() { return rotaryFor(fullEntries); }
  /// Those of layers with windows, of families where these differ.
  Rotary sliding() { return rotaryFor(slidingEntries); }

  /// The factor of the scores of latent attention, beside 1 / sqrt of the size of a head.
  double scaleOfScores();

  /// How many positions the model is made for: more than the field says, if scaling extends them.
  int64_t reach();

  /// Lists the entries that nothing above has read, for the warning about unknown fields.
  void listUnread();

private:
  using json = nlohmann::json;

  /// An object that scales positions. As ConfigReader does, it knows which of its keys are read.
  struct Entries {
    std::string name = "rope_parameters";
    json values = json::object();
    std::set<std::string> known = {};
    double theta = 10000;

    const json *find(llvm::StringRef key) {
      known.insert(key.str());
      auto it = values.find(key.str());
      return it == values.end() ? nullptr : &*it;
    }
  };

  const json *findObject(llvm::StringRef name);
  void readEntries();
  void readEntriesOfKinds();
  void readTheta(Entries &entries, llvm::StringRef field, double fallback);
  void checkType(Entries &entries);
  /// The type that a written one means; "" if the family does not know it.
  std::string typeNamed(const json &written) const;
  std::string typeOf(const Entries &entries) const;
  double originalOf(Entries &entries);
  double rotatedPart(Entries &entries, llvm::StringRef type);
  void checkRotated(const Rotary &rotary, llvm::StringRef type, double part);
  Rotary rotaryFor(Entries &entries);
  void scaleYarn(Rotary &rotary, Entries &entries);
  void scaleLong(Rotary &rotary, Entries &entries);
  std::vector<double> factors(Entries &entries, llvm::StringRef key, size_t count);
  double number(Entries &entries, llvm::StringRef key, double fallback);
  double numberUnlessZero(Entries &entries, llvm::StringRef key, double fallback);
  double requiredNumber(Entries &entries, llvm::StringRef key);
  std::string where(const Entries &entries, llvm::StringRef key) {
    return reader.quote(entries.name) + " has '" + key.str() + "'";
  }

  ConfigReader &reader;
  const Family &family;
  int64_t headSize, positions, seq;
  Entries fullEntries, slidingEntries;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_ROTARYCONFIG_H
