//===- EnumNames.h - Names of the values of enums -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_ENUMNAMES_H
#define DTC_SUPPORT_ENUMNAMES_H

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtc {

/// The names of an enum whose values are numbered from 1: a specialization has them as `list`, in
/// the order of the numbers.
template <typename Enum> struct EnumNames;

template <typename Enum>
concept NamedEnum = requires {
  EnumNames<Enum>::list;
};

/// The value's number, from 0.
template <NamedEnum Enum> constexpr size_t indexOf(Enum value) {
  return static_cast<size_t>(value) - 1;
}

/// Whether the number is a value of the enum: a number from a file may be any.
template <NamedEnum Enum> constexpr bool isNamed(Enum value) {
  return indexOf(value) < EnumNames<Enum>::list.size();
}

/// The name that IR, plans and reports use; "unknown" for a number that is not in the enum.
template <NamedEnum Enum> constexpr const char *name(Enum value) {
  return isNamed(value) ? EnumNames<Enum>::list[indexOf(value)] : "unknown";
}

/// The value that has the name; none where no value has it.
template <NamedEnum Enum> constexpr std::optional<Enum> findByName(std::string_view text) {
  for (size_t index = 0; index < EnumNames<Enum>::list.size(); ++index)
    if (EnumNames<Enum>::list[index] == text)
      return static_cast<Enum>(index + 1);
  return std::nullopt;
}

} // namespace dtc

#endif // DTC_SUPPORT_ENUMNAMES_H
