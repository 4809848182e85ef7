//===- SavedFiles.cpp - Files written at the end of a run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/SavedFiles.h"

#include "plan/AdapterNames.h"

namespace dtc::runtime {

Expected<SavedFiles> SavedFiles::create(const plan::Plan &plan, const TrainOptions &options) {
  SavedFiles files;
  if (!options.processes.isFirst()) {
    if (!options.savePath.empty()) {
      files.written.emplace_back(plan);
      files.allPaths.push_back(options.savePath);
    }
    if (!options.saveAdaptersPath.empty()) {
      files.written.emplace_back(plan, isAdapterName);
      files.allPaths.push_back(options.saveAdaptersPath);
    }
    return files;
  }
  if (!options.savePath.empty()) {
    Expected<AtomicFile> file = AtomicFile::create(options.savePath);
    if (!file)
      return file.error();
    SavedWeights content(plan);
    if (MaybeError error = file->reserve(content.numBytes()))
      return *error;
    files.weights = Weights{std::move(*file), std::move(content)};
    files.allPaths.push_back(options.savePath);
  }
  if (!options.saveAdaptersPath.empty()) {
    Expected<AdapterFolder> folder = AdapterFolder::create(plan, options.saveAdaptersPath);
    if (!folder)
      return folder.error();
    files.adapters = std::move(*folder);
    files.allPaths.push_back(options.saveAdaptersPath);
  }
  return files;
}

MaybeError SavedFiles::Weights::save(const Session &session) {
  if (MaybeError error = content.write(session, file))
    return error;
  return file.commit();
}

std::vector<std::string> SavedFiles::save(const Session &session, MaybeError &error) {
  std::vector<std::string> saved;
  auto save = [&](auto &files, size_t path) {
    if (!files)
      return;
    MaybeError problem = files->save(session);
    if (!problem)
      saved.push_back(allPaths[path]);
    else if (!error)
      error = std::move(problem);
  };
  for (const SavedWeights &content : written)
    if (MaybeError problem = content.gather(session); problem && !error)
      error = std::move(problem);
  save(weights, 0);
  save(adapters, allPaths.size() - 1);
  return saved;
}

} // namespace dtc::runtime
