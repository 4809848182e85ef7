//===- VerifierReport.cpp - Report of the verifier ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/VerifierReport.h"

#include "support/Format.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc {

std::string formatVerifierResult(const VerifierResult &facts) {
  std::string text = "every value is read as it was written, by its own microbatch\n";
  for (size_t p = 0; p < facts.programs.size(); ++p) {
    const ProgramVerifierResult &program = facts.programs[p];
    text += fmt::format("program {}: {} instructions in {} executions of tasks, an arena of {}", p,
                        program.instructions, program.entries, formatBytes(program.arenaBytes));
    if (program.slots && program.slots->buffers > 1)
      text += fmt::format(", at most {} values of {} microbatches alive in {} buffers that share "
                          "slots (buffer {}, {} slots)",
                          program.slots->alive, facts.microbatches, program.slots->buffers,
                          program.slots->buffer, program.slots->reserved);
    else if (program.slots)
      text += fmt::format(", at most {} of {} microbatches alive in a buffer (buffer {}, {} slots)",
                          program.slots->alive, facts.microbatches, program.slots->buffer,
                          program.slots->reserved);
    text += "\n";
  }
  if (facts.programs.size() > 1)
    text += fmt::format("{} channels, {} messages a step: each is sent once and received once, for "
                        "one microbatch, and no program waits without end\n",
                        facts.channels, facts.messages);
  return text;
}

std::string verifierResultToJson(const VerifierResult &facts) {
  nlohmann::ordered_json programs = nlohmann::ordered_json::array();
  for (const ProgramVerifierResult &program : facts.programs) {
    nlohmann::ordered_json entry = {{"executions", program.entries},
                                    {"instructions", program.instructions},
                                    {"sends", program.sends},
                                    {"receives", program.receives},
                                    {"arena_bytes", program.arenaBytes},
                                    {"arena_lower_bound", program.arenaLowerBound}};
    if (program.slots)
      entry["slots"] = {{"buffer", program.slots->buffer},
                        {"alive", program.slots->alive},
                        {"reserved", program.slots->reserved},
                        {"buffers", program.slots->buffers}};
    programs.push_back(std::move(entry));
  }
  nlohmann::ordered_json json = {{"microbatches", facts.microbatches},
                                 {"channels", facts.channels},
                                 {"messages", facts.messages},
                                 {"programs", std::move(programs)}};
  return json.dump(2) + "\n";
}

} // namespace dtc
