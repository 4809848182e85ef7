//===- Safetensors.h - Reading of safetensors files -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The format of https://github.com/huggingface/safetensors: eight bytes with the length of a JSON
// header, the header, then the bytes of all tensors without gaps.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_SAFETENSORS_H
#define DTC_RUNTIME_DATA_SAFETENSORS_H

#include "support/AtomicFile.h"
#include "support/Error.h"
#include "support/InputFile.h"
#include "support/Tensor.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtc::runtime {

/// One tensor of a file.
struct SafetensorsEntry {
  std::string dtype; // as the file writes it: "F32", "BF16"
  std::vector<int64_t> shape;
  size_t begin = 0; // bytes, from the start of the data
  size_t end = 0;

  /// "F32[2, 3]".
  std::string str() const;
  int64_t numElements() const;
};

/// A file that is open and whose header has been checked against its size.
class SafetensorsFile {
public:
  /// Opens and checks: sizes, element types, and that the tensors fill the data without gaps and
  /// without overlap. The error begins with the path.
  static Expected<SafetensorsFile> open(const std::string &path);

  const std::string &path() const { return file.path(); }
  const InputFile &input() const { return file; }
  const std::map<std::string, SafetensorsEntry> &tensors() const { return entries; }

  /// Elements [begin, begin + count) of a tensor, converted to `dtype` and written to `out`.
  /// Conversions: F64, F32, BF16 and F16 to any float type, rounded to the nearest; integers to i32
  /// if they are in range; BOOL to bool. The error names file, tensor and element.
  MaybeError read(const std::string &name, int64_t begin, int64_t count, DType dtype,
                  std::byte *out) const;
  /// A whole tensor of the file, with the file's shape.
  Expected<HostTensor> read(const std::string &name, DType dtype) const;

private:
  explicit SafetensorsFile(InputFile file) : file(std::move(file)) {}
  MaybeError readHeader();
  MaybeError parseEntries(std::string_view header, size_t dataBytes);
  MaybeError checkCoverage(size_t dataBytes) const;

  InputFile file;
  uint64_t dataBegin = 0;
  std::map<std::string, SafetensorsEntry> entries;
};

/// All bytes of a file before its tensors: the length of the header, and the header. The tensors
/// follow without gaps, sorted by name.
std::string safetensorsHeader(const std::map<std::string, TensorType> &tensors);

/// A file that is to be written. Only the types of its tensors are known yet.
class SafetensorsWriter {
public:
  /// The value of a tensor.
  using Source = std::function<Expected<HostTensor>(const std::string &name)>;

  explicit SafetensorsWriter(std::map<std::string, TensorType> tensors);

  uint64_t numBytes() const;
  /// Writes the file and does not commit it. The tensors are asked for one after the other, sorted
  /// by name, so that they need not be in memory together. The error begins with the file's path.
  MaybeError write(AtomicFile &file, const Source &tensorOf) const;

private:
  std::map<std::string, TensorType> tensors;
  std::string header; // see safetensorsHeader
};

/// Writes a file whole or not at all.
MaybeError writeSafetensors(const std::string &path,
                            const std::map<std::string, TensorType> &tensors,
                            const SafetensorsWriter::Source &tensorOf);

/// The same for tensors that are in memory.
MaybeError writeSafetensors(const std::string &path,
                            const std::map<std::string, HostTensor> &tensors);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_SAFETENSORS_H
