//===- PrintableStream.h - Diagnostics of MLIR for terminals --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_PRINTABLESTREAM_H
#define DTC_TOOLS_PRINTABLESTREAM_H

#include "support/Printable.h"

#include "llvm/Support/raw_ostream.h"

namespace dtc {

/// Hands text on to another stream, made printable. What is written at once ends with a whole
/// character; the other stream's colors stay.
class PrintableStream final : public llvm::raw_ostream {
public:
  explicit PrintableStream(llvm::raw_ostream &os) : raw_ostream(/*unbuffered=*/true), os(os) {}

  bool is_displayed() const override { return os.is_displayed(); }
  bool has_colors() const override { return os.has_colors(); }
  raw_ostream &changeColor(Colors color, bool bold, bool background) override {
    os.changeColor(color, bold, background);
    return *this;
  }
  raw_ostream &resetColor() override {
    os.resetColor();
    return *this;
  }

private:
  void write_impl(const char *data, size_t size) override { os << printableLines({data, size}); }
  uint64_t current_pos() const override { return os.tell(); }

  llvm::raw_ostream &os;
};

} // namespace dtc

#endif // DTC_TOOLS_PRINTABLESTREAM_H
