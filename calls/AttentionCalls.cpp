//===- AttentionCalls.cpp - Calls of attention and rotary positions -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/AttentionCalls.h"

#include "calls/AxisExtent.h"
#include "calls/SignatureChecker.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace dtc {

void findSegments(const int32_t *numbers, int64_t count, SegmentRange *ranges) {
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && numbers[end] == numbers[begin])
      ++end;
    std::fill(ranges + begin, ranges + end,
              SegmentRange{static_cast<int32_t>(begin), static_cast<int32_t>(end)});
  }
}

/// The coordinates of the device whose number, row-major over `axes`, is `shift` less, modulo all
/// of them.
static std::vector<AxisCoordinate> shifted(std::span<const AxisCoordinate> position,
                                           const std::vector<std::string> &axes, int64_t shift) {
  std::vector<AxisCoordinate> result(position.begin(), position.end());
  for (size_t i = axes.size(); i-- > 0 && shift != 0;)
    for (AxisCoordinate &axis : result)
      if (axis.name == axes[i]) {
        int64_t less = axis.coordinate - shift % axis.size, borrowed = less < 0 ? 1 : 0;
        axis.coordinate = less + borrowed * axis.size;
        shift = shift / axis.size + borrowed;
        break;
      }
  return result;
}

SequenceOrder SequenceShard::at(std::span<const AxisCoordinate> position, int64_t shift) const {
  ShardExtent block = shift == 0 ? extentAt(position, axes, size)
                                 : extentAt(shifted(position, axes, shift), axes, size);
  return SequenceOrder::of(block, size, parts);
}

/// Checks where in a sequence the `local` elements of a dimension lie.
static SequenceShard checkSequence(SignatureChecker &check, int64_t local) {
  SequenceShard shard{local, {}, 0};
  if (check.hasAttribute("sequence") || check.hasAttribute("sequence_axes")) {
    int64_t blocks = 1;
    shard.size = check.intAttribute("sequence");
    shard.axes = check.axesAttribute("sequence_axes", blocks);
    if (!check.failed() && (shard.size < 1 || !paddedShardsFit(shard.size, blocks) ||
                            paddedShardSize(shard.size, blocks) != local))
      check.failAttribute(
          "sequence", fmt::format("{}", shard.size),
          fmt::format("a size whose {} blocks have {} elements each, rounded up", blocks, local));
  }
  if (check.hasAttribute("zigzag")) {
    shard.parts = check.intAttribute("zigzag");
    if (!check.failed() &&
        (shard.parts < 1 || shard.parts > shard.size / 2 || shard.size % (2 * shard.parts) != 0))
      check.failAttribute("zigzag", fmt::format("{}", shard.parts),
                          fmt::format("parts of two equal chunks of a sequence of {}", shard.size));
  }
  return shard;
}

/// Whether the call has the attribute of dropout, and with it one more input.
static bool hasDropout(const KernelSignature &signature) {
  auto found = signature.attributes.find("dropout");
  if (found == signature.attributes.end())
    return false;
  const double *rate = std::get_if<double>(&found->second);
  return !rate || *rate != 0;
}

/// The number of inputs of a call. The first `operands` of them are always there. Segments come
/// after these, a key is the last one.
static size_t inputsOf(const KernelSignature &signature, size_t operands) {
  size_t least = operands + (hasDropout(signature) ? 1 : 0);
  return signature.inputs.size() == least + 1 ? least + 1 : least;
}

/// The mask of the weights; its key comes after the other `inputs`.
static void checkDropout(SignatureChecker &check, const KernelSignature &signature, size_t inputs,
                         AttentionCall &call) {
  const AttentionShape &shape = call.shape;
  if (hasDropout(signature)) {
    const int64_t scores[] = {shape.batch, shape.heads, shape.queries, shape.keys};
    call.mask = checkRandomMask(check, signature, "dropout", inputs, scores);
    if (check.failed())
      return;
    std::vector<int64_t> strides = denseStrides(check.intsAttribute("shape"));
    std::copy_n(strides.begin(), 3, call.maskStrides.begin());
  } else if (check.hasAttribute("dropout")) {
    // With a rate of 0, the mask may be described all the same; it is not used.
    check.floatAttribute("dropout");
    if (check.hasAttribute("op"))
      check.intAttribute("op");
    if (check.hasAttribute("shape"))
      check.intsAttribute("shape");
    if (check.hasAttribute("sharding"))
      check.stringsAttribute("sharding");
  }
}

/// No sequence is longer; sums with positions do not overflow.
static constexpr int64_t kWidestWindow = int64_t{1} << 40;

/// Checks which keys are seen and how the scores are bounded.
static void checkScores(SignatureChecker &check, AttentionShape &shape) {
  if (check.hasAttribute("window")) {
    shape.window = check.intAttribute("window");
    if (shape.window < 1 || !shape.causal)
      check.failAttribute("window", fmt::format("{}", shape.window),
                          "at least 1 key, of attention that is causal");
    shape.window = std::min(shape.window, kWidestWindow);
  }
  if (check.hasAttribute("softcap")) {
    shape.softcap = check.floatAttribute("softcap");
    if (!(shape.softcap > 0))
      check.failAttribute("softcap", fmt::format("{}", shape.softcap), "a positive number");
  }
}

/// Checks that keys lie as queries do.
static void checkKeyShift(SignatureChecker &check, AttentionCall &call) {
  int64_t shift = check.intAttribute("key_shift");
  if (shift < 0)
    check.failAttribute("key_shift", fmt::format("{}", shift), "0 or more");
  if (call.shape.keys != call.shape.queries)
    check.fail(fmt::format("has {} queries, {} keys and a key_shift, expected as many keys as "
                           "queries",
                           call.shape.queries, call.shape.keys));
  call.keyShift = shift;
  call.shape.sequence = call.sequence.size;
  // Within one part the places of the keys increase, so that a query sees neighbouring keys.
  int64_t parts = call.sequence.parts;
  if (parts > 0 && (call.shape.keys == 0 || call.sequence.size / parts % call.shape.keys != 0))
    check.failAttribute("key_shift", fmt::format("{}", shift),
                        fmt::format("none, for keys of more than one of {} zigzag parts", parts));
}

/// Checks q, k, v and the attributes.
static AttentionCall checkOperands(SignatureChecker &check, bool cached) {
  const TensorType &q = check.floatInputOfRank(0, 4);
  const TensorType &k = check.floatInputOfRank(1, 4);
  AttentionCall call;
  AttentionShape &shape = call.shape;
  shape.causal = cached || check.boolAttribute("causal");
  shape.scale = check.floatAttribute("scale");
  checkScores(check, shape);
  if (check.failed())
    return call;
  call.dtype = q.dtype;
  shape.batch = q.shape[0];
  shape.queries = q.shape[1];
  shape.heads = q.shape[2];
  shape.headSize = q.shape[3];
  shape.keys = k.shape[1];
  shape.kvHeads = k.shape[2];
  if (!cached)
    call.sequence = checkSequence(check, shape.queries);
  if (!cached && check.hasAttribute("key_shift"))
    checkKeyShift(check, call);
  else
    shape.earlier = shape.keys - (cached ? shape.queries : call.sequence.size);
  check.expectInput(1,
                    TensorType{q.dtype, {shape.batch, shape.keys, shape.kvHeads, shape.headSize}});
  check.expectInput(2, k);
  if (shape.headSize == 0 || shape.kvHeads == 0 || shape.heads % shape.kvHeads != 0)
    check.fail(fmt::format("input 1 is {}, expected heads that divide the {} of input 0, of at "
                           "least 1 element",
                           k.str(), shape.heads));
  return call;
}

/// The call after the checks. Without elements it computes nothing and needs no workspace.
static Expected<AttentionCall> finish(SignatureChecker &check, AttentionCall call) {
  const TensorType &q = check.input(0), &k = check.input(1);
  if (MaybeError error = check.finish())
    return *error;
  if (q.numElements() == 0)
    call.shape.queries = 0;
  if (q.numElements() == 0 && k.numElements() == 0)
    call.shape.keys = 0;
  return call;
}

/// The type of lse; f32 or f64.
static TensorType lseType(const TensorType &q) {
  return q.rank() == 4 ? TensorType{wideType(q.dtype), {q.shape[0], q.shape[2], q.shape[1]}} : q;
}

/// The inputs after the first `operands`.
static void checkOptionalInputs(SignatureChecker &check, const KernelSignature &signature,
                                size_t operands, AttentionCall &call) {
  const AttentionShape &shape = call.shape;
  size_t key = signature.inputs.size() - (hasDropout(signature) ? 1 : 0);
  if (key > operands) {
    call.segments = operands;
    check.expectInput(operands, TensorType{DType::I32, {shape.batch, shape.allKeys()}});
    if (shape.earlier < 0)
      check.fail(fmt::format("has {} queries and {} keys with segments, expected no more queries "
                             "than keys",
                             call.sequence.size, shape.keys));
    if (shape.allKeys() > std::numeric_limits<int32_t>::max())
      check.fail(
          fmt::format("has {} keys with segments, expected fewer than 2^31", shape.allKeys()));
  }
  if (!check.failed())
    checkDropout(check, signature, key, call);
  if (call.mask && (call.sequence.parts != 0 || call.keyShift))
    check.fail("has dropout, expected none with zigzag or key_shift: a mask is over queries and "
               "keys in the order of the sequence");
}

Expected<AttentionCall> checkAttention(const KernelSignature &signature) {
  SignatureChecker check(signature, inputsOf(signature, 3), 2);
  AttentionCall call = checkOperands(check, /*cached=*/false);
  if (!check.failed())
    checkOptionalInputs(check, signature, 3, call);
  const TensorType &q = check.input(0);
  check.expectOutput(0, q);
  check.expectOutput(1, lseType(q));
  return finish(check, std::move(call));
}

Expected<AttentionCall> checkAttentionGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, inputsOf(signature, 6), 3);
  AttentionCall call = checkOperands(check, /*cached=*/false);
  if (!check.failed())
    checkOptionalInputs(check, signature, 6, call);
  const TensorType &q = check.input(0);
  check.expectInput(3, q);
  check.expectInput(4, lseType(q));
  check.expectInput(5, q);
  check.expectOutput(0, q);
  check.expectOutput(1, check.input(1));
  check.expectOutput(2, check.input(1));
  return finish(check, std::move(call));
}

Expected<MergeAttentionCall> checkMergeAttention(const KernelSignature &signature) {
  SignatureChecker check(signature, 4, 2);
  const TensorType &part = check.floatInputOfRank(2, 4);
  TensorType wide = withElements(part, wideType(part.dtype)), lse = lseType(part);
  for (size_t i : {size_t{0}, size_t{1}}) {
    check.expectInput(i, i == 0 ? wide : lse);
    check.expectOutput(i, i == 0 ? wide : lse);
  }
  check.expectInput(3, lse);
  if (MaybeError error = check.finish())
    return *error;
  MergeAttentionCall call{part.dtype};
  if (part.numElements() != 0) {
    call.batch = part.shape[0];
    call.queries = part.shape[1];
    call.heads = part.shape[2];
    call.headSize = part.shape[3];
  }
  return call;
}

Expected<AttentionCall> checkCachedAttention(const KernelSignature &signature) {
  bool hasSinks = signature.inputs.size() == 5;
  SignatureChecker check(signature, hasSinks ? 5 : 4, 1);
  AttentionCall call = checkOperands(check, /*cached=*/true);
  if (!check.failed())
    check.expectInput(3, TensorType{DType::I32, {call.shape.batch}});
  if (!check.failed() && hasSinks) {
    call.sinks = 4;
    check.expectInput(4, TensorType{call.dtype, {call.shape.heads}});
  }
  check.expectOutput(0, check.input(0));
  return finish(check, std::move(call));
}

/// Heads beyond this are a corrupt plan; a backend may keep the frequencies of a head in a table.
static constexpr int64_t kMaxHeadSize = int64_t{1} << 20;

/// The frequencies of the attribute, or those of theta.
static std::vector<double> frequenciesOf(SignatureChecker &check, int64_t headSize) {
  std::vector<double> frequencies;
  auto pairs = static_cast<size_t>(headSize / 2);
  if (!check.hasAttribute("frequencies")) {
    double theta = check.floatAttribute("theta");
    if (!(theta > 0))
      check.failAttribute("theta", fmt::format("{}", theta), "a positive number");
    for (size_t i = 0; i < pairs && !check.failed(); ++i)
      frequencies.push_back(
          std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(headSize)));
    return frequencies;
  }
  const std::string &bytes = check.dataAttribute("frequencies");
  frequencies.resize(bytes.size() / sizeof(double));
  std::memcpy(frequencies.data(), bytes.data(), frequencies.size() * sizeof(double));
  if (bytes.size() % sizeof(double) != 0 || frequencies.empty() || frequencies.size() > pairs)
    check.failAttribute("frequencies", fmt::format("{} bytes", bytes.size()),
                        fmt::format("f64 numbers, from 1 to {}, one for each pair", pairs));
  for (double frequency : frequencies)
    if (!(std::isfinite(frequency) && frequency >= 0))
      check.failAttribute("frequencies", fmt::format("a table with {}", frequency),
                          "finite numbers that are not negative");
  return frequencies;
}

Expected<RotaryCall> checkRotary(const KernelSignature &signature) {
  bool hasPositions = signature.inputs.size() == 2;
  SignatureChecker check(signature, hasPositions ? 2 : 1, 1);
  const TensorType &x = check.floatInputOfRank(0, 4);
  RotaryPositions positions = RotaryPositions::None;
  if (hasPositions && !check.failed()) {
    bool ofRows = check.input(1).rank() == 2;
    positions = ofRows ? RotaryPositions::OfRows : RotaryPositions::OfFirstRows;
    std::vector<int64_t> shape(x.shape.begin(), x.shape.begin() + (ofRows ? 2 : 1));
    check.expectInput(1, TensorType{DType::I32, std::move(shape)});
  }
  check.expectOutput(0, x);
  double factor = check.hasAttribute("factor") ? check.floatAttribute("factor") : 1;
  if (!(factor > 0))
    check.failAttribute("factor", fmt::format("{}", factor), "a positive number");
  bool inverse = check.boolAttribute("inverse");
  SequenceShard shard;
  if (!check.failed())
    shard = checkSequence(check, x.shape[1]);
  if (!check.failed() && (x.shape[3] % 2 != 0 || x.shape[3] > kMaxHeadSize))
    check.fail(fmt::format("input 0 is {}, expected an even last dimension of at most {}", x.str(),
                           kMaxHeadSize));
  std::vector<double> frequencies;
  if (!check.failed())
    frequencies = frequenciesOf(check, x.shape[3]);
  if (MaybeError error = check.finish())
    return *error;
  RotaryCall call{x.dtype,         0, 0, 0, 0, inverse, positions, factor, std::move(frequencies),
                  std::move(shard)};
  if (x.numElements() != 0) {
    call.batch = x.shape[0];
    call.sequence = x.shape[1];
    call.heads = x.shape[2];
    call.headSize = x.shape[3];
  }
  return call;
}

} // namespace dtc
