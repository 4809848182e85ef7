//===- CsvLine.h - Lines of tables with commas -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_CSVLINE_H
#define DTC_BENCHMARKS_CSVLINE_H

#include <optional>
#include <string>
#include <vector>

namespace dtc::benchmarks {

/// The values of a line, without the spaces around them: between commas, those with commas in
/// double quotes, double quotes in these twice (RFC 4180). None if a quote is not closed.
std::optional<std::vector<std::string>> splitCsvLine(const std::string &line);

/// A value as splitCsvLine() reads it, in quotes where it needs them.
std::string csvValue(const std::string &value);

/// The text without the spaces around it.
std::string trimmed(const std::string &text);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_CSVLINE_H
