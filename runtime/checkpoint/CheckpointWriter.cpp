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
#include <nlohmann/json.hpp>

namespace dtc::runtime {

namespace {

/// The files of one checkpoint while pieces are written to them.
class FileSet {
public:
  FileSet(const CheckpointFileMap &fileMap, std::string folder)
      : fileMap(fileMap), folder(std::move(folder)) {}

  MaybeError open() {
    for (const CheckpointFileMap::File &file : fileMap.files()) {
      Expected<PositionedFile> opened = PositionedFile::open(folder + "/" + file.name);
      if (!opened)
        return opened.error();
      files.push_back(std::move(*opened));
    }
    return std::nullopt;
  }

  MaybeError write(const CheckpointPiece &piece) {
    const CheckpointFileMap::Place &place = fileMap.placeOf(piece.tensor);
    uint64_t width = byteWidth(fileMap.tensors().at(piece.tensor).dtype);
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
  const CheckpointFileMap &fileMap;
  std::string folder;
  std::vector<PositionedFile> files;
};

} // namespace

static std::string checksumOf(const CheckpointPiece &piece, DType dtype) {
  return checksumOf(std::span(piece.data, TensorType{dtype, piece.size}.numBytes()));
}

MaybeError beginCheckpoint(const CheckpointFolder &folder, const CheckpointFileMap &fileMap,
                           int64_t step) {
  if (MaybeError error = folder.begin(step))
    return error;
  for (const CheckpointFileMap::File &file : fileMap.files()) {
    Expected<PositionedFile> made =
        PositionedFile::create(folder.temporaryPath(step) + "/" + file.name, file.bytes);
    if (!made)
      return made.error();
    if (MaybeError error =
            made->write(0, std::as_bytes(std::span(file.header.data(), file.header.size()))))
      return error;
  }
  return std::nullopt;
}

Expected<CheckpointRegions> writePieces(const CheckpointFolder &folder,
                                        const CheckpointFileMap &fileMap,
                                        const std::vector<CheckpointPiece> &pieces, int64_t step) {
  FileSet files(fileMap, folder.temporaryPath(step));
  if (MaybeError error = files.open())
    return *error;
  CheckpointRegions regions;
  for (const CheckpointPiece &piece : pieces) {
    DType dtype = fileMap.tensors().at(piece.tensor).dtype;
    regions[piece.tensor].push_back(
        {piece.shape, piece.offset, piece.size, checksumOf(piece, dtype)});
    if (MaybeError error = files.write(piece))
      return *error;
  }
  if (MaybeError error = files.finish())
    return *error;
  return regions;
}

MaybeError commitCheckpoint(const CheckpointFolder &folder, const CheckpointFileMap &fileMap,
                            const CheckpointRegions &regions, CheckpointManifest manifest) {
  int64_t step = manifest.position.step;
  for (const CheckpointFileMap::File &file : fileMap.files())
    manifest.files.push_back({file.name, file.bytes, checksumOf(file.header)});
  for (const auto &[name, type] : fileMap.tensors()) {
    CheckpointTensor &tensor = manifest.tensors[name];
    tensor.file = fileMap.placeOf(name).file;
    tensor.type = type;
    if (auto found = regions.find(name); found != regions.end())
      tensor.regions = found->second;
  }
  if (MaybeError error =
          writeTextFile(folder.temporaryPath(step) + "/" + kManifestName, toJson(manifest)))
    return error;
  return folder.commit(step);
}

MaybeError writeCheckpoint(const CheckpointFolder &folder, const CheckpointFileMap &fileMap,
                           const std::vector<CheckpointPiece> &pieces,
                           CheckpointManifest manifest) {
  int64_t step = manifest.position.step;
  if (MaybeError error = beginCheckpoint(folder, fileMap, step))
    return error;
  Expected<CheckpointRegions> regions = writePieces(folder, fileMap, pieces, step);
  if (!regions)
    return regions.error();
  return commitCheckpoint(folder, fileMap, *regions, std::move(manifest));
}

//===----------------------------------------------------------------------===//
// Regions between processes
//===----------------------------------------------------------------------===//

std::string toJson(const CheckpointRegions &regions) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto &[name, ofTensor] : regions)
    for (const CheckpointRegion &region : ofTensor)
      json[name].push_back({region.shape, region.offset, region.size, region.checksum});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Expected<CheckpointRegions> parseRegions(const std::string &text) {
  CheckpointRegions regions;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const auto &[name, ofTensor] : json.items())
      for (const nlohmann::json &region : ofTensor)
        regions[name].push_back({region.at(0), region.at(1), region.at(2), region.at(3)});
  } catch (const nlohmann::json::exception &exception) {
    return Error{fmt::format("what a process has written cannot be read: {}", exception.what())};
  }
  return regions;
}

} // namespace dtc::runtime
