//===- ImportCommand.cpp - The command dtc-import -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-import/ImportCommand.h"

#include "compiler/import/torch/ImportTorch.h"
#include "support/AtomicFile.h"
#include "support/CommandFiles.h"
#include "support/ReadText.h"

#include "mlir/IR/MLIRContext.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace dtc;

/// Writes the text to a file, whole or not at all, or to the standard output where the path is "-".
static MaybeError writeText(const std::string &path, const std::string &text) {
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
      return std::nullopt;
    return Error{std::string("standard output: cannot write: ") + std::strerror(errno)};
  }
  auto file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (auto problem = file->write(text))
    return problem;
  return file->commit();
}

/// Reads adapters into `lora`.
static CLI::Validator loraInto(std::optional<LoraOptions> &lora) {
  return CLI::Validator(
      [&](std::string &text) -> std::string {
        Expected<LoraOptions> parsed = parseLora(text);
        if (!parsed)
          return parsed.error().message;
        lora = std::move(*parsed);
        return "";
      },
      "");
}

ImportCommand::ImportCommand(CLI::App &app) : app(app) {
  app.add_option("config", input,
                 "The configuration, or a captured PyTorch model; - is the standard input")
      ->required();
  app.add_option("--batch", options.batch,
                 "Sequences or images in a batch, over all devices and microbatches; required, but "
                 "of a captured model, which has its own")
      ->check(CLI::Range(int64_t{1}, kMaxTokens));
  app.add_option("--seq", options.seq,
                 "Tokens in a sequence; of images the configuration says how many patches they are")
      ->check(CLI::Range(int64_t{1}, kMaxTokens));
  app.add_option("--dtype", elementType, "What to compute in: f32 or f64")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "f64"}));
  app.add_option("--attention", attention,
                 "How attention is computed: fused, by one op that never holds all scores, or "
                 "decomposed, as einsums, a causal softmax and dropout")
      ->capture_default_str()
      ->check(CLI::IsMember({"fused", "decomposed"}));
  app.add_flag("--no-dropout", noDropout, "Leave out the configuration's dropout");
  app.add_option("--label-smoothing", options.labelSmoothing,
                 "The part of the loss that asks for all classes alike")
      ->check(numberBetween(0.0, 0.999, "a number from 0 to 0.999"))
      ->capture_default_str();
  app.add_option("--z-loss", options.zLoss,
                 "Add so much of the squared log of the softmax's denominator to the loss, such as "
                 "1e-4")
      ->check(numberBetween(0.0, 1e6, "a number from 0 to 1e6"))
      ->capture_default_str();
  app.add_option("--ignore-index", options.ignoreIndex,
                 "The label of tokens or images that do not count, such as -100; the loss is the "
                 "mean over the "
                 "others")
      ->check(CLI::Range(int64_t{INT32_MIN}, int64_t{INT32_MAX}));
  app.add_option("--expert-capacity", options.capacityFactor,
                 "How many tokens of a sequence an expert takes: this times the number of an even "
                 "spread, such as 1.25. Tokens that find an expert full are dropped by it; without "
                 "the flag experts take all tokens that choose them")
      ->check(numberBetween(1e-6, 1e6, "a number from 1e-6 to 1e6"));
  app.add_option("--expert-bound", bound,
                 "Reserve as many rows as --expert-capacity does, but drop no token: a step in "
                 "which an expert needs more changes no parameter, and ends the run")
      ->excludes("--expert-capacity")
      ->check(numberBetween(1e-6, 1e6, "a number from 1e-6 to 1e6"));
  app.add_flag("--expert-metrics", options.expertMetrics,
               "Return the tokens of each expert with each step, those that it drops, and the "
               "balance loss, which dtc-run writes with its other metrics");
  app.add_option("--balance-loss", balanceLoss,
                 "What is added to the loss so that experts are chosen evenly: none, batch, which "
                 "compares all tokens of the batch, or sequence, which compares those of each "
                 "sequence and works with microbatches; without the flag what output_router_logits "
                 "of the configuration says, batch or none. The factor is router_aux_loss_coef, or "
                 "aux_loss_alpha of DeepSeek's models")
      ->check(CLI::IsMember({"none", "batch", "sequence"}));
  app.add_flag("--packed", options.packed,
               "Let documents share a sequence: the batch also has segments, beyond which no token "
               "attends, and positions, which begin again with each; the label -100, or that of "
               "--ignore-index, does not count");
  app.add_option("--lora", lora,
                 "Freeze the model, and train low-rank adapters beside the linear layers named: "
                 "rank=8,alpha=16,target=q_proj,v_proj and, if you like, dropout=0.1; the target "
                 "all-linear stands for all but the head")
      ->check(loraInto(options.lora));
  app.add_option("-o,--output", output, "The file to write; - is the standard output")
      ->capture_default_str();
}

MaybeError ImportCommand::checkFlags(bool isCapture) const {
  if (!isCapture && app.count("--batch") == 0)
    return Error{"--batch is required; see dtc-import --help"};
  if (isCapture)
    for (const CLI::Option *option : app.get_options())
      if (option->count() > 0 && option->nonpositional() && !option->check_lname("output"))
        return Error{option->get_name() + " is for configurations; '" + input +
                     "' is a captured model, which has its batch, types and loss already"};
  return std::nullopt;
}

int ImportCommand::run() {
  options.doublePrecision = elementType == "f64";
  options.attention = attention == "decomposed" ? AttentionKind::Decomposed : AttentionKind::Fused;
  options.dropout = !noDropout;
  if (bound) {
    options.capacityFactor = bound;
    options.mustFit = true;
  }
  if (!balanceLoss.empty())
    options.balanceLoss = balanceLoss == "none"    ? BalanceLoss::None
                          : balanceLoss == "batch" ? BalanceLoss::Batch
                                                   : BalanceLoss::Sequence;

  CommandFiles files;
  files.reads("the configuration", input == "-" ? "/dev/stdin" : input);
  files.writes("-o", output == "-" ? "/dev/stdout" : output);
  if (auto problem = files.check())
    return fail(problem->message);

  auto config = readText(input);
  if (!config)
    return fail(config.error().message);
  bool isCapture = isTorchCapture(*config);
  if (auto problem = checkFlags(isCapture))
    return fail(problem->message);

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  ImportLog log;
  llvm::StringRef fileName = input == "-" ? llvm::StringRef("<stdin>") : llvm::StringRef(input);
  auto module = isCapture ? importTorch(context, *config, fileName, log)
                          : importModel(context, *config, fileName, options, log);
  for (const std::string &remark : log.remarks)
    llvm::errs() << "remark: " << printableMessage(remark) << "\n";
  for (const std::string &warning : log.warnings)
    llvm::errs() << "warning: " << printableMessage(warning) << "\n";
  for (const std::string &error : log.errors)
    fail(error);
  if (!module)
    return 1;

  // Locations name the layers; diagnostics and reports live on them.
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix());
  stream << "\n";
  if (auto problem = writeText(output, text))
    return fail(problem->message);
  return 0;
}
