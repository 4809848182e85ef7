//===- OptionTable.h - The options of a compilation, described ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The one description of each option of CompileOptions.h. The flags of dtc-compile, the fields of
// strategy files, --set, what is checked of a value, the messages and the documentation of flags
// are made from it.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_OPTIONTABLE_H
#define DTC_COMPILER_DRIVER_OPTIONTABLE_H

#include "compiler/driver/CompileOptions.h"
#include "support/Error.h"

#include <functional>
#include <variant>

namespace dtc {

/// The member of CompileOptions that an option sets.
using OptionMember =
    std::variant<bool CompileOptions::*, int64_t CompileOptions::*, double CompileOptions::*,
                 std::optional<double> CompileOptions::*, std::string CompileOptions::*,
                 std::vector<std::string> CompileOptions::*, CompileMode CompileOptions::*,
                 Recompute CompileOptions::*, ContextExchange CompileOptions::*,
                 ComputeType CompileOptions::*, Optimizer CompileOptions::*,
                 MeshSizes CompileOptions::*, LinkSpeeds CompileOptions::*>;

/// The allowed values of a number. The default is always one of them.
struct NumberRange {
  double least = 0, most = 0;
  bool isLeastExcluded = false, isMostExcluded = false;
  const char *expected = nullptr; ///< for messages; null: "<least> to <most>"
};

/// The unit of a number: none, or bytes, as in "64MiB".
enum class OptionUnit { None, Bytes };

struct Option {
  /// The name of the field: "bucket_bytes". The flag is "--bucket-bytes".
  llvm::StringRef name;
  OptionMember member;
  /// For --help and docs/reference.md.
  std::string help;
  /// The range and the unit of a number.
  NumberRange range = {};
  OptionUnit unit = OptionUnit::None;
  /// The words that a string may be, or an enum that may not have each of its values, in the order
  /// of messages.
  std::function<std::vector<std::string>()> words = nullptr;
  /// A field of strategy files: it says how the model is spread over devices.
  bool isStrategy = false;
  /// A search chooses it, unless --set or the flag fixes it.
  bool isSearched = false;
  /// Has a meaning for one mesh alone, so that it cannot be given where the mesh is searched.
  bool needsMesh = false;
  /// The flag of a list takes one element at a time, which may contain commas.
  bool hasCommas = false;

  std::string flag() const;
  /// Whether it has any number of values, which setOption() takes one by one.
  bool isList() const;
};

llvm::ArrayRef<Option> getOptions();

/// Null where there is no option of that name.
const Option *findOption(llvm::StringRef name);

/// How a message names an option: as its flag or as the field of a strategy file.
enum class OptionSpelling { Flag, Field };
std::string spell(llvm::StringRef name, OptionSpelling spelling);

/// Sets an option from text as a flag has it. A list is appended to. `isFixed`: the text must be a
/// value, and not "auto", by which a value would be chosen. The error of a field names it, that of
/// a flag does not: CLI11 does.
MaybeError setOption(const Option &option, llvm::StringRef text, CompileOptions &options,
                     OptionSpelling spelling = OptionSpelling::Field, bool isFixed = false);

/// Checks the value of a field from any source.
MaybeError checkOption(const Option &option, const CompileOptions &options);

/// The value, as setOption() takes it: "auto", "25MiB", "true". Of a list, joined by commas.
std::string formatOption(const Option &option, const CompileOptions &options);

/// Where the mesh comes from: the options (none is one device), a model with a mesh of its own, or
/// a search.
enum class MeshSource { Options, Model, Search };

/// Checks the options against each other.
MaybeError findConflict(const CompileOptions &options, OptionSpelling spelling, MeshSource source);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_OPTIONTABLE_H
