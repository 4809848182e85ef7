//===- OpenClients.cpp - Clients of a training run -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include "plan/PlanTypes.h"
#include "plan/Replicas.h"
#include "runtime/train/ClientsFile.h"
#include "runtime/train/OwnRows.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dtc::runtime {

/// Checks that the run names clients if the replicas of the plan train for some.
MaybeError TrainingRun::checkClients() const {
  if (MaybeError error = checkClientNoise())
    return error;
  const bool hasClients = findEntryPoint(*plan, kOuterCheckEntry) != nullptr;
  if (options.clientsPath.empty() && (options.localEpochs || options.rounds))
    return Error{fmt::format("{} is given, but no --clients; name the clients that take rounds",
                             options.localEpochs ? "--local-epochs" : "--rounds")};
  if (options.clientsPath.empty())
    return !hasClients || begin.step >= steps
               ? std::nullopt
               : MaybeError(
                     Error{"the replicas of the plan train for clients; name these in a file "
                           "with --clients"});
  if (!hasClients)
    return Error{
        fmt::format("--clients: the plan {}; compile with --outer and --clients for one "
                    "whose replicas do, or give --data",
                    trains() ? "has no replicas that train for clients" : "does not train")};
  if (!options.outerEvery && !options.localEpochs)
    return Error{"--clients: say with --outer-every how many steps a client trains in a round, "
                 "such as 50, or with --local-epochs how often it passes over its data"};
  if (options.epochs)
    return Error{"--clients: rounds are counted in steps, and --epochs is of one data set; give "
                 "--rounds, and --local-epochs for each of them"};
  if (begin.nextBatch != begin.step * options.batches)
    return Error{
        fmt::format("--clients: the run goes on after step {} and batch {}, expected {} "
                    "batches a step as --accumulate says; the samples of a step of clients "
                    "cannot change within a run",
                    begin.step, begin.nextBatch, options.batches)};
  return std::nullopt;
}

/// Checks that the run says how much noise the plan adds.
MaybeError TrainingRun::checkClientNoise() const {
  const plan::Plan *outer = findEntryPoint(*plan, kOuterStepEntry);
  const bool hasNoise = outer && std::ranges::any_of(distinctInputs(*outer), [](const auto *input) {
                          return input->name() == kNoiseScaleInput;
                        });
  const char *flag = options.clientClip        ? "--client-clip"
                     : options.noiseMultiplier ? "--noise-multiplier"
                                               : nullptr;
  if (flag && (!hasNoise || options.clientsPath.empty()))
    return Error{fmt::format("{}: the run has no clients whose plan adds noise; compile with "
                             "--client-noise, and name clients by --clients, or leave the flag out",
                             flag)};
  if (hasNoise && !options.clientsPath.empty() &&
      !(options.clientClip.value_or(0) > 0 && options.noiseMultiplier))
    return Error{"the outer step of the plan adds noise; give --client-clip, a norm above 0, and "
                 "--noise-multiplier"};
  return std::nullopt;
}

std::optional<ClientNoise> TrainingRun::clientNoise() const {
  if (!options.clientClip)
    return std::nullopt;
  return ClientNoise{*options.clientClip, options.noiseMultiplier.value_or(0), options.seed};
}

/// Opens the data sets of all clients that --clients names.
Expected<std::unique_ptr<DataSource>>
TrainingRun::openClients(const std::vector<DataInput> &inputs) {
  Replicas replicas = *replicasOf(*plan);
  Expected<std::vector<ClientData>> named =
      readClients(options.clientsPath, static_cast<size_t>(replicas.count));
  if (!named)
    return named.error().inContext("--clients");
  Expected<ReplicaRows> rows = rowsOfReplicas(*plan, replicas);
  if (!rows)
    return rows.error().inContext("--clients");
  auto opened = ClientsSource::open(
      std::move(*named), inputs, {options.seed, options.sampling}, std::move(*rows),
      {options.outerEvery, options.localEpochs.value_or(0), options.batches});
  if (!opened)
    return opened.error().inContext("--clients");
  outerEvery = (*opened)->stepsOfRound();
  clientsData = opened->get();
  return std::unique_ptr<DataSource>(std::move(*opened));
}

Expected<std::unique_ptr<DataSource>>
TrainingRun::openSource(const std::vector<DataInput> &inputs) {
  return options.clientsPath.empty()
             ? openDataSource(options.dataPaths, inputs, {options.seed, options.sampling})
             : openClients(inputs);
}

} // namespace dtc::runtime
