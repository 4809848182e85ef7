//===- dtc-compile.cpp - From model IR to a plan --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/analysis/Layout.h"
#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/PlannerReport.h"
#include "compiler/planner/Strategy.h"
#include "dialects/dist/Dist.h"
#include "plan/PlanReader.h"
#include "plan/PlanValidator.h"
#include "report/ExplanationReport.h"
#include "report/SimulationReport.h"
#include "report/html/SimulationPage.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "support/CommandFiles.h"
#include "support/Format.h"
#include "support/LinkSpeed.h"
#include "support/Printable.h"
#include "support/Quantity.h"
#include "support/ReadText.h"
#include "tools/CommandLine.h"
#include "tools/PrintableStream.h"
#include "tools/dtc-compile/Planning.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

using namespace dtc;

/// "dp=2" -> ("dp", 2).
static std::string parseAxis(const std::string &text, std::pair<std::string, int64_t> &axis) {
  auto [name, size] = llvm::StringRef(text).split('=');
  auto isWord = [](llvm::StringRef word) {
    return !word.empty() && llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  };
  if (!isWord(name) || size.getAsInteger(10, axis.second) || axis.second < 1)
    return "--mesh: '" + text +
           "' is not of the form axis=size with a name and a size of at least 1, such as dp=2";
  axis.first = name.str();
  if (axis.first == kMicrobatchAxis)
    return "--mesh: '" + text + "' uses the name of the microbatch axis; use --microbatches";
  return "";
}

/// Writes out what is not printable in a diagnostic's arguments. Their texts are kept in `texts`.
/// The handlers after this one print it.
static void makePrintable(mlir::Diagnostic &diagnostic, std::deque<std::string> &texts) {
  using Kind = mlir::DiagnosticArgument::DiagnosticArgumentKind;
  for (mlir::DiagnosticArgument &argument : diagnostic.getArguments())
    if (argument.getKind() == Kind::String)
      argument = mlir::DiagnosticArgument(
          llvm::StringRef(texts.emplace_back(runtime::printable(argument.getAsString()))));
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    makePrintable(note, texts);
}

/// Prints a diagnostic of what has a name, such as a layer, with it: "model.mlir:7:8: error:
/// h.0.attn: ...", or without a place where it has none.
static llvm::LogicalResult printNamedDiagnostic(mlir::SourceMgrDiagnosticHandler &handler,
                                                mlir::Diagnostic &diagnostic) {
  std::string name = runtime::printable(nameOf(diagnostic.getLocation()).str());
  if (name.empty())
    return llvm::failure();
  std::string message = diagnostic.str();
  if (!llvm::StringRef(message).contains(name))
    message = name + ": " + message;
  bool hasPlace = diagnostic.getLocation()
                      ->walk([](mlir::Location part) {
                        return llvm::isa<mlir::FileLineColLoc>(part) ? mlir::WalkResult::interrupt()
                                                                     : mlir::WalkResult::advance();
                      })
                      .wasInterrupted();
  auto print = [&](mlir::Location loc, const std::string &text, mlir::DiagnosticSeverity severity) {
    if (hasPlace)
      // Not the line: the signature of a model is one.
      return handler.emitDiagnostic(loc, text, severity, /*displaySourceLine=*/false);
    const char *word = severity == mlir::DiagnosticSeverity::Error     ? "error"
                       : severity == mlir::DiagnosticSeverity::Warning ? "warning"
                       : severity == mlir::DiagnosticSeverity::Remark  ? "remark"
                                                                       : "note";
    llvm::errs() << word << ": " << text << "\n";
  };
  print(diagnostic.getLocation(), message, diagnostic.getSeverity());
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    print(note.getLocation(), note.str(), note.getSeverity());
  return llvm::success();
}

namespace {
struct Arguments {
  std::string input, output;
  std::vector<std::string> mesh;
  std::vector<std::string> links;
  std::optional<std::string> bucketBytes, commBudget, memoryLimit;
  bool printIr = false, timing = false, remarks = false;
  std::optional<double> beta2;
  std::optional<uint64_t> budget; ///< of --comm-budget
  CompileOptions compile;
  PlanningArguments planning;
};
} // namespace

/// A number of the optimizer; NaN fits neither kind.
static CLI::Validator numberThat(const char *expected, bool (*fits)(double)) {
  return CLI::Validator(
      [=](std::string &text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && fits(value))
          return std::string();
        return "found " + text + ", expected " + expected;
      },
      "");
}

static void addOptions(CLI::App &app, Arguments &args) {
  static const std::map<std::string, CompileOptions::Mode> modes = {
      {"train", CompileOptions::Mode::Train},
      {"gradients", CompileOptions::Mode::Gradients},
      {"forward", CompileOptions::Mode::Forward},
      {"generate", CompileOptions::Mode::Generate}};
  CompileOptions &options = args.compile;
  const CLI::Validator notNegative = numberThat(
      "a finite number that is not negative", [](double x) { return std::isfinite(x) && x >= 0; });
  const CLI::Validator positive = numberThat("a finite number of more than 0",
                                             [](double x) { return std::isfinite(x) && x > 0; });
  const CLI::Validator belowOne =
      numberThat("at least 0 and less than 1", [](double x) { return x >= 0 && x < 1; });
  app.add_option("model", args.input,
                 "Model IR, as dtc-import writes it or by hand; - is the standard input")
      ->required();
  app.add_option("-o,--output", args.output,
                 "The plan to write (default: the model's name with .plan)");
  app.add_option("--mesh", args.mesh,
                 "The devices as named axes, such as dp=2,tp=2 (default: one device)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option(
         "--shard", options.shard,
         "Logical to mesh axes, such as batch=dp,heads=tp; several as batch=dp+tp, none as vocab= "
         "(default: batch over dp; heads, kv_heads, mlp and vocab over tp); or a dimension of a "
         "parameter or input, such as layers.0.weight#1=tp, where * stands for the numbers of "
         "layers: h.*.fc.weight#1=tp")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option(
         "--zero", options.zero,
         "ZeRO's stage: 1 splits the optimizer's state over the data axis, 2 gradients too, "
         "3 parameters too")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  app.add_option("--zero-axes", options.zeroAxes,
                 "The mesh axes over which ZeRO splits (default: fsdp where the mesh has it, else "
                 "dp)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--sequence-parallel", options.sequenceParallel,
               "Split norms and residuals along the sequence over tp");
  app.add_option("--link", args.links,
                 "What the network does along an axis, such as dp=25GB/s,10us (default: that); for "
                 "estimates and for choices between shardings")
      ->allow_extra_args(false);
  app.add_option("--bucket-bytes", args.bucketBytes,
                 "Smaller collectives move together, up to so many bytes; 0: each by itself")
      ->default_str("25MiB");
  app.add_option("--prefetch", options.prefetch,
                 "How many layers ahead ZeRO stage 3 gathers parameters")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--comm-budget", args.commBudget,
                 "Fail where a device would send more bytes in a step, such as 64MiB");
  app.add_flag("--remarks", args.remarks, "Print what the compiler chose between, and why");
  app.add_option("--microbatches", options.microbatches,
                 "Parts of the batch that each device works through")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->capture_default_str();
  app.add_flag("--accumulate", options.accumulates,
               "Keep sums of gradients, so that dtc-run --accumulate can take several batches a "
               "step; with more than one microbatch there are some anyway");
  app.add_option("--schedule", options.schedule,
                 "How a pipeline (pp in --mesh) works: naive, gpipe, 1f1b, interleaved, zb-h1, "
                 "zb-v, or auto, the fastest by estimate that fits --memory-limit")
      ->check([](const std::string &name) {
        return findScheduleRule(name) || name == "auto"
                   ? std::string()
                   : "found " + name + ", expected " + listScheduleNames() + " or auto";
      })
      ->capture_default_str();
  app.add_option("--chunks", options.chunks,
                 "Stages of each device of a pipeline (default: as few as the schedule has)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 10));
  app.add_option("--stages", options.stages,
                 "The layers of each stage, such as 'wte,h.0-h.5|h.6-h.11,ln_f' (default: those "
                 "with which the slowest stage is fastest)");
  app.add_option("--recompute", options.recompute,
                 "What is computed again in the backward pass instead of being kept: none, "
                 "selective (what takes little time), full (all but the values between layers), or "
                 "auto, the least with which --memory-limit is enough")
      ->check(CLI::IsMember({"none", "selective", "full", "auto"}))
      ->capture_default_str();
  app.add_option("--memory-limit", args.memoryLimit,
                 "The most memory that the plan may take on a device, such as 8GiB");
  app.add_option("--device-flops", options.deviceFlops,
                 "Floating point operations a second that a device is taken to do, for estimates "
                 "(default: " +
                     llvm::formatv("{0:e1}", kDefaultDeviceFlops).str() + ")")
      ->check(positive);
  app.add_option("--device-bandwidth", options.deviceBandwidth,
                 "Bytes a second that a device's memory is taken to move (default: " +
                     llvm::formatv("{0:e1}", kDefaultDeviceBandwidth).str() + ")")
      ->check(positive);
  app.add_option_function<std::string>(
         "--mode", [&](const std::string &name) { options.mode = modes.at(name); },
         "train, gradients, forward: the function as it is, or generate: the next tokens of "
         "prompts, with a cache of keys and values")
      ->check(CLI::IsMember({"train", "gradients", "forward", "generate"}))
      ->default_str("train");
  app.add_option("--dtype", options.dtype,
                 "What the model computes in: f32, bf16, or f16 with a scaled loss; what needs f32 "
                 "keeps it")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option("--grad-reduce-dtype", options.gradReduceDtype,
                 "What gradients are in while they are summed between devices: f32, or 16 bits as "
                 "--dtype")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "adamw, adam, sgd or lion")
      ->check(CLI::IsMember({"adamw", "adam", "sgd", "lion"}))
      ->capture_default_str();
  app.add_option("--freeze", options.freeze,
                 "Parameters that do not train, such as 'transformer.wte.*'; may be given again")
      ->allow_extra_args(false);
  app.add_option("--param-group", options.paramGroups,
                 "Parameters that train in another way, such as "
                 "'*.bias:weight_decay=0.1,lr_scale=0.5'; the first group that matches holds")
      ->allow_extra_args(false);
  app.add_option("--clip", options.clip, "Largest norm of the gradient; 0 does not clip")
      ->check(notNegative)
      ->capture_default_str();
  app.add_option("--weight-decay", options.weightDecay, "Of parameters with two or more dimensions")
      ->check(notNegative)
      ->capture_default_str();
  app.add_option("--beta1", options.beta1,
                 "Adam, AdamW: decay of the first moment; Lion: its part in the update")
      ->check(belowOne)
      ->capture_default_str();
  app.add_option("--beta2", args.beta2,
                 "Adam, AdamW: decay of the second moment; Lion: decay of the momentum (default: "
                 "0.95, Lion: 0.99)")
      ->check(belowOne);
  app.add_option("--eps", options.eps, "Adam, AdamW: added to the root of the second moment")
      ->check(notNegative)
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "SGD: decay of the momentum")
      ->check(belowOne)
      ->capture_default_str();
  app.add_flag("--print-ir", args.printIr, "Print the exec IR of the plan on the standard output");
  app.add_flag("--timing", args.timing, "Print the seconds that compiling took on standard error");
}

static bool hasAxis(const Arguments &args, llvm::StringRef name) {
  return llvm::any_of(args.compile.mesh, [&](const auto &axis) { return axis.first == name; });
}

/// Reads the options whose values have units. Returns what is wrong, or an empty string.
static std::string readLinksAndSizes(Arguments &args) {
  for (const std::string &text : args.links) {
    auto link = runtime::parseNamedLink(text);
    if (!link)
      return "--link: " + link.error().message;
    if (!hasAxis(args, link->axis))
      return "--link: --mesh has no axis '" + link->axis + "'; name one of its axes";
    args.compile.links[link->axis] = {link->speed.bandwidth, link->speed.latency};
  }
  if (args.bucketBytes) {
    auto bytes = runtime::parseByteSize(*args.bucketBytes);
    if (!bytes)
      return "--bucket-bytes: " + bytes.error().message;
    args.compile.bucketBytes = int64_t(std::min<uint64_t>(*bytes, INT64_MAX));
  }
  if (args.memoryLimit) {
    auto bytes = runtime::parseByteSize(*args.memoryLimit);
    if (!bytes)
      return "--memory-limit: " + bytes.error().message;
    if (*bytes == 0)
      return "--memory-limit: found 0, expected at least a byte";
    args.compile.memoryLimit = int64_t(std::min<uint64_t>(*bytes, INT64_MAX));
  }
  if (args.compile.recompute == "auto" && args.compile.memoryLimit == 0)
    return "--recompute auto needs a limit to stay below; give --memory-limit, such as 8GiB";
  if (args.commBudget) {
    auto bytes = runtime::parseByteSize(*args.commBudget);
    if (!bytes)
      return "--comm-budget: " + bytes.error().message;
    args.budget = *bytes;
  }
  return "";
}

/// Shows on a terminal how far a search is.
static void showProgress(const PlannerProgress &progress) {
  static int64_t shown = -1;
  int64_t count = progress.estimated / 1000 + progress.probes + 100 * progress.simulated;
  if (count == shown || !llvm::sys::Process::StandardErrIsDisplayed())
    return;
  shown = count;
  llvm::errs() << llvm::formatv("\r{0} layouts estimated from {1} probes, {2} simulated",
                                progress.estimated, progress.probes, progress.simulated);
  if (progress.bestSeconds > 0)
    llvm::errs() << ", best " << runtime::formatDuration(progress.bestSeconds);
  llvm::errs() << "\x1b[K";
}

static bool hasOneBody(mlir::ModuleOp module) {
  auto functions = module.getOps<mlir::func::FuncOp>();
  return llvm::hasSingleElement(functions) && !(*functions.begin()).isDeclaration();
}

/// Chooses the parallel form by a search. Returns what is wrong, or an empty string. No choice:
/// what is wrong with the model, compile() says.
static std::string searchPlan(const CLI::App &app, Arguments &args, const cluster::Cluster &cluster,
                              mlir::ModuleOp module, runtime::SimulationPageOptions &page,
                              std::optional<PlanChoice> &chosen) {
  auto options = readPlannerOptions(app, args.planning, args.compile, cluster);
  if (!options)
    return options.error().message;
  auto name = llvm::sys::path::stem(args.input);
  if (!hasOneBody(module))
    return "";
  auto choice = Planner(module, name, *options).run(showProgress);
  if (llvm::sys::Process::StandardErrIsDisplayed())
    llvm::errs() << "\r\x1b[K";
  // The lines after the first are details.
  auto asError = [](llvm::StringRef text) {
    return llvm::join(llvm::split(text.rtrim(), '\n'), "\n  ");
  };
  if (!choice)
    return asError(choice.error().message);
  std::string text = formatChoice(*choice, *options, args.planning.alternatives);
  if (choice->ranked.empty())
    return asError(text);
  llvm::outs() << runtime::printableLines(text);
  page = pageOptions(*choice, *options, args.planning.alternatives);
  args.compile = choice->options;
  if (auto problem =
          runtime::writeTextFile(args.planning.strategyOutput, formatStrategy(args.compile)))
    return "--strategy-output: " + problem->message;
  llvm::outs() << "strategy written to " << runtime::printable(args.planning.strategyOutput)
               << "\n";
  chosen = std::move(*choice);
  return "";
}

/// Gives names to the files that are written without a flag of theirs, and checks that nothing is
/// written over.
static runtime::MaybeError nameOutputs(const CLI::App &app, Arguments &args, bool searches) {
  auto complete = [](std::string &path, llvm::StringRef of, const char *extension) {
    if (!path.empty())
      return;
    llvm::SmallString<128> name(of);
    llvm::sys::path::replace_extension(name, extension);
    path = name.str().str();
  };
  complete(args.output, args.input == "-" ? "model" : args.input, "plan");
  if (searches)
    complete(args.planning.strategyOutput, args.output, "strategy.textproto");
  auto nameOf = [&](const std::string &flag) {
    return app.count(flag) > 0 ? flag : "the default of " + flag;
  };
  runtime::CommandFiles files;
  files.reads("the model", args.input == "-" ? "/dev/stdin" : args.input);
  files.reads("--cluster", args.planning.cluster);
  files.reads("--strategy", args.planning.strategy);
  files.writes(nameOf("-o"), args.output);
  files.writes(nameOf("--strategy-output"), args.planning.strategyOutput);
  files.writesInto("--report", args.planning.report, runtime::pageFileName);
  return files.check();
}

static int runMain(int argc, char **argv) {
  CLI::App app("Compiles model IR for a mesh of devices and writes a plan for dtc-run.",
               "dtc-compile");
  app.set_version_flag("--version", std::string("dtc-compile ") + DTC_VERSION);
  Arguments args;
  addOptions(app, args);
  addPlanningOptions(app, args.planning);
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  for (const std::string &text : args.mesh) {
    std::string problem = parseAxis(text, args.compile.mesh.emplace_back());
    if (!problem.empty())
      return fail(problem);
  }
  if (std::string problem = checkPlanningFlags(app, args.planning, args.compile); !problem.empty())
    return fail(problem);
  if (!args.planning.strategy.empty())
    if (auto problem = readStrategy(args.planning.strategy, args.compile))
      return fail("--strategy: " + problem->message);
  std::optional<cluster::Cluster> cluster;
  if (!args.planning.cluster.empty()) {
    auto read = runtime::readCluster(args.planning.cluster);
    if (!read)
      return fail("--cluster: " + read.error().message);
    cluster = std::move(*read);
    if (auto problem = runtime::extendCluster(*cluster, args.planning.devices))
      return fail("--devices: " + problem->message);
  }
  bool searches = args.planning.searches(args.compile);
  if (args.compile.accumulates && args.compile.mode != CompileOptions::Mode::Train)
    return fail(
        "--accumulate: only plans of --mode train take several batches a step; leave it out");
  if (args.compile.mode == CompileOptions::Mode::Generate) {
    if (args.compile.microbatches > 1)
      return fail("--microbatches " + std::to_string(args.compile.microbatches) +
                  ": generation works on the whole batch at once; leave it out");
    if (args.compile.zero > 0)
      return fail("--zero " + std::to_string(args.compile.zero) +
                  ": generation has no optimizer whose state could be split; leave it out");
  }
  if (args.compile.sequenceParallel && !searches && !hasAxis(args, "tp"))
    return fail("--sequence-parallel: --mesh has no axis 'tp' to split sequences over; add one");
  if (!args.compile.zeroAxes.empty() && args.compile.zero == 0)
    return fail("--zero-axes: ZeRO is off; choose a stage with --zero");
  if (args.compile.gradReduceDtype != "f32" && args.compile.gradReduceDtype != args.compile.dtype)
    return fail("--grad-reduce-dtype " + args.compile.gradReduceDtype + ": the model computes in " +
                args.compile.dtype + "; expected f32 or the --dtype");
  // The values that the optimizers' papers use.
  args.compile.beta2 = args.beta2.value_or(args.compile.optimizer == "lion" ? 0.99 : 0.95);
  if (std::string problem = readLinksAndSizes(args); !problem.empty())
    return fail(problem);
  if (auto problem = nameOutputs(app, args, searches))
    return fail(problem->message);
  if (auto problem = runtime::checkWritable(args.output))
    return fail(problem->message);

  auto begin = std::chrono::steady_clock::now();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // the op may be the whole model
  llvm::SourceMgr sources;
  PrintableStream errs(llvm::errs());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, errs);
  mlir::ScopedDiagnosticHandler namedHandler(&context, [&](mlir::Diagnostic &diagnostic) {
    return printNamedDiagnostic(handler, diagnostic);
  });
  // Remarks are for those who ask. The handler that comes last is asked first.
  mlir::ScopedDiagnosticHandler remarkHandler(&context, [&](mlir::Diagnostic &diagnostic) {
    return llvm::success(!args.remarks &&
                         diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark);
  });
  std::deque<std::string> texts;
  mlir::ScopedDiagnosticHandler printableHandler(&context, [&](mlir::Diagnostic &diagnostic) {
    texts.clear();
    makePrintable(diagnostic, texts);
    return llvm::failure();
  });
  auto text = runtime::readText(args.input);
  if (!text)
    return fail(text.error().message);
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(*text, args.input == "-" ? "<stdin>" : args.input),
      llvm::SMLoc());
  auto module = readModel(sources, &context);
  if (!module)
    return fail(args.input + " is not valid model IR (see above)");

  bool ownMesh = !module->getOps<dist::MeshOp>().empty();
  if (!args.planning.strategy.empty() && hasOneBody(*module))
    if (auto problem = checkStrategy(args.compile, *module, cluster ? &*cluster : nullptr))
      return fail("--strategy: " + args.planning.strategy + ": " + problem->message);
  if (int64_t devices = args.planning.devices; devices > 0 && !searches && !ownMesh) {
    int64_t ofMesh = 1;
    bool isLarger = false; // than any number of devices that the flag takes
    for (const auto &[name, size] : args.compile.mesh)
      isLarger |= llvm::MulOverflow(ofMesh, size, ofMesh);
    if (isLarger || ofMesh != devices)
      return fail("--devices: the mesh has " + (isLarger ? "more" : std::to_string(ofMesh)) +
                  " devices, not " + std::to_string(devices) +
                  "; leave the flag out, or search without a mesh");
  }
  if (searches && ownMesh)
    return fail("--cluster: the model declares a mesh of its own; a search chooses one");
  runtime::SimulationPageOptions page;
  std::optional<PlanChoice> chosen;
  if (searches)
    if (std::string problem = searchPlan(app, args, *cluster, *module, page, chosen);
        !problem.empty())
      return fail(problem);
  // Of a chosen plan the speeds are in its options.
  if (cluster && !searches && !ownMesh)
    useClusterSpeeds(*cluster, args.compile);
  if (!hasAxis(args, kPipelineAxis) && !ownMesh && !searches)
    for (const char *flag : {"--schedule", "--chunks", "--stages"})
      if (app.count(flag) > 0)
        return fail(std::string(flag) + ": --mesh has no axis 'pp' to lay stages over; add one");

  dtc::plan::Plan plan;
  llvm::StringRef name = llvm::sys::path::stem(args.input);
  if (failed(chosen ? finishCompile(*module, *chosen->search, *chosen->compiled, name, plan)
                    : compile(*module, args.compile, name, plan)))
    return fail("cannot compile " + args.input + " (see above)");
  if (args.printIr)
    module->print(llvm::outs(), mlir::OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix());
  // What no runtime would take, such as an arena of exabytes, is not written.
  if (auto problem = runtime::validatePlan(plan))
    return fail("the plan of " + args.input + " cannot be run: " + problem->message);
  if (args.budget) {
    runtime::PlanExplanation explanation = runtime::explainPlan(plan);
    if (auto problem = runtime::checkCommunicationBudget(explanation, *args.budget)) {
      llvm::errs() << runtime::formatExplanation(explanation);
      return fail("--comm-budget: " + problem->message);
    }
  }
  if (cluster && (!searches || !args.planning.report.empty())) {
    runtime::ClusterSimulationOptions options;
    options.keepCollectives = !args.planning.report.empty();
    auto simulation = runtime::simulateOnCluster(plan, *cluster, options);
    if (!simulation)
      return fail("--cluster: " + simulation.error().message);
    if (!searches)
      llvm::outs() << runtime::formatSimulation(*simulation);
    if (!args.planning.report.empty()) {
      auto text = runtime::simulationToHtml(plan, *cluster, *simulation, page);
      if (!text)
        return fail("--report: " + text.error().message);
      if (auto problem = runtime::writePage(args.planning.report, *text))
        return fail("--report: " + problem->message);
    }
  }
  if (auto problem = runtime::writePlan(plan, args.output))
    return fail(problem->message);
  if (args.timing) {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    llvm::errs() << llvm::formatv("compiled in {0:f3} s\n", seconds.count());
  }
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
