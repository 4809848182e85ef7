//===- FileFormat.h - Files of other programs -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_FILEFORMAT_H
#define DTC_RUNTIME_DATA_FILEFORMAT_H

#include "support/InputFile.h"

#include <string_view>

namespace dtc::runtime {

/// Recognizes by its bytes a file that is neither text, nor raw tokens, nor a safetensors file, but
/// may be given as one: of NumPy, PyTorch and others, compressed, or a pointer of Git LFS. The
/// error begins with the path, names the format of the file and says what to do.
MaybeError refuseForeignFormat(const InputFile &file);

/// Whether a path ends with a suffix such as ".bin", in small or capital letters.
bool hasSuffix(std::string_view path, std::string_view suffix);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_FILEFORMAT_H
