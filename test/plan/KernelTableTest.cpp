//===- KernelTableTest.cpp - The table of kernels and its documentation ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"
#include "test/lib/files/SourcePath.h"

#include "plan/plan.pb.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace kernelTableTest {

using namespace dtc;
using namespace dtc::runtime::testing;

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

TEST(KernelTable, InPlacePairsAreOperands) {
  for (const KernelInfo &kernel : allKernels())
    for (auto [input, output] : kernel.inPlace) {
      EXPECT_LT(input, kernel.inputs.least) << kernel.name;
      EXPECT_LT(output, kernel.outputs) << kernel.name;
    }
}

TEST(KernelTable, InPlaceIsDocumented) {
  for (const auto &[name, row] : documentedKernels())
    EXPECT_EQ(!findKernel(name).inPlace.empty(),
              row.find("in place") != row.npos || row.find("In place") != row.npos)
        << name;
}

/// The cells of a kernel's row after its name. A cell that says "as `adamw`" is that of adamw.
std::string documentedCell(const std::string &kernel, size_t column) {
  std::string row = documentedKernels()[kernel];
  for (size_t begin = 0, cell = 0; (begin = row.find("| ", begin)) != row.npos; ++cell) {
    size_t end = row.find(" |", begin + 1);
    std::string text = row.substr(begin + 2, std::max(begin + 2, end) - begin - 2);
    std::smatch other;
    if (cell == column)
      return std::regex_search(text, other, std::regex("^as `(\\w+)`")) && other[1] != kernel
                 ? documentedCell(other[1], column)
                 : text;
    begin = end;
  }
  return "";
}

/// How many operands a side of "p, g: W[s]; lr: W scalar" names; -1: any number.
int countOperands(std::string side) {
  side = std::regex_replace(side, std::regex("\\[[^\\]]*\\]"), "");
  if (side.find("...") != side.npos)
    return -1;
  bool isEmpty = std::all_of(side.begin(), side.end(), [](char c) { return c == ' '; });
  auto commas =
      std::count_if(side.begin(), side.end(), [](char c) { return c == ',' || c == ';'; });
  return isEmpty ? 0 : static_cast<int>(commas) + 1;
}

TEST(KernelTable, OperandsAreDocumented) {
  for (const KernelInfo &kernel : allKernels()) {
    std::string name(kernel.name), cell = documentedCell(name, 0);
    cell = cell.substr(1, cell.find('`', 1) - 1);
    size_t arrow = cell.find("->");
    ASSERT_NE(arrow, cell.npos) << name << ": " << cell;
    int inputs = countOperands(cell.substr(0, arrow));
    EXPECT_EQ(countOperands(cell.substr(arrow + 2)), kernel.outputs) << name;
    EXPECT_EQ(inputs < 0 ? 1 : inputs, kernel.inputs.least) << name;
    if (inputs < 0) {
      EXPECT_GT(kernel.inputs.most, 1000) << name;
      continue;
    }
    std::string row = documentedKernels()[name];
    int optional = 0;
    for (const char *words : {"one more input", "last input"})
      optional += row.find(words) != row.npos;
    EXPECT_EQ(kernel.inputs.most, inputs + optional) << name;
  }
}

TEST(KernelTable, AttributesAreDocumented) {
  for (const KernelInfo &kernel : allKernels()) {
    std::string cell = documentedCell(std::string(kernel.name), 1);
    // "beta1, eps: f", "scale?: f", `kind: "sum","max"`; without a kind it is that of a word.
    std::set<std::string> documented, known;
    std::regex quoted("`([^`]+)`"), word("[a-z_0-9]+\\??");
    for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
      std::string text = (*it)[1], names = text.substr(0, text.find(':'));
      std::string kind = names == text ? "\"" : text.substr(names.size() + 2);
      for (std::sregex_iterator at(names.begin(), names.end(), word); at != end; ++at)
        documented.insert(at->str() + ":" + (kind.starts_with('"') ? "s" : kind));
    }
    for (const KernelAttribute &attribute : kernel.attributes)
      known.insert(std::string(attribute.name) + (attribute.isOptional ? "?:" : ":") +
                   std::string(name(attribute.kind)));
    EXPECT_EQ(known, documented) << kernel.name;
  }
}

TEST(KernelTable, ChecksCalls) {
  plan::KernelCall call;
  call.set_kernel("transpose");
  call.add_inputs(0);
  call.add_outputs(1);
  EXPECT_ERROR(checkKernelCall(call),
               "kernel \"transpose\" has no attribute \"permutation\", expected one of kind ints");
  (*call.mutable_attributes())["permutation"];
  EXPECT_ERROR(checkKernelCall(call), "attribute \"permutation\" without a value, expected");
  (*call.mutable_attributes())["permutation"].set_i(1);
  EXPECT_ERROR(checkKernelCall(call),
               "attribute \"permutation\" of kind i, expected one of kind ints");
  (*call.mutable_attributes())["permutation"].mutable_ints()->add_values(0);
  EXPECT_OK(checkKernelCall(call));
  (*call.mutable_attributes())["shape"].mutable_ints();
  (*call.mutable_attributes())["axes"].mutable_strings();
  EXPECT_ERROR(checkKernelCall(call), "has the attribute \"axes\", expected \"permutation\"");
  call.mutable_attributes()->erase("permutation"); // one that is misspelled is not said to lack
  EXPECT_ERROR(checkKernelCall(call), "has the attribute \"axes\", expected \"permutation\"");
  call.add_inputs(2);
  EXPECT_ERROR(checkKernelCall(call), "kernel \"transpose\" has 2 inputs, expected 1");
  call.mutable_inputs()->RemoveLast();
  call.add_outputs(2);
  EXPECT_ERROR(checkKernelCall(call), "has 2 outputs, expected 1");
  call.set_kernel("transpoze");
  EXPECT_ERROR(checkKernelCall(call),
               "there is no kernel \"transpoze\"; did you mean \"transpose\"?");
  for (const char *none : {"", "convolution"}) {
    call.set_kernel(none);
    EXPECT_ERROR(checkKernelCall(call), std::string("there is no kernel \"") + none +
                                            "\"; docs/kernels.md lists all kernels");
  }

  plan::KernelCall neg;
  neg.set_kernel("neg");
  neg.add_inputs(0);
  neg.add_outputs(1);
  (*neg.mutable_attributes())["rate"].set_f(1);
  EXPECT_ERROR(checkKernelCall(neg), "has the attribute \"rate\", expected none");
  plan::KernelCall many;
  many.set_kernel("concat");
  (*many.mutable_attributes())["dim"].set_i(0);
  EXPECT_ERROR(checkKernelCall(many), "has 0 inputs, expected 1 or more");
  plan::KernelCall attention;
  attention.set_kernel("attention");
  for (uint32_t i = 0; i < 6; ++i)
    attention.add_inputs(i);
  EXPECT_ERROR(checkKernelCall(attention), "has 6 inputs, expected 3 to 5");
}

TEST(KernelTable, TakesKernelsOfBackends) {
  EXPECT_ERROR(addKernel({.name = "add"}), "there is a kernel \"add\" already");
  EXPECT_ERROR(addKernel({}), "without a name");
  plan::KernelCall call;
  call.set_kernel("table_test_square");
  call.add_inputs(0);
  call.add_outputs(1);
  EXPECT_ERROR(checkKernelCall(call), "there is no kernel \"table_test_square\"");
  EXPECT_OK(addKernel({.name = "table_test_square", .isPointwise = true}));
  EXPECT_OK(checkKernelCall(call));
  EXPECT_TRUE(findKernel("table_test_square").isPointwise);
  EXPECT_ERROR(addKernel({.name = "table_test_square"}), "already");
  call.add_outputs(2);
  EXPECT_ERROR(checkKernelCall(call), "has 2 outputs, expected 1");
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

} // namespace kernelTableTest
