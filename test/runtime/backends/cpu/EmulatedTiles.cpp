//===- EmulatedTiles.cpp - Tiles for processors that have none ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The instructions are those of "Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 2, under their names: LDTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cpu/EmulatedTiles.h"

#include "runtime/backends/cpu/Bf16Unit.h"

#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

namespace dtc::runtime::test {

namespace {

std::atomic<long> emulated = 0;
struct sigaction previous;

struct Tile {
  uint8_t bytes[16][64];
};
struct Tiles {
  bool configured;
  uint8_t rows[8];
  uint16_t rowBytes[8];
  Tile tiles[8];
};
thread_local Tiles state;

/// An instruction with a VEX prefix of three bytes.
struct Instruction {
  int prefix; // 0: none, 1: 66, 2: F3, 3: F2
  int opcode, mode, reg, rm, vvvv;
  const uint8_t *memory = nullptr; // base and displacement, and the index unless it is a stride
  int64_t stride = 0;
  int length = 0;
};

int64_t registerOf(const ucontext_t *context, int number) {
  static constexpr int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
  return context->uc_mcontext.gregs[order[number]];
}

/// False if it is none of the instructions here.
bool decode(const ucontext_t *context, Instruction &in) {
  const auto *begin = std::bit_cast<const uint8_t *>(context->uc_mcontext.gregs[REG_RIP]);
  if (begin[0] != 0xC4 || (begin[1] & 0x1F) != 2)
    return false;
  int extendReg = begin[1] & 0x80 ? 0 : 8, extendIndex = begin[1] & 0x40 ? 0 : 8,
      extendBase = begin[1] & 0x20 ? 0 : 8;
  in.vvvv = ~(begin[2] >> 3) & 0xF;
  in.prefix = begin[2] & 3;
  in.opcode = begin[3];
  in.mode = begin[4] >> 6;
  in.reg = (begin[4] >> 3 & 7) + extendReg;
  in.rm = begin[4] & 7;
  in.length = 5;
  if (in.mode == 3) {
    in.rm += extendBase;
    return true;
  }
  int64_t address = 0;
  bool wideDisplacement = in.mode == 2;
  if (in.rm == 4) {
    int sib = begin[in.length++], base = sib & 7, index = (sib >> 3 & 7) + extendIndex;
    if (index != 4)
      in.stride = registerOf(context, index) << (sib >> 6);
    if (base == 5 && in.mode == 0)
      wideDisplacement = true;
    else
      address = registerOf(context, base + extendBase);
  } else if (in.rm == 5 && in.mode == 0) {
    wideDisplacement = true;
    address = context->uc_mcontext.gregs[REG_RIP] + in.length + 4;
  } else {
    address = registerOf(context, in.rm + extendBase);
  }
  if (wideDisplacement) {
    int32_t displacement;
    std::memcpy(&displacement, begin + in.length, 4);
    in.length += 4;
    address += displacement;
  } else if (in.mode == 1) {
    address += static_cast<int8_t>(begin[in.length++]);
  }
  in.memory = std::bit_cast<const uint8_t *>(address);
  return true;
}

void configure(const uint8_t *from) {
  state.configured = true;
  for (int tile = 0; tile < 8; ++tile) {
    std::memcpy(&state.rowBytes[tile], from + 16 + 2 * tile, 2);
    state.rows[tile] = from[48 + tile];
  }
  std::memset(state.tiles, 0, sizeof(state.tiles));
}

float widened(const uint8_t *half) {
  uint16_t bits;
  std::memcpy(&bits, half, 2);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

void multiply(int to, int a, int b) {
  for (int m = 0; m < state.rows[to]; ++m)
    for (int n = 0; n < state.rowBytes[to] / 4; ++n) {
      float sum;
      std::memcpy(&sum, state.tiles[to].bytes[m] + 4 * n, 4);
      for (int k = 0; k < state.rowBytes[a] / 4; ++k) {
        const uint8_t *left = state.tiles[a].bytes[m] + 4 * k;
        const uint8_t *right = state.tiles[b].bytes[k] + 4 * n;
        sum += widened(left) * widened(right);
        sum += widened(left + 2) * widened(right + 2);
      }
      std::memcpy(state.tiles[to].bytes[m] + 4 * n, &sum, 4);
    }
}

bool execute(const Instruction &in) {
  if (in.opcode == 0x49 && in.prefix == 0 && in.mode != 3) {
    configure(in.memory);
    return true;
  }
  if (!state.configured)
    return false;
  Tile &tile = state.tiles[in.reg & 7];
  int rows = state.rows[in.reg & 7], bytes = state.rowBytes[in.reg & 7];
  if (in.opcode == 0x49 && in.prefix == 0) {
    state.configured = false;
  } else if (in.opcode == 0x49 && in.prefix == 3) {
    std::memset(&tile, 0, sizeof(tile));
  } else if (in.opcode == 0x4B && in.prefix == 3) {
    for (int row = 0; row < rows; ++row)
      std::memcpy(tile.bytes[row], in.memory + row * in.stride, static_cast<size_t>(bytes));
  } else if (in.opcode == 0x4B && in.prefix == 2) {
    for (int row = 0; row < rows; ++row)
      std::memcpy(const_cast<uint8_t *>(in.memory) + row * in.stride, tile.bytes[row],
                  static_cast<size_t>(bytes));
  } else if (in.opcode == 0x5C && in.prefix == 2) {
    multiply(in.reg, in.rm, in.vvvv);
  } else {
    return false;
  }
  return true;
}

void handle(int, siginfo_t *, void *raw) {
  auto *context = static_cast<ucontext_t *>(raw);
  Instruction instruction;
  if (!decode(context, instruction) || !execute(instruction)) {
    // Not ours: the same again, as without this handler.
    sigaction(SIGILL, &previous, nullptr);
    return;
  }
  context->uc_mcontext.gregs[REG_RIP] += instruction.length;
  ++emulated;
}

} // namespace

EmulatedTiles::EmulatedTiles() {
  if (cpu::bf16Unit() != cpu::Bf16Unit::Tiles) {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &previous);
  }
  cpu::assumeBf16Unit(cpu::Bf16Unit::Tiles);
}

EmulatedTiles::~EmulatedTiles() {
  cpu::assumeBf16Unit(std::nullopt);
  if (cpu::bf16Unit() != cpu::Bf16Unit::Tiles)
    sigaction(SIGILL, &previous, nullptr);
}

long emulatedInstructions() { return emulated; }

} // namespace dtc::runtime::test
