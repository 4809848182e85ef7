//===- ExplainMemory.cpp - Error that no plan fits, with remedies ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ExplainMemory.h"

#include "compiler/driver/MemoryPeak.h"
#include "compiler/driver/OffloadOption.h"
#include "support/Format.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dtc;

namespace {
struct Change {
  std::string what;
  ResolvedOptions options;
  bool isOneOfTwo = false; ///< the next is said as well where this fits
};
} // namespace

/// The possible changes of the user, the cheapest first.
static std::vector<Change> changesOf(const ResolvedOptions &options) {
  std::vector<Change> changes;
  if (options.mode == CompileMode::Generate)
    return changes;
  auto add = [&](const std::string &what, auto change) {
    ResolvedOptions changed = options;
    change(changed);
    changes.push_back({what, changed});
    return &changes.back();
  };
  if (options.recompute != Recompute::Selective) {
    auto *change =
        add("--recompute selective", [](auto &o) { o.recompute = Recompute::Selective; });
    change->isOneOfTwo = options.recompute != Recompute::Auto;
  }
  if (options.recompute != Recompute::Auto)
    add("--recompute auto", [](CompileOptions &o) { o.recompute = Recompute::Auto; });
  bool hasDataAxis =
      llvm::any_of(options.mesh, [](const auto &axis) { return splitsBatch(axis.first); });
  if (hasDataAxis || !options.zeroAxes.empty())
    for (int64_t stage = options.zero + 1; stage <= 3; ++stage)
      add(llvm::formatv("--zero {0}", stage), [&](CompileOptions &o) { o.zero = stage; });
  if (options.recompute != Recompute::Auto && options.zero < 3 && hasDataAxis)
    add("--zero 3 --recompute auto", [](CompileOptions &o) {
      o.zero = 3;
      o.recompute = Recompute::Auto;
    });
  for (int64_t factor : {2, 4})
    add(llvm::formatv("--microbatches {0}", options.microbatches * factor),
        [&](CompileOptions &o) { o.microbatches *= factor; });
  if (options.offload.empty()) {
    auto offload = [&](const std::string &what) {
      add("--offload " + what, [&](CompileOptions &o) { o.offload = what; });
    };
    const std::string states = kOffloadedStates, activations = kOffloadedActivations;
    bool hasStates =
        options.mode == CompileMode::Train && options.outer.empty() && options.proximal == 0;
    if (hasStates)
      offload(states);
    if (options.mode != CompileMode::Forward)
      offload(activations);
    if (hasStates)
      offload(states + "," + activations);
  }
  for (int64_t factor : {2, 4}) {
    ResolvedOptions changed = options;
    auto axis =
        llvm::find_if(changed.mesh, [](auto &entry) { return entry.first == kPipelineAxis; });
    if (axis == changed.mesh.end())
      axis = changed.mesh.insert(changed.mesh.end(), {kPipelineAxis, 1});
    axis->second *= factor;
    changes.push_back({llvm::formatv("--mesh with pp={0}", axis->second).str(), changed});
  }
  return changes;
}

void dtc::explainMemory(ModuleOp model, StringRef name, const ResolvedOptions &options,
                        const Candidate &closest) {
  MemoryPeak peak = findPeak(*closest.module);
  InFlightDiagnostic error = emitError(peak.where)
                             << "the plan needs " << formatBytes(peak.bytes) << " on "
                             << peak.device << ", more than the limit of "
                             << formatBytes(options.memoryLimit) << "; ";
  std::vector<Change> changes = changesOf(options);
  if (changes.empty())
    error << "use more devices, a smaller batch or shorter sequences";
  else
    error << "the most is in use at " << peak.moment;
  for (const MemoryPeak::Tensor &tensor : peak.largest)
    error.attachNote(tensor.where) << formatBytes(tensor.bytes) << " of that: " << tensor.what;
  bool fits = changes.empty();
  for (const Change &change : changes) {
    CandidateSearch search(model, name);
    std::optional<Candidate> found = search.choose(change.options);
    const Candidate *candidate = found ? &*found : search.closest ? &*search.closest : nullptr;
    if (!candidate || (!found && candidate->peak() >= closest.peak()))
      continue;
    error.attachNote(model.getLoc()) << (found ? "fits: " : "does not fit: ") << change.what
                                     << " needs " << formatBytes(candidate->peak());
    fits |= found.has_value();
    if (found && !change.isOneOfTwo)
      break;
  }
  if (!fits)
    error.attachNote(model.getLoc())
        << "no single change of these is enough; combine them, or use more or larger devices";
}
