//===- RotaryConfig.h - Rotary positions of a configuration ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_ROTARYCONFIG_H
#define DTC_COMPILER_IMPORT_ROTARYCONFIG_H

#include "compiler/import/Family.h"

namespace dtc {

/// What configurations say of rotary positions: the fields of a family, and what scales them:
/// 'rope_parameters', as transformers writes it since version 5, or 'rope_scaling' before.
class RotaryConfig {
public:
  /// Reads the fields; the reader has an error where one is wrong or not understood.
  RotaryConfig(ConfigReader &reader, const Family &family, int64_t headSize, int64_t positions,
               int64_t seq);

  /// The frequencies of all layers, or of those with attention to all keys.
  Rotary full() const { return rotaryFor(entries, theta); }
  /// Those of layers with windows, where 'rope_parameters' has entries of their own for them;
  /// otherwise without scaling, of base `base`.
  Rotary sliding(double base) const;

  /// How many positions the model is made for: more than the field says, if scaling extends them.
  int64_t reach() const;

private:
  using json = nlohmann::json;

  const json *findEntries();
  void readTheta(const Family &family);
  void readOriginal(const Family &family);
  Rotary rotaryFor(const json &entries, double theta) const;
  void scaleYarn(Rotary &rotary, const json &entries, double theta) const;
  void scaleLong(Rotary &rotary, const json &entries) const;
  std::vector<double> factors(const json &entries, llvm::StringRef key, size_t count) const;
  void checkKeys(const json &entries) const;
  std::string typeOf(const json &entries) const;
  double number(const json &entries, llvm::StringRef key, double fallback) const;
  double requiredNumber(const json &entries, llvm::StringRef key) const;
  std::string where(llvm::StringRef key) const {
    return reader.quote(field) + " has '" + key.str() + "'";
  }

  ConfigReader &reader;
  int64_t headSize, positions, seq;
  /// What 'original_max_position_embeddings' beside the entries says, or the family's default.
  std::optional<int64_t> original;
  std::string field = "rope_scaling";
  json entries = json::object(), slidingEntries = nullptr;
  double theta = 10000, part = 1;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_ROTARYCONFIG_H
