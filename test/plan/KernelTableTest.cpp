//===- KernelTableTest.cpp - The table of kernels and its documentation ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"
#include "test/lib/files/SourcePath.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

using namespace dtc::runtime;

namespace {

/// The rows of the tables in docs/kernels.md by kernel. A row may name several.
std::map<std::string, std::string> documentedKernels() {
  std::ifstream file(dtc::test::sourcePath("docs/kernels.md"));
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `"))
      continue;
    size_t end = line.find(" | ");
    std::string names = line.substr(2, end - 2);
    for (size_t begin = 0; (begin = names.find('`', begin)) != names.npos;) {
      size_t close = names.find('`', begin + 1);
      rows[names.substr(begin + 1, close - begin - 1)] = line.substr(end);
      begin = close + 1;
    }
  }
  return rows;
}

TEST(KernelTable, HasTheKernelsOfTheDocumentation) {
  std::set<std::string> documented, known;
  for (const auto &[name, row] : documentedKernels())
    documented.insert(name);
  for (const KernelInfo &kernel : allKernels())
    known.emplace(kernel.name);
  EXPECT_EQ(known, documented);
}

TEST(KernelTable, InPlaceIsDocumented) {
  for (const auto &[name, row] : documentedKernels())
    EXPECT_EQ(!findKernel(name).inPlace.empty(),
              row.find("in place") != row.npos || row.find("In place") != row.npos)
        << name;
}

TEST(KernelTable, FindsByName) {
  for (const KernelInfo &kernel : allKernels())
    EXPECT_EQ(&findKernel(kernel.name), &kernel);
  EXPECT_TRUE(mayRunInPlace("adamw", 3, 2));
  EXPECT_FALSE(mayRunInPlace("adamw", 1, 0));
  EXPECT_TRUE(mayRunInPlace("select", 2, 0));
  EXPECT_FALSE(mayRunInPlace("select", 0, 0));
  EXPECT_TRUE(readsOwnOutput("accumulate"));
  EXPECT_FALSE(readsOwnOutput("add"));
}

TEST(KernelTable, AnUnknownKernelDoesNothingSpecial) {
  for (const char *name : {"", "aaa", "addd", "zzz"}) {
    EXPECT_EQ(classOf(name), KernelClass::Other) << name;
    EXPECT_FALSE(mayRunInPlace(name, 0, 0)) << name;
    EXPECT_FALSE(readsOwnOutput(name)) << name;
  }
}

} // namespace
