//===- SavedFiles.cpp - Files written at the end of a run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/SavedFiles.h"

namespace dtc::runtime {

Expected<SavedFiles::File> SavedFiles::open(const plan::Plan &plan, const std::string &path,
                                            SavedContent content, bool isWriter) {
  if (content == SavedContent::Merged)
    if (MaybeError error = SavedWeights::checkMerging(plan))
      return error->inContext("--save-merged");
  File result{path, SavedWeights(plan, content), {}, {}};
  if (!isWriter)
    return result;
  if (content == SavedContent::Adapters) {
    Expected<AdapterFolder> folder = AdapterFolder::create(plan, path);
    if (!folder)
      return folder.error();
    result.adapters = std::move(*folder);
    return result;
  }
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = file->reserve(result.content.numBytes()))
    return *error;
  result.file = std::move(*file);
  return result;
}

Expected<SavedFiles> SavedFiles::create(const plan::Plan &plan, const TrainOptions &options) {
  SavedFiles saved;
  auto add = [&](const std::string &path, SavedContent content) -> MaybeError {
    if (path.empty())
      return std::nullopt;
    Expected<File> file = open(plan, path, content, options.processes.isFirst());
    if (!file)
      return file.error();
    saved.files.push_back(std::move(*file));
    saved.allPaths.push_back(path);
    return std::nullopt;
  };
  if (MaybeError error = add(options.savePath, SavedContent::All))
    return *error;
  if (MaybeError error = add(options.saveAdaptersPath, SavedContent::Adapters))
    return *error;
  if (MaybeError error = add(options.saveMergedPath, SavedContent::Merged))
    return *error;
  return saved;
}

MaybeError SavedFiles::File::save(const Session &session) {
  if (adapters)
    return adapters->save(session);
  if (!file)
    return content.gather(session);
  if (MaybeError error = content.write(session, *file))
    return error;
  return file->commit();
}

std::vector<std::string> SavedFiles::save(const Session &session, MaybeError &error) {
  std::vector<std::string> saved;
  for (File &file : files) {
    MaybeError problem = file.save(session);
    if (problem && !error)
      error = std::move(problem);
    else if (!problem && (file.file || file.adapters))
      saved.push_back(file.path);
  }
  return saved;
}

} // namespace dtc::runtime
