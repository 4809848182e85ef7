//===- AlsoFor.cpp - Plans for fewer devices -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/AlsoFor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

using namespace dtc;

Expected<std::vector<int64_t>> dtc::parseAlsoFor(const std::string &text) {
  auto wrong = [&] {
    return Error{fmt::format("\"{}\"; expected numbers of devices, such as devices=6,4", text)};
  };
  llvm::StringRef rest = text;
  if (!rest.consume_front("devices="))
    return wrong();
  std::vector<int64_t> numbers;
  llvm::SmallVector<llvm::StringRef> words;
  rest.split(words, ',');
  for (llvm::StringRef word : words) {
    int64_t number = 0;
    if (word.getAsInteger(10, number) || number < 1)
      return wrong();
    if (llvm::is_contained(numbers, number))
      return Error{fmt::format("\"{}\": {} is given twice", text, number)};
    numbers.push_back(number);
  }
  return numbers;
}

Expected<MeshSizes> dtc::meshForFewer(const MeshSizes &mesh, int64_t devices) {
  int64_t all = 1;
  for (const auto &[name, size] : mesh)
    all *= size;
  if (devices >= all)
    return Error{fmt::format("{} devices are not fewer than the {} of the mesh", devices, all)};
  std::string reasons;
  for (const char *axis : {"dp", "fsdp"}) {
    MeshSizes fewer = mesh;
    auto found = llvm::find_if(fewer, [&](const auto &each) { return each.first == axis; });
    if (found == fewer.end())
      continue;
    int64_t others = all / found->second;
    if (devices % others == 0) {
      found->second = devices / others;
      return fewer;
    }
    reasons += fmt::format("{} a smaller {} gives multiples of {}", reasons.empty() ? ":" : ", and",
                           axis, others);
  }
  if (reasons.empty())
    return Error{"the mesh has no data axis, dp or fsdp, that could be smaller"};
  return Error{fmt::format("the mesh cannot have {} devices{}", devices, reasons)};
}
