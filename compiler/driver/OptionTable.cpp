//===- OptionTable.cpp - The options of a compilation, described ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/OptionTable.h"

#include "compiler/analysis/Layout.h"
#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/passes/collectives/ChunkDim.h"
#include "support/OuterEntries.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>

using namespace dtc;
using llvm::StringRef;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static NumberRange range(int64_t least, int64_t most) { return {double(least), double(most)}; }
static const NumberRange kNotNegative = {0, kInfinity, false, true,
                                         "a finite number that is not negative"};
static const NumberRange kPositive = {0, kInfinity, true, true, "a finite number of more than 0"};
static const NumberRange kBelowOne = {0, 1, false, true, "at least 0 and less than 1"};
static const NumberRange kBytes = {0, kInfinity, false, true, "a number of bytes"};

static std::vector<std::string> scheduleWords() {
  std::vector<std::string> words = {"auto"};
  for (const ScheduleRule &rule : getScheduleRules())
    words.push_back(rule.name.str());
  return words;
}

/// Options that a search or a strategy knows.
// NOLINTNEXTLINE(readability-function-size): a table
static void addStrategyOptions(std::vector<Option> &options) {
  using O = CompileOptions;
  options.push_back({.name = "mesh",
                     .member = &O::mesh,
                     .help = "The devices as named axes, such as dp=2,tp=2 (default: one device)",
                     .isStrategy = true});
  options.push_back(
      {.name = "shard",
       .member = &O::shard,
       .help = "Logical to mesh axes, such as batch=dp,heads=tp; several as batch=dp+tp, none as "
               "vocab= (default: batch over dp; heads, kv_heads, mlp and vocab over tp); or a "
               "dimension of a parameter or input, such as layers.0.weight#1=tp, where * stands "
               "for the numbers of layers: h.*.fc.weight#1=tp",
       .isStrategy = true});
  options.push_back({.name = "microbatches",
                     .member = &O::microbatches,
                     .help = "Parts of the batch that each device works through",
                     .range = range(1, int64_t(1) << 20),
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "accumulate",
                     .member = &O::accumulates,
                     .help = "Keep gradient sums, so that dtc-run --accumulate can accumulate "
                             "gradients over several batches; plans of several microbatches have "
                             "them anyway",
                     .isStrategy = true});
  options.push_back({.name = "zero",
                     .member = &O::zero,
                     .help = "ZeRO stage: 1 splits the optimizer's state over the data axis, 2 "
                             "gradients too, 3 parameters too",
                     .range = range(0, 3),
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "zero_axes",
                     .member = &O::zeroAxes,
                     .help = "The mesh axes over which ZeRO splits (default: fsdp where the mesh "
                             "has it, else dp, ep and cp)",
                     .isStrategy = true,
                     .needsMesh = true});
  options.push_back({.name = "offload",
                     .member = &O::offload,
                     .help = "Keep in the memory of the host: optimizer, the states of the "
                             "optimizer, where the host's cores update these parameters; "
                             "activations, what the backward pass needs of the forward pass; "
                             "optimizer:0.5, at least that part of their bytes; "
                             "optimizer,activations:0.5, both; auto: the first of optimizer, "
                             "activations and both with which a plan fits the memory, if none "
                             "fits without (default: none)",
                     .isStrategy = true});
  options.push_back({.name = "sequence_parallel",
                     .member = &O::sequenceParallel,
                     .help = "Split norms and residuals along the sequence over tp",
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "context_exchange",
                     .member = &O::contextExchange,
                     .help = "What devices along cp exchange in attention: all-gather (all get "
                             "all keys and values), all-to-all (heads are split instead of the "
                             "sequence), ring (keys and values go round while devices work), or "
                             "auto, what is estimated to take least",
                     .isStrategy = true});
  options.push_back({.name = "context_heads",
                     .member = &O::contextHeads,
                     .help = "Split the heads of attention over groups of this many neighbours "
                             "along cp, by all-to-all; what --context-exchange says, ring or "
                             "all-gather, then goes on between the groups",
                     .range = range(1, int64_t(1) << 20),
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "expert_group",
                     .member = &O::expertGroup,
                     .help = "Groups of this many neighbours along ep, such as the devices of a "
                             "node, exchange the rows of experts among themselves; between groups "
                             "tokens travel once to each group, or rows, what is estimated to "
                             "take least",
                     .range = range(1, int64_t(1) << 20),
                     .isStrategy = true,
                     .needsMesh = true});
  options.push_back({.name = "bucket_bytes",
                     .member = &O::bucketBytes,
                     .help = "The largest size of a bucket of collectives; 0: no buckets",
                     .range = kBytes,
                     .unit = OptionUnit::Bytes,
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "chunk_collectives",
                     .member = &O::chunkCollectives,
                     .help = "Compute in chunks what is between two collectives, such as the "
                             "products of experts or of tp, so that the collective of one chunk "
                             "runs while another is computed: off, auto, where that is estimated "
                             "to be faster, or the number of chunks",
                     .isStrategy = true});
  options.push_back({.name = "no_overlap",
                     .member = &O::noOverlap,
                     .help = "Run no kernel while a collective runs: to see what overlap is "
                             "worth, or to look for an error",
                     .isStrategy = true});
  options.push_back({.name = "no_join",
                     .member = &O::noJoin,
                     .help = "Compute queries, keys and values that are parts of one weight by "
                             "products of their own: to see what one product is worth, or to "
                             "look for an error"});
  options.push_back({.name = "prefetch",
                     .member = &O::prefetch,
                     .help = "The number of layers by which ZeRO stage 3 gathers parameters, and "
                             "--offload activations fetches activations, ahead",
                     .range = range(0, 1000),
                     .isStrategy = true});
  options.push_back({.name = "schedule",
                     .member = &O::schedule,
                     .help = "The schedule of a pipeline (pp in --mesh): naive, gpipe, 1f1b, "
                             "interleaved, zb-h1, zb-v, or auto, the fastest by estimate that "
                             "fits --memory-limit",
                     .words = scheduleWords,
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "chunks",
                     .member = &O::chunks,
                     .help = "Chunks of a pipeline: stages of one device (default: as few as the "
                             "schedule has)",
                     .range = range(1, int64_t(1) << 10),
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "stages",
                     .member = &O::stages,
                     .help = "The layers of each stage, such as 'wte,h.0-h.5|h.6-h.11,ln_f' "
                             "(default: those with which the slowest stage is fastest)",
                     .isStrategy = true,
                     .needsMesh = true});
  options.push_back({.name = "recompute",
                     .member = &O::recompute,
                     .help = "Which activations are recomputed in the backward pass instead of "
                             "being saved: "
                             "none, gathers (what is gathered from other devices is gathered "
                             "again), elementwise (that and what is made element by element of "
                             "one tensor), selective (that and what takes little time), full (all "
                             "but "
                             "the values between layers), or auto, the least with which "
                             "--memory-limit is enough",
                     .isStrategy = true,
                     .isSearched = true});
  options.push_back({.name = "loss_chunks",
                     .member = &O::lossChunks,
                     .help = "Compute the loss in this many chunks of tokens, one after the other, "
                             "so that the logits of one chunk exist at a time; a divisor of the "
                             "length of the sequence",
                     .range = range(1, int64_t(1) << 20),
                     .isStrategy = true});
  options.push_back(
      {.name = "memory_limit",
       .member = &O::memoryLimit,
       .help = "The most memory that the plan may take on a device, such as 8GiB (default: none)",
       .range = {0, kInfinity, true, true, "at least a byte"},
       .unit = OptionUnit::Bytes,
       .isStrategy = true});
  options.push_back({.name = "dtype",
                     .member = &O::dtype,
                     .help =
                         "What the model computes in: f32, bf16, f16 with a scaled loss, or fp8: "
                         "bf16, with operands of 8 bits in the products of layers; what needs "
                         "f32 keeps it",
                     .isStrategy = true});
  options.push_back({.name = "grad_reduce_dtype",
                     .member = &O::gradReduceDtype,
                     .help = "What gradients are in while they are summed between devices: f32, "
                             "or the type of 16 bits that --dtype computes in, bf16 with fp8",
                     .words =
                         [] {
                           return std::vector<std::string>{"f32", "bf16", "f16"};
                         },
                     .isStrategy = true});
  options.push_back({.name = "link",
                     .member = &O::links,
                     .help =
                         "Bandwidth and latency of the links along an axis, such as dp=25GB/s,10us "
                         "(default: that); for estimates and for choices between shardings",
                     .isStrategy = true,
                     .needsMesh = true,
                     .hasCommas = true});
  options.push_back({.name = "device_flops",
                     .member = &O::deviceFlops,
                     .help = fmt::format("The FLOP/s of a device, for estimates (default: {:.1e})",
                                         kDefaultDeviceFlops),
                     .range = kPositive,
                     .isStrategy = true});
  options.push_back({.name = "device_bandwidth",
                     .member = &O::deviceBandwidth,
                     .help = fmt::format("Bytes a second that a device's memory is taken to move "
                                         "(default: {:.1e})",
                                         kDefaultDeviceBandwidth),
                     .range = kPositive,
                     .isStrategy = true});
}

/// Options of replicas that differ.
static void addOuterOptions(std::vector<Option> &options) {
  using O = CompileOptions;
  options.push_back({.name = "outer",
                     .member = &O::outer,
                     .help = "The data axis, such as dp, along which replicas train on their own "
                             "between outer steps, which give them the same parameters again; "
                             "dtc-run --outer-every says when",
                     .needsMesh = true});
  options.push_back(
      {.name = "outer_step",
       .member = &O::outerStep,
       .help = "mean: the parameters become their mean over the replicas (local "
               "SGD); nesterov: an outer SGD with Nesterov momentum takes what they "
               "have changed by for a gradient (DiLoCo); adam, yogi, adagrad: these "
               "do (FedAdam, FedYogi, FedAdagrad)",
       .words =
           [] {
             return std::vector<std::string>{"mean", "nesterov", "adam", "yogi", "adagrad"};
           },
       .needsMesh = true});
  options.push_back({.name = "outer_lr",
                     .member = &O::outerLearningRate,
                     .help = "The learning rate of the outer step, if it is not mean (default: 0.7 "
                             "for nesterov, 0.01 for the others)",
                     .range = kPositive,
                     .needsMesh = true});
  options.push_back({.name = "outer_momentum",
                     .member = &O::outerMomentum,
                     .help = "The decay of the momentum of the outer step, if it is not mean; of "
                             "adam, yogi and adagrad that of the first moment",
                     .range = kBelowOne,
                     .needsMesh = true});
  options.push_back({.name = "outer_beta2",
                     .member = &O::outerBeta2,
                     .help = "The decay of the second moment of --outer-step adam or yogi",
                     .range = kBelowOne,
                     .needsMesh = true});
  options.push_back({.name = "outer_tau",
                     .member = &O::outerTau,
                     .help = "What --outer-step adam, yogi or adagrad adds to the root of the "
                             "second moment, which begins as its square",
                     .range = kPositive,
                     .needsMesh = true});
  options.push_back({.name = "outer_fragments",
                     .member = &O::outerFragments,
                     .help = "The layers are divided into this many fragments, whose outer steps "
                             "take turns: each after H steps, H / fragments after the one before "
                             "(streaming DiLoCo)",
                     .range = range(1, kMaxOuterFragments),
                     .needsMesh = true});
  options.push_back({.name = "outer_delay",
                     .member = &O::outerDelay,
                     .help = "The outer step of a fragment is taken this many steps after its "
                             "exchange began; less than H",
                     .range = range(0, int64_t(1) << 20),
                     .needsMesh = true});
  options.push_back({.name = "outer_blend",
                     .member = &O::outerBlend,
                     .help = "The part of a replica's own parameters that is left in them by an "
                             "outer step of a fragment: a w + (1 - a) s",
                     .range = kBelowOne,
                     .needsMesh = true});
  options.push_back({.name = "clients",
                     .member = &O::clients,
                     .help = "The replicas of --outer train for clients, which dtc-run --clients "
                             "names: each round begins with a new optimizer, and the outer step "
                             "takes the mean of the clients, weighted by their samples",
                     .needsMesh = true});
  options.push_back({.name = "client_noise",
                     .member = &O::clientNoise,
                     .help = "The outer step of --clients adds noise to the mean of what clients "
                             "have changed, for dtc-run --client-clip and --noise-multiplier "
                             "(DP-FedAvg)",
                     .needsMesh = true});
}

/// Options of the training.
static void addModelOptions(std::vector<Option> &options) {
  using O = CompileOptions;
  options.push_back({.name = "compress",
                     .member = &O::compress,
                     .help = "Sum gradients over a data axis in a compressed form: dp=int8 or "
                             "dp=int4, as integers with a scale for each block of elements; "
                             "dp=topk, the largest elements of each block; or dp=powersgd, factors "
                             "of low rank; with settings, dp=int8:block=256,rounding=stochastic, "
                             "dp=topk:share=0.01 or dp=powersgd:rank=4; feedback=on adds what is "
                             "lost to the next gradient (default: not compressed)",
                     .needsMesh = true});
  options.push_back({.name = "mode",
                     .member = &O::mode,
                     .help = "train, gradients, forward: the function without dropout, or "
                             "generate: the next tokens of prompts, with a cache of keys and "
                             "values"});
  options.push_back({.name = "keep_dropout",
                     .member = &O::keepDropout,
                     .help = "With --mode forward: keep dropout, with masks drawn as in training"});
  options.push_back(
      {.name = "optimizer", .member = &O::optimizer, .help = "adamw, adam, sgd or lion"});
  options.push_back({.name = "freeze",
                     .member = &O::freeze,
                     .help = "Parameters that do not train, such as 'transformer.wte.*'; may be "
                             "given again",
                     .hasCommas = true});
  options.push_back({.name = "param_group",
                     .member = &O::paramGroups,
                     .help = "Parameters that train in another way, such as "
                             "'*.bias:weight_decay=0.1,lr_scale=0.5'; the first group that matches "
                             "holds",
                     .hasCommas = true});
  options.push_back({.name = "clip",
                     .member = &O::clip,
                     .help = "Largest norm of the gradient; 0 does not clip",
                     .range = kNotNegative});
  options.push_back({.name = "dp_sgd",
                     .member = &O::dpSgd,
                     .help = "Clip the gradient of each sample to the norm C, and add normal noise "
                             "of the standard deviation S C to their sum (DP-SGD): "
                             "clip=C,noise=S (default: neither)",
                     .needsMesh = true});
  options.push_back({.name = "proximal",
                     .member = &O::proximal,
                     .help = "Adds mu / 2 |w - s|^2 to the loss, s being the parameters after the "
                             "last outer step, or before the first step (FedProx); 0: nothing",
                     .range = kNotNegative});
  options.push_back({.name = "weight_decay",
                     .member = &O::weightDecay,
                     .help = "Of parameters with two or more dimensions",
                     .range = kNotNegative});
  options.push_back({.name = "beta1",
                     .member = &O::beta1,
                     .help = "Adam, AdamW: decay of the first moment; Lion: its part in the update",
                     .range = kBelowOne});
  options.push_back({.name = "beta2",
                     .member = &O::beta2,
                     .help = "Adam, AdamW: decay of the second moment; Lion: decay of the momentum "
                             "(default: 0.95, Lion: 0.99)",
                     .range = kBelowOne});
  options.push_back({.name = "eps",
                     .member = &O::eps,
                     .help = "Adam, AdamW: added to the root of the second moment",
                     .range = kNotNegative});
  options.push_back({.name = "momentum",
                     .member = &O::momentum,
                     .help = "SGD: decay of the momentum",
                     .range = kBelowOne});
}

double dtc::outerLearningRateOf(const CompileOptions &options) {
  return options.outerLearningRate.value_or(options.outerStep == "nesterov" ? 0.7 : 0.01);
}

bool dtc::hasSecondMoment(const CompileOptions &options) {
  return !options.outer.empty() && options.outerStep != "mean" && options.outerStep != "nesterov";
}

bool dtc::streamsOuterSteps(const CompileOptions &options) {
  return !options.outer.empty() &&
         (options.outerFragments > 1 || options.outerDelay > 0 || options.outerBlend > 0);
}

std::optional<int64_t> dtc::collectiveChunksOf(const CompileOptions &options) {
  StringRef text = options.chunkCollectives;
  if (text == "off" || text == "auto")
    return text == "off" ? 1 : 0;
  int64_t chunks;
  if (text.getAsInteger(10, chunks) || chunks < 2 || chunks > kMaxCollectiveChunks)
    return std::nullopt;
  return chunks;
}

llvm::ArrayRef<Option> dtc::getOptions() {
  static const std::vector<Option> options = [] {
    std::vector<Option> all;
    addStrategyOptions(all);
    addModelOptions(all);
    addOuterOptions(all);
    return all;
  }();
  return options;
}

const Option *dtc::findOption(StringRef name) {
  auto it = llvm::find_if(getOptions(), [&](const Option &option) { return option.name == name; });
  return it == getOptions().end() ? nullptr : &*it;
}

std::string Option::flag() const { return spell(name, OptionSpelling::Flag); }

bool Option::isList() const {
  return std::holds_alternative<std::vector<std::string> CompileOptions::*>(member) ||
         std::holds_alternative<MeshSizes CompileOptions::*>(member) ||
         std::holds_alternative<LinkSpeeds CompileOptions::*>(member);
}

std::string dtc::spell(StringRef name, OptionSpelling spelling) {
  if (spelling == OptionSpelling::Field)
    return name.str();
  std::string flag = "--" + name.str();
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}
