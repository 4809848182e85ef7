//===- ExplanationReportJson.cpp - Explanations as JSON -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/ExplanationReport.h"

#include <nlohmann/json.hpp>

namespace dtc {

using Json = nlohmann::ordered_json;

/// Information that the plan does not have is null.
static Json textOrNull(const std::string &text) { return text.empty() ? Json() : Json(text); }

static const char *nameOf(LinkOrigin origin) {
  return origin == LinkOrigin::Assumed ? "assumed" : origin == LinkOrigin::Plan ? "plan" : "option";
}

static Json toJson(const AxisLink &link) {
  return {{"axis", link.axis},
          {"sub_axis_of", textOrNull(link.subAxisOf)},
          {"bandwidth", link.speed.bandwidth},
          {"bandwidth_from", nameOf(link.bandwidthFrom)},
          {"latency", link.speed.latency},
          {"latency_from", nameOf(link.latencyFrom)}};
}

static Json toJson(const ExplainedTensor &tensor) {
  const ExplainedReason &reason = tensor.reason;
  return {{"type", tensor.type},
          {"call_sent_bytes", tensor.bytes},
          {"value", textOrNull(reason.value)},
          {"from", textOrNull(reason.from)},
          {"to", textOrNull(reason.to)},
          {"producer", textOrNull(reason.producer)},
          {"consumer", textOrNull(reason.consumer)},
          {"remedy", textOrNull(reason.remedy)}};
}

static Json toJson(const ExplainedCollective &collective, bool pipelined) {
  Json tensors = Json::array();
  for (const ExplainedTensor &tensor : collective.tensors)
    tensors.push_back(toJson(tensor));
  Json json = {{"kind", collective.kindName()},
               {"axes", collective.axes},
               {"user_axes", collective.parentAxes},
               {"members", collective.members},
               {"async", collective.async},
               {"task", collective.task},
               {"instruction", collective.instruction},
               {"location", textOrNull(collective.location)},
               {"calls", collective.calls},
               {"call_sent_bytes", collective.bytes},
               {"call_seconds", collective.seconds},
               {"sent_bytes", collective.stepBytes()},
               {"seconds", collective.stepSeconds()},
               {"tensors", tensors}};
  if (pipelined)
    json["program"] = collective.program;
  return json;
}

static Json toJson(const CommunicationTotal &total) {
  return {{"name", total.name},       {"instructions", total.instructions},
          {"calls", total.calls},     {"sent_bytes", total.bytes},
          {"seconds", total.seconds}, {"async_seconds", total.asyncSeconds}};
}

template <typename T> static Json arrayOf(const std::vector<T> &entries) {
  Json array = Json::array();
  for (const T &entry : entries)
    array.push_back(toJson(entry));
  return array;
}

std::string explanationToJson(const PlanExplanation &explanation) {
  bool pipelined = explanation.byProgram.size() > 1;
  Json collectives = Json::array();
  for (const ExplainedCollective &collective : explanation.collectives)
    collectives.push_back(toJson(collective, pipelined));
  Json json = {{"model", explanation.model},
               {"devices", explanation.numDevices},
               {"links", arrayOf(explanation.links)},
               {"collectives", collectives},
               {"totals",
                {{"by_axes", arrayOf(explanation.byAxes)},
                 {"by_kind", arrayOf(explanation.byKind)},
                 {"all", toJson(explanation.total)}}}};
  if (pipelined)
    json["totals"]["by_program"] = arrayOf(explanation.byProgram);
  if (explanation.outerStep)
    json["totals"]["outer_step"] = toJson(*explanation.outerStep);
  // Names come from files and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dtc
