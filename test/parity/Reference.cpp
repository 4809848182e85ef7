//===- Reference.cpp - Reference data of parity tests ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/parity/Reference.h"

#include "plan/FileTensors.h"
#include "plan/PlanTypes.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/Safetensors.h"
#include "runtime/train/Weights.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/files/SourcePath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace dtc;
using namespace dtc::test;

/// A function, for the tests are listed before globals of this file need exist.
static std::string root() { return dtc::test::sourcePath("test/parity/data/"); }

std::vector<std::string> dtc::test::findReferences(const std::string &file) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(root()))
    if (entry.path().filename() == file) {
      std::string name = entry.path().parent_path().lexically_relative(root()).string();
      // Other folders hold references of another kind (LoraParityTest.cpp).
      if (std::filesystem::exists(root() + name.substr(0, name.find('/')) + "/config.json"))
        names.push_back(name);
    }
  std::sort(names.begin(), names.end());
  return names;
}

Reference::Reference(const std::string &name)
    : folder(root() + name + "/"), model(root() + name.substr(0, name.find('/')) + "/") {
  expected = std::filesystem::exists(path("expected.json")) ? json("expected.json")
                                                            : nlohmann::json::object();
}

bool Reference::hasOwn(const std::string &file) const {
  return std::filesystem::exists(folder + file);
}

std::string Reference::path(const std::string &file) const {
  return (hasOwn(file) ? folder : model) + file;
}

nlohmann::json Reference::json(const std::string &file) const {
  // A file that is not there, or is not JSON, must not pass for one without settings.
  std::ifstream stream(path(file));
  nlohmann::json value = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(value.is_object()) << path(file);
  return value;
}

bool Reference::hasTensor(const std::string &file, const std::string &name) const {
  auto opened = runtime::SafetensorsFile::open(path(file));
  EXPECT_TRUE(bool(opened)) << opened.error().message;
  return opened->tensors().count(name) > 0;
}

HostTensor Reference::tensor(const std::string &file, const std::string &name, DType dtype) const {
  auto opened = runtime::SafetensorsFile::open(path(file));
  EXPECT_TRUE(bool(opened)) << opened.error().message;
  auto tensor = opened->read(name, dtype);
  EXPECT_TRUE(bool(tensor)) << tensor.error().message;
  return std::move(*tensor);
}

HostTensor Reference::tensor(const std::string &file, const plan::State &parameter,
                             DType dtype) const {
  std::vector<std::string> names = fileTensorNames(parameter.name());
  TensorType type{dtype, toVector(parameter.file_shape())};
  if (names.size() > 1) {
    HostTensor stack(type);
    std::byte *to = stack.bytes.data();
    for (const std::string &name : names) {
      HostTensor each = tensor(file, name, dtype);
      to = std::copy(each.bytes.begin(), each.bytes.end(), to);
    }
    return stack;
  }
  std::optional<FileRows> rows = fileRowsOf(parameter.name());
  HostTensor whole = tensor(file, names.front(), dtype);
  if (!rows)
    return whole;
  EXPECT_EQ(rows->dim, 0) << parameter.name();
  size_t row = type.numBytes() / size_t(rows->end - rows->begin);
  HostTensor part(type);
  std::memcpy(part.bytes.data(), whole.bytes.data() + size_t(rows->begin) * row, type.numBytes());
  return part;
}

/// Sets `field` to the member of that name, if there is one.
template <typename T> static void read(const nlohmann::json &object, const char *name, T &field) {
  if (object.contains(name))
    object[name].get_to(field);
}

int64_t Reference::sequence() const { return expected.value("seq", int64_t{0}); }

ImportOptions Reference::importOptions() const {
  ImportOptions options;
  nlohmann::json loss = expected.value("loss_options", nlohmann::json::object());
  read(loss, "label_smoothing", options.labelSmoothing);
  read(loss, "z_loss", options.zLoss);
  if (loss.contains("ignore_index"))
    options.ignoreIndex = loss["ignore_index"].get<int64_t>();
  read(loss, "packed", options.packed);
  return options;
}

CompileOptions Reference::compileOptions(const std::string &strategy) const {
  CompileOptions options = test::strategy(strategy);
  const nlohmann::json &optimizer = expected["optimizer"];
  std::string name = wordOf(options.optimizer);
  read(optimizer, "name", name);
  options.optimizer = *valueOf<Optimizer>(name);
  read(optimizer, "beta1", options.beta1);
  if (optimizer.contains("beta2"))
    options.beta2 = optimizer["beta2"].get<double>();
  read(optimizer, "eps", options.eps);
  read(optimizer, "momentum", options.momentum);
  read(optimizer, "weight_decay", options.weightDecay);
  read(optimizer, "clip_norm", options.clip);
  read(expected, "freeze", options.freeze);
  read(expected, "param_groups", options.paramGroups);
  return options;
}

void Reference::setWeights(runtime::Session &session, const std::string &file) const {
  auto notes = runtime::loadWeights(session, path(file));
  ASSERT_TRUE(bool(notes)) << notes.error().message;
  // Tensors that transformers saves and does not compute with.
  std::string unused;
  read(expected, "unused_tensor", unused);
  std::string all;
  for (const std::string &note : *notes)
    all += note;
  EXPECT_EQ(all.empty(), unused.empty()) << "the file has other tensors than the model: " << all;
  EXPECT_TRUE(all.ends_with(unused)) << all << ", expected " << unused;
}

void Reference::setBatch(runtime::Session &session, const std::string &file, int64_t index) const {
  std::vector<runtime::DataInput> inputs = runtime::dataInputsOf(session.plan());
  EXPECT_GE(inputs.size(), 2u);
  for (const runtime::DataInput &input : inputs) {
    EXPECT_EQ(input.type.shape.front(), expected["batch"]);
    HostTensor all = tensor(file, input.name, input.type.dtype);
    HostTensor rows(input.type);
    ASSERT_LE((index + 1) * rows.type.numElements(), all.type.numElements()) << path(file);
    std::memcpy(rows.bytes.data(), all.bytes.data() + size_t(index) * rows.bytes.size(),
                rows.bytes.size());
    auto problem = session.setInput(input.name, rows);
    EXPECT_FALSE(problem) << problem->message;
  }
}
