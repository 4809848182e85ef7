//===- Symbols.cpp - The program's own table of symbols ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <map>
#include <memory>

namespace dtc::standin {

namespace {

struct ThreadLocal {
  size_t offset, bytes;
};

struct Table {
  std::map<uintptr_t, std::string> functions; // by the address in the file
  std::vector<ThreadLocal> threadLocals;      // by the offset in the program's block
};

/// Reads the section .symtab. Source: "Tool Interface Standard (TIS) Executable and Linking Format
/// (ELF) Specification", version 1.2; thread-local symbols: Drepper, "ELF Handling For Thread-Local
/// Storage", version 0.21.
Table readTable() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(stream)), {});
  Table table;
  auto at = [&]<typename T>(size_t offset, T) {
    T value{};
    if (offset + sizeof(T) <= file.size())
      file.copy(reinterpret_cast<char *>(&value), sizeof(T), offset);
    return value;
  };
  auto header = at(0, ElfW(Ehdr){});
  auto section = [&](size_t index) {
    return at(header.e_shoff + index * header.e_shentsize, ElfW(Shdr){});
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB)
      continue;
    size_t names = section(symbols.sh_link).sh_offset;
    for (size_t k = 0; k < symbols.sh_size / sizeof(ElfW(Sym)); ++k) {
      auto symbol = at(symbols.sh_offset + k * sizeof(ElfW(Sym)), ElfW(Sym){});
      if (names + symbol.st_name >= file.size())
        continue;
      const char *name = file.c_str() + names + symbol.st_name;
      unsigned type = symbol.st_info & 0xF;
      if (type == STT_FUNC)
        table.functions.emplace(symbol.st_value, name);
      // The mangled name of what is local to a function begins so.
      if (type == STT_TLS && std::string_view(name).starts_with("_ZZ"))
        table.threadLocals.push_back({symbol.st_value, symbol.st_size});
    }
  }
  return table;
}

const Table &table() {
  static const Table *read = new Table(readTable());
  return *read;
}

/// Where the program lies, and its block of thread-local variables of the calling thread.
dl_phdr_info program() {
  dl_phdr_info found = {};
  // The program comes first.
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *to) {
        *static_cast<dl_phdr_info *>(to) = *info;
        return 1;
      },
      &found);
  return found;
}

} // namespace

std::string functionName(const void *address) {
  auto found = table().functions.find(reinterpret_cast<uintptr_t>(address) - program().dlpi_addr);
  if (found == table().functions.end())
    return fmt::format("at {}", address);
  int status = 0;
  std::unique_ptr<char, void (*)(void *)> name(
      abi::__cxa_demangle(found->second.c_str(), nullptr, nullptr, &status), std::free);
  std::string text = name ? name.get() : found->second;
  // The types of the parameters say nothing that the name does not.
  if (size_t end = text.rfind('('); end != std::string::npos && text.ends_with(')'))
    text.resize(end);
  return text;
}

std::vector<std::span<std::byte>> functionThreadLocals() {
  auto *block = static_cast<std::byte *>(program().dlpi_tls_data);
  std::vector<std::span<std::byte>> variables;
  if (block)
    for (const ThreadLocal &variable : table().threadLocals)
      variables.emplace_back(block + variable.offset, variable.bytes);
  return variables;
}

} // namespace dtc::standin
