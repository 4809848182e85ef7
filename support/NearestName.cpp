//===- NearestName.cpp - Suggestions for misspelt names -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/NearestName.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>
#include <vector>

namespace dtc {

/// Longer words are not compared: the time grows with the product of the lengths.
static constexpr size_t kLongestWord = 64;

/// Names that an error message lists.
static constexpr size_t kMostNames = 32;

/// How many letters must be added, removed, replaced or exchanged with the next one to make one
/// word the other: the "optimal string alignment", by the rows of its table (Damerau 1964).
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> twoAbove, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (a[i] == b[j] ? 0 : 1), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], twoAbove[j - 1] + 1);
    }
    twoAbove = std::exchange(above, row);
  }
  return above.back();
}

std::string nearestName(std::string_view word, std::span<const std::string> names) {
  std::string nearest;
  if (word.size() > kLongestWord)
    return nearest;
  // A word that keeps no letter is no misspelling.
  size_t limit = std::max<size_t>(2, word.size() / 3);
  for (const std::string &name : names) {
    if (name.size() > kLongestWord)
      continue;
    size_t distance = editDistance(word, name);
    if (distance > limit || distance >= std::max(word.size(), name.size()))
      continue;
    nearest = name;
    if (distance == 0)
      break;
    limit = distance - 1;
  }
  return nearest;
}

std::string didYouMean(std::string_view word, std::span<const std::string> names) {
  std::string nearest = nearestName(word, names);
  return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string quoteNames(std::span<const std::string> names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
  if (names.size() > kMostNames)
    text += fmt::format(" and {} more", names.size() - kMostNames);
  return text;
}

std::string listSome(std::span<const std::string> names) {
  constexpr size_t shown = 4;
  return fmt::format("{}{}", fmt::join(names.first(std::min(names.size(), shown)), ", "),
                     names.size() > shown ? ", ..." : "");
}

} // namespace dtc
