//===- CommandFiles.h - The files of one command --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_COMMANDFILES_H
#define DTC_SUPPORT_COMMANDFILES_H

#include "support/Error.h"

#include <string>
#include <vector>

namespace dtc {

/// The files that a command reads and writes, for the check that it overwrites none of its own.
/// Every tool gives all its paths to one of these before it begins.
class CommandFiles {
public:
  /// `what` names the file to the user: "--save", "the plan". Empty paths are no files; the
  /// standard input and output are /dev/stdin and /dev/stdout.
  void reads(const std::string &what, const std::string &path);
  void writes(const std::string &what, const std::string &path);
  /// Writes a folder, and the file of that name in it.
  void writesInto(const std::string &what, const std::string &folder, const std::string &file);
  /// Puts a new folder in the place of an old one with all that is in it.
  void replacesFolder(const std::string &what, const std::string &folder);

  /// Whether each file that is written is a file of its own. Two paths are one file if they have
  /// the same inode, or, where there is no file yet, lead to the same place once all symbolic links
  /// are followed. Nothing is lost in terminals, pipes and devices of characters, which may have
  /// several uses. The error names both uses.
  MaybeError check() const;

private:
  struct Use {
    std::string what, path;
    bool isFolder = false; // all that is in it is written over
  };
  std::vector<Use> inputs, outputs;
};

} // namespace dtc

#endif // DTC_SUPPORT_COMMANDFILES_H
