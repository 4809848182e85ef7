//===- NearestName.h - Suggestions for misspelt names ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_NEARESTNAME_H
#define DTC_SUPPORT_NEARESTNAME_H

#include <span>
#include <string>
#include <string_view>

namespace dtc {

/// The first of those names that are nearest to `word`, counted in letters to add, remove, replace
/// or exchange with the next one. Empty where none is near: more than two letters off, or more than
/// a third of a long word, is another word.
std::string nearestName(std::string_view word, std::span<const std::string> names);

/// "; did you mean "show"?", or empty where no name is near.
std::string didYouMean(std::string_view word, std::span<const std::string> names);

/// Names in quotes: "\"dp\", \"tp\"". Of a long list the first, and how many more there are.
std::string quoteNames(std::span<const std::string> names);

/// `a, b, c, d, ...`: the first names.
std::string listSome(std::span<const std::string> names);

} // namespace dtc

#endif // DTC_SUPPORT_NEARESTNAME_H
