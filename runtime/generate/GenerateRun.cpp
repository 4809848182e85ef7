//===- GenerateRun.cpp - Runs a plan that generates tokens ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/generate/GenerateRun.h"

#include "plan/PlanReader.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/TokenFile.h"
#include "runtime/generate/StopTokens.h"
#include "runtime/train/OpenSession.h"
#include "runtime/train/ProgressReport.h"
#include "support/AtomicFile.h"
#include "support/Format.h"
#include "support/Print.h"
#include "support/Printable.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

/// Tokens of a text: bytes as they are, others by their number.
static std::string asText(const std::vector<int32_t> &tokens) {
  std::string text;
  for (int32_t token : tokens)
    if (token >= 0 && token < 256)
      text += static_cast<char>(token);
    else
      text += fmt::format("<{}>", token);
  return text;
}

static void print(std::FILE *out, const TokenFile &file, const std::vector<int32_t> &prompt,
                  const std::vector<int32_t> &tokens) {
  if (file.isText()) {
    std::string text = asText(prompt) + asText(tokens) + "\n";
    std::fwrite(text.data(), 1, text.size(), out);
  } else {
    printTo(out, "{} {}\n", fmt::join(prompt, " "), fmt::join(tokens, " "));
  }
}

static MaybeError writeTokens(const std::string &path,
                              const std::vector<std::vector<int32_t>> &prompts,
                              const GeneratedText &text) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    nlohmann::ordered_json line;
    line["prompt"] = prompts[i];
    line["tokens"] = text.tokens[i];
    if (MaybeError error = file->write(line.dump() + "\n"))
      return error;
  }
  return file->commit();
}

/// The options with the stop tokens of the model where the user has named none: those of the last
/// folder of weights that says which they are.
static Expected<GeneratorOptions> withStopTokens(const TrainOptions &run,
                                                 const GenerateOptions &options,
                                                 const Generator &generator, std::FILE *notes) {
  GeneratorOptions result = options.generator;
  if (!result.stopTokens.empty() || options.ignoresEos)
    return result;
  for (size_t i = run.initPaths.size(); i-- > 0 && result.stopTokens.empty();) {
    Expected<ModelStopTokens> found = findStopTokens(run.initPaths[i]);
    if (!found)
      return found.error().inContext("--init");
    // A token that no logit is of is never generated.
    std::erase_if(found->tokens, [&](int32_t token) { return token >= generator.vocabulary(); });
    if (found->tokens.empty())
      continue;
    result.stopTokens = std::move(found->tokens);
    printTo(notes,
            "note: a sequence ends after token {}, eos_token_id of {}; --stop-token names "
            "others, --ignore-eos none\n",
            fmt::join(result.stopTokens, " or "), printable(found->path));
  }
  return result;
}

MaybeError generate(const TrainOptions &run, const GenerateOptions &options,
                    std::shared_ptr<const Backend> backend, std::FILE *out, std::FILE *notes,
                    const std::atomic<bool> &stop) {
  Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(run.planPath);
  if (!plan)
    return plan.error();
  std::vector<TokenFile> files;
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string &path : options.promptPaths) {
    Expected<TokenFile> file = TokenFile::open(path);
    if (!file)
      return file.error().inContext("--prompt");
    for (const DataInput &input : dataInputsOf(**plan))
      if (input.name == "tokens")
        if (MaybeError error = file->checkWidth(input.indexLimit))
          return error->inContext("--prompt");
    std::vector<int32_t> &prompt = prompts.emplace_back(file->size());
    if (MaybeError error = file->read(0, prompt))
      return error->inContext("--prompt");
    files.push_back(std::move(*file));
  }
  bool writesTokens = !options.tokensPath.empty() && run.processes.isFirst();
  if (writesTokens)
    if (MaybeError error = checkWritable(options.tokensPath))
      return error;
  Expected<std::unique_ptr<Session>> session =
      openSession(std::move(*plan), std::move(backend), run);
  if (!session)
    return session.error();
  Expected<Generator> generator = Generator::create(**session);
  if (!generator)
    return generator.error().inContext(run.planPath);
  if (MaybeError error = loadInitialWeights(**session, run, notes))
    return error;
  if (MaybeError error = (*session)->initializeOtherStates(run.seed))
    return error;
  Expected<GeneratorOptions> generated = withStopTokens(run, options, *generator, notes);
  if (!generated)
    return generated.error();
  Expected<GeneratedText> text = generator->run(prompts, *generated, stop);
  if (!text)
    return text.error();
  for (size_t i = 0; i < text->tokens.size(); ++i)
    print(out, files[i], prompts[i], text->tokens[i]);
  if (writesTokens)
    if (MaybeError error = writeTokens(options.tokensPath, prompts, *text))
      return error;
  if (run.profile)
    for (const Session *entry : {session->get(), (*session)->findEntry("decode")})
      printTo(out, "\n{}:\n{}{}{}", entry == session->get() ? "prompts" : "tokens, one by one",
              formatProfile(entry->profile()),
              formatMeasuredCollectives(entry->measuredCollectives()),
              formatTransferTime(entry->transferTime()));
  size_t count = 0;
  for (const std::vector<int32_t> &tokens : text->tokens)
    count += tokens.size();
  printTo(notes, "{} tokens for {} prompt{}: prefill {:.1f} ms", count, text->tokens.size(),
          text->tokens.size() == 1 ? "" : "s", 1e3 * text->prefillSeconds);
  if (text->decodeSteps > 0)
    printTo(notes, ", then {:.2f} ms a token",
            1e3 * text->decodeSeconds / static_cast<double>(text->decodeSteps));
  printTo(notes, ", {} a device\n", formatBytes((*session)->peakBytes()));
  if ((std::fflush(out) != 0 || std::ferror(out)) && !stop)
    return Error{fmt::format("the tokens cannot be written: {}", std::strerror(errno))};
  return std::nullopt;
}

} // namespace dtc::runtime
