//===- Lora.cpp - Low-rank adapters of imported models --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Lora.h"

#include "compiler/import/ConfigReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace dtc;
using llvm::StringRef;

/// The part of a name after the last dot.
static StringRef lastPart(StringRef name) { return name.substr(name.rfind('.') + 1); }

static Error makeError(const llvm::Twine &message) {
  return Error{(message + "; an example is rank=8,alpha=16,target=q_proj,v_proj").str()};
}

/// Sets the number that `key` names; `text` follows the equals sign.
static MaybeError readNumber(StringRef key, StringRef text, LoraOptions &options) {
  auto expected = [&](const llvm::Twine &what) {
    return makeError("found " + key + "=" + text + ", expected " + what);
  };
  if (key == "rank") {
    if (text.getAsInteger(10, options.rank) || options.rank < 1 ||
        options.rank > ConfigReader::kMaxSize)
      return expected("a whole number from 1 to " + llvm::Twine(ConfigReader::kMaxSize));
    return std::nullopt;
  }
  double value;
  bool isNumber = !text.getAsDouble(value) && std::isfinite(value);
  if (key == "alpha") {
    if (!isNumber || value <= 0)
      return expected("a number greater than 0");
    options.alpha = value;
    return std::nullopt;
  }
  if (!isNumber || value < 0 || value >= 1)
    return expected("a rate of at least 0 and less than 1");
  options.dropout = value;
  return std::nullopt;
}

Expected<LoraOptions> dtc::parseLora(StringRef text) {
  LoraOptions options;
  llvm::SmallVector<StringRef> items, keys;
  text.split(items, ',');
  for (StringRef item : items) {
    StringRef key, value = item;
    if (item.contains('=')) {
      std::tie(key, value) = item.split('=');
      if (!llvm::is_contained({"rank", "alpha", "target", "dropout"}, key))
        return makeError("found '" + item +
                         "', expected rank=R, alpha=A, target=LAYERS and, if you like, dropout=P");
      if (llvm::is_contained(keys, key))
        return makeError("has " + key + " twice, expected it once");
      keys.push_back(key);
    } else if (keys.empty() || keys.back() != "target") {
      return makeError("found '" + item +
                       "', expected rank=R, alpha=A, target=LAYERS and, if you like, dropout=P");
    }
    if (keys.back() != "target") {
      if (MaybeError error = readNumber(key, value, options))
        return *error;
    } else if (value.empty()) {
      return makeError("has an empty name of a layer in its target, expected the last part of a "
                       "layer's name, or " +
                       kAllLinear);
    } else if (!llvm::is_contained(options.targets, value)) {
      options.targets.push_back(value.str());
    }
  }
  for (StringRef key : {"rank", "alpha", "target"})
    if (!llvm::is_contained(keys, key))
      return makeError("has no " + key);
  return options;
}

/// Compares as PEFT does: the target is the whole name, or its end after a dot.
static bool isNamedBy(StringRef module, StringRef target) {
  return module.consume_back(target) && (module.empty() || module.ends_with("."));
}

bool LoraTargets::matchAll(llvm::ArrayRef<std::string> modules) {
  StringRef first = modules.front(), last = lastPart(first);
  if (!llvm::is_contained(known, last))
    known.push_back(last.str());
  if (example.empty())
    example = first.str();
  bool any = false;
  for (const std::string &name : names) {
    bool isAll = name == kAllLinear;
    auto matches = [&](StringRef module) {
      return isAll ? module != outputLayer : isNamedBy(module, name);
    };
    auto found = llvm::find_if(modules, matches);
    if (found == modules.end())
      continue;
    any = true;
    if (!llvm::is_contained(used, name))
      used.push_back(name);
    if (!llvm::all_of(modules, matches))
      problems.try_emplace(name, "which names " + *found +
                                     " and not that layer of all experts; these have adapters "
                                     "together, and " +
                                     last.str() + " names them");
  }
  return any;
}

bool LoraTargets::matchTensor(StringRef tensor, bool drops) {
  bool any = false;
  for (const std::string &name : names) {
    if (name == kAllLinear || !isNamedBy(tensor, name))
      continue;
    any = true;
    if (!llvm::is_contained(used, name))
      used.push_back(name);
    if (drops)
      problems.try_emplace(name, "which names " + tensor.str() +
                                     ", one tensor of all experts, whose adapter has no dropout, "
                                     "as PEFT's target_parameters; leave dropout out, or the "
                                     "target");
  }
  return any;
}

std::vector<std::string> LoraTargets::resolved() const {
  std::vector<std::string> result;
  auto add = [&](const std::string &name) {
    if (!llvm::is_contained(result, name))
      result.push_back(name);
  };
  for (const std::string &name : names) {
    if (name != kAllLinear) {
      add(name);
      continue;
    }
    for (const std::string &layer : known)
      if (layer != lastPart(outputLayer))
        add(layer);
  }
  return result;
}

std::vector<Error> LoraTargets::errors() const {
  std::vector<Error> errors;
  for (const std::string &name : names) {
    std::string problem;
    if (auto found = problems.find(name); found != problems.end())
      problem = found->second;
    else if (!llvm::is_contained(used, name))
      problem = "which names no linear layer of the model; it has " + llvm::join(known, ", ") +
                " (the first one is " + example + "), and '" + kAllLinear.str() +
                "' stands for all but " + outputLayer;
    if (!problem.empty())
      errors.push_back({"--lora has the target '" + name + "', " + problem});
  }
  return errors;
}
