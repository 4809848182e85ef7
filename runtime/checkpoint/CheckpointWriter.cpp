//===- CheckpointWriter.cpp - Writing the files of a checkpoint -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointWriter.h"

#include "runtime/checkpoint/Checksum.h"
#include "runtime/checkpoint/PositionedFile.h"
#include "runtime/executor/ShardRegion.h"
#include "support/AtomicFile.h"

#include <fmt/format.h>

namespace dtc::runtime {

namespace {

/// The files of one checkpoint while they are written.
class FileSet {
public:
  FileSet(const CheckpointLayout &layout, std::string folder)
      : layout(layout), folder(std::move(folder)) {}

  /// Makes the files with room for all that they will have.
  MaybeError create() {
    for (const CheckpointLayout::File &file : layout.files()) {
      Expected<PositionedFile> made = PositionedFile::create(folder + "/" + file.name, file.bytes);
      if (!made)
        return made.error();
      if (MaybeError error =
              made->write(0, std::as_bytes(std::span(file.header.data(), file.header.size()))))
        return error;
      files.push_back(std::move(*made));
    }
    return std::nullopt;
  }

  MaybeError write(const CheckpointPiece &piece) {
    const CheckpointLayout::Place &place = layout.placeOf(piece.tensor);
    uint64_t width = byteWidth(layout.tensors().at(piece.tensor).dtype);
    ShardRegion region{piece.shape, piece.offset, piece.size, piece.size};
    MaybeError error;
    region.forEachRun([&](int64_t begin, int64_t inPiece, int64_t count) {
      if (!error)
        error =
            files[place.file].write(place.offset + static_cast<uint64_t>(begin) * width,
                                    std::span(piece.data + static_cast<uint64_t>(inPiece) * width,
                                              static_cast<uint64_t>(count) * width));
    });
    return error;
  }

  MaybeError finish() {
    for (PositionedFile &file : files)
      if (MaybeError error = file.finish())
        return error;
    return std::nullopt;
  }

private:
  const CheckpointLayout &layout;
  std::string folder;
  std::vector<PositionedFile> files;
};

} // namespace

static std::string checksumOf(const CheckpointPiece &piece, DType dtype) {
  return checksumOf(std::span(piece.data, TensorType{dtype, piece.size}.numBytes()));
}

MaybeError writeCheckpoint(const CheckpointFolder &folder, const CheckpointLayout &layout,
                           const std::vector<CheckpointPiece> &pieces,
                           CheckpointManifest manifest) {
  int64_t step = manifest.position.step;
  Expected<std::string> path = folder.begin(step);
  if (!path)
    return path.error();
  FileSet files(layout, *path);
  if (MaybeError error = files.create())
    return error;
  for (const CheckpointLayout::File &file : layout.files())
    manifest.files.push_back({file.name, file.bytes, checksumOf(file.header)});
  for (const auto &[name, type] : layout.tensors()) {
    CheckpointTensor &tensor = manifest.tensors[name];
    tensor.file = layout.placeOf(name).file;
    tensor.type = type;
  }
  for (const CheckpointPiece &piece : pieces) {
    CheckpointTensor &tensor = manifest.tensors.at(piece.tensor);
    tensor.regions.push_back(
        {piece.shape, piece.offset, piece.size, checksumOf(piece, tensor.type.dtype)});
    if (MaybeError error = files.write(piece))
      return error;
  }
  if (MaybeError error = files.finish())
    return error;
  if (MaybeError error = writeTextFile(*path + "/" + kManifestName, toJson(manifest)))
    return error;
  return folder.commit(step);
}

} // namespace dtc::runtime
