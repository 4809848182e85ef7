//===- FileFormat.cpp - Files of other programs ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/FileFormat.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

namespace dtc::runtime {

using namespace std::string_view_literals;

namespace {

/// The ends of a file.
struct Bytes {
  std::string_view first, last;

  bool beginWith(std::string_view text) const { return first.starts_with(text); }
  bool haveAt(size_t at, std::string_view anyOf) const {
    return first.size() > at && anyOf.find(first[at]) != std::string_view::npos;
  }
};

struct ForeignFormat {
  std::string_view description; // "it is ..."
  std::string_view remedy;
  bool (*matches)(const Bytes &bytes);
};

} // namespace

static constexpr size_t kFirstBytes = 512, kLastBytes = 4;

static constexpr std::string_view kFromPyTorch =
    "convert weights in Python: safetensors.torch.save_file({name: tensor.contiguous().clone() for "
    "name, tensor in torch.load(FILE, weights_only=True).items()}, 'model.safetensors'); write "
    "tokens as they are in memory: tensor.numpy().astype('<u2').tofile('tokens.bin'), or '<u4' to "
    "a file .u32";
static constexpr std::string_view kFromNumPy =
    "write its tokens without a header: numpy.load(FILE).astype('<u2').tofile('tokens.bin'), or "
    "'<u4' to a file .u32; samples and weights belong in a .safetensors file";
static constexpr std::string_view kFromTable =
    "make tokens of its texts: write them as JSON lines, which dtc-data tokens reads";

/// Each is recognized by enough bytes that neither tokens nor text nor the length of a header of a
/// safetensors file are alike.
static constexpr ForeignFormat kFormats[] = {
    {"a pointer of Git LFS and not the file that it stands for",
     "fetch that: git lfs pull, or download it",
     [](const Bytes &bytes) {
       return bytes.beginWith("version https://git-lfs.github.com/spec/");
     }},
    {"a NumPy file (.npy)", kFromNumPy,
     [](const Bytes &bytes) { return bytes.beginWith("\x93NUMPY"); }},
    {"a file of PyTorch", kFromPyTorch,
     [](const Bytes &bytes) {
       return bytes.beginWith("PK\3\4") && bytes.first.find("data.pkl") != std::string_view::npos;
     }},
    // Its old format begins with a number that pickle writes so.
    {"a file of PyTorch", kFromPyTorch,
     [](const Bytes &bytes) {
       return bytes.beginWith("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19");
     }},
    // The protocol, the beginning of objects (since protocol 4 a frame with its size), and the end
    // of the file.
    {"a pickle of Python", kFromPyTorch,
     [](const Bytes &bytes) {
       bool isFramed = bytes.haveAt(1, "\4\5") && bytes.haveAt(2, "\x95") &&
                       bytes.first.find("\0\0\0\0"sv, 7) == 7;
       bool isOlder =
           bytes.haveAt(1, "\2\3") && bytes.haveAt(2, "}](c") && !bytes.haveAt(3, "\0"sv);
       return bytes.beginWith("\x80") && bytes.first.size() > 10 && bytes.last.ends_with('.') &&
              (isFramed || isOlder);
     }},
    {"a NumPy file of several arrays (.npz)", kFromNumPy,
     [](const Bytes &bytes) {
       return bytes.beginWith("PK\3\4") && bytes.first.find(".npy") != std::string_view::npos;
     }},
    {"compressed (zip)", "unpack it: unzip FILE",
     [](const Bytes &bytes) { return bytes.beginWith("PK\3\4"); }},
    // The method, unused flags, the effort of the compressor, and the system.
    {"compressed (gzip)",
     "unpack it: gzip -dk FILE; of compressed text, dtc-data tokens makes tokens",
     [](const Bytes &bytes) {
       return bytes.beginWith("\x1F\x8B\x08") && bytes.first.size() > 9 &&
              (static_cast<unsigned char>(bytes.first[3]) & 0xE0) == 0 &&
              bytes.haveAt(8, "\0\2\4"sv) &&
              bytes.haveAt(9, "\0\1\2\3\4\5\6\7\x08\x09\x0A\x0B\x0C\x0D\x13\xFF"sv);
     }},
    {"compressed (zstd)", "unpack it: zstd -dk FILE",
     [](const Bytes &bytes) { return bytes.beginWith("\x28\xB5\x2F\xFD"); }},
    {"compressed (xz)", "unpack it: xz -dk FILE",
     [](const Bytes &bytes) { return bytes.beginWith("\xFD\x37zXZ\0"sv); }},
    {"compressed (bzip2)", "unpack it: bzip2 -dk FILE",
     [](const Bytes &bytes) { return bytes.beginWith("BZh") && bytes.first.find("1AY&SY") == 4; }},
    {"compressed (lz4)", "unpack it: lz4 -d FILE",
     [](const Bytes &bytes) { return bytes.beginWith("\x04\x22\x4D\x18"); }},
    {"a Parquet file", kFromTable,
     [](const Bytes &bytes) { return bytes.beginWith("PAR1") && bytes.last == "PAR1"; }},
    {"an Arrow file", kFromTable,
     [](const Bytes &bytes) { return bytes.beginWith("ARROW1\0\0"sv); }},
    {"an HDF5 file", "write its tensors to a .safetensors file",
     [](const Bytes &bytes) { return bytes.beginWith("\x89HDF\r\n\x1A\n"); }},
    {"a GGUF file", "download the model's .safetensors files",
     [](const Bytes &bytes) { return bytes.beginWith("GGUF") && bytes.haveAt(7, "\0"sv); }},
    {"the index of a Megatron dataset",
     "give the .bin file beside it, renamed to .u32 if its tokens have 32 bits",
     [](const Bytes &bytes) { return bytes.beginWith("MMIDIDX\0\0"sv); }},
};

MaybeError refuseForeignFormat(const InputFile &file) {
  std::array<char, kFirstBytes> first{};
  std::array<char, kLastBytes> last{};
  size_t numFirst = std::min<uint64_t>(file.size(), kFirstBytes);
  size_t numLast = std::min<uint64_t>(file.size(), kLastBytes);
  if (MaybeError error = file.read(0, std::as_writable_bytes(std::span(first).first(numFirst))))
    return error;
  if (MaybeError error =
          file.read(file.size() - numLast, std::as_writable_bytes(std::span(last).first(numLast))))
    return error;
  Bytes bytes{{first.data(), numFirst}, {last.data(), numLast}};
  const auto *found = std::ranges::find_if(
      kFormats, [&](const ForeignFormat &format) { return format.matches(bytes); });
  if (found == std::end(kFormats))
    return std::nullopt;
  return Error{fmt::format("{}: is {}; {}", file.path(), found->description, found->remedy)};
}

bool hasSuffix(std::string_view path, std::string_view suffix) {
  return path.size() >= suffix.size() &&
         std::ranges::equal(path.substr(path.size() - suffix.size()), suffix, [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

} // namespace dtc::runtime
