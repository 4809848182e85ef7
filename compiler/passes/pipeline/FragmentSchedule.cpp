//===- FragmentSchedule.cpp - The order of a pipeline's fragments ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/FragmentSchedule.h"

#include "compiler/analysis/LocalCost.h"
#include "compiler/analysis/PipelineSimulation.h"

#include <map>
#include <set>
#include <tuple>

using namespace mlir;
using namespace dtc;

static UnitRole roleOf(const Fragment &fragment) { return {fragment.pass, int(fragment.stage)}; }

static std::vector<StageSeconds> stageSeconds(const LinkedMesh &mesh,
                                              const PipelineProgram &program, int stages) {
  std::vector<StageSeconds> all(stages, StageSeconds{0, 0, 0});
  for (const Fragment &fragment : program.fragments) {
    StageSeconds &of = all[fragment.stage];
    double &seconds = fragment.pass == StagePass::Forward    ? of.forward
                      : fragment.pass == StagePass::Backward ? of.backward
                                                             : of.weight;
    for (Operation *op : fragment.ops)
      seconds += localSeconds(mesh, op);
  }
  return all;
}

/// The messages, and the values that the fragments of a device hand on to each other.
static std::vector<StageValue> channelsOf(const LinkedMesh &mesh, const PipelineProgram &program) {
  std::vector<StageValue> channels;
  for (const StageTransfer &transfer : program.transfers) {
    double bytes = 0;
    for (Value value : transfer.values)
      bytes += double(tensorBytes(value.getType()));
    StageValue channel{
        roleOf(program.fragments[transfer.producer]), {}, transferSeconds(mesh, bytes)};
    for (size_t user : transfer.users)
      channel.consumers.push_back(roleOf(program.fragments[user]));
    channels.push_back(channel);
  }
  for (auto [producer, consumer] : program.handovers)
    channels.push_back(
        {roleOf(program.fragments[producer]), {roleOf(program.fragments[consumer])}, 0});
  return channels;
}

std::vector<std::vector<int64_t>> dtc::scheduleFragments(const LinkedMesh &mesh,
                                                         const PipelineProgram &program,
                                                         const PipelineSchedule &schedule) {
  std::vector<StageValue> channels = channelsOf(mesh, program);
  PipelineSimulation simulation =
      simulateSchedule(schedule, stageSeconds(mesh, program, schedule.shape.stages()), channels);
  std::vector<ReceivePosting> postings = postReceives(schedule, channels, simulation);

  std::vector<std::vector<int64_t>> result;
  for (int64_t device = 0; device < schedule.shape.devices; ++device) {
    std::vector<BodyOp> body = bodyOf(program, device);
    std::vector<int64_t> &entries = result.emplace_back();
    std::map<std::pair<StagePass, int>, int64_t> fragmentAt; // places in the body
    for (auto [place, op] : llvm::enumerate(body))
      if (op.kind == BodyOp::Run) {
        UnitRole role = roleOf(program.fragments[op.index]);
        fragmentAt[{role.kind, role.stage}] = place;
      }
    ArrayRef<PipelineUnit> order = schedule.orders[device];
    // Receives by the place before which they start, and in the order of their sends.
    std::map<int, std::set<std::tuple<int, size_t, int64_t, int64_t>>> receives;
    for (auto [place, op] : llvm::enumerate(body))
      if (op.kind == BodyOp::Receive) {
        const ReceivePosting &posting = postings[op.index];
        for (auto [microbatch, at] : llvm::enumerate(posting.positions))
          receives[at].insert(
              {posting.sentAt[microbatch], op.index, int64_t(place), int64_t(microbatch)});
      }
    for (auto [position, unit] : llvm::enumerate(order)) {
      for (auto [sentAt, channel, place, microbatch] : receives[int(position)])
        entries.insert(entries.end(), {place, microbatch});
      for (auto [place, op] : llvm::enumerate(body)) {
        // While one message is on its way the next is made: a send must be over before the one
        // after that. It is by then, if ops take as long as estimated.
        if (op.kind == BodyOp::Send && unit.microbatch >= 2) {
          UnitRole maker = roleOf(program.fragments[program.transfers[op.index].producer]);
          if (maker.kind == unit.kind && maker.stage == unit.stage)
            entries.insert(entries.end(), {int64_t(place), int64_t(unit.microbatch - 2)});
        }
      }
      if (auto it = fragmentAt.find({unit.kind, unit.stage}); it != fragmentAt.end())
        entries.insert(entries.end(), {it->second, unit.microbatch});
    }
    for (auto [place, op] : llvm::enumerate(body))
      if (op.kind == BodyOp::Send)
        for (int microbatch = std::max(0, schedule.shape.microbatches - 2);
             microbatch < schedule.shape.microbatches; ++microbatch)
          entries.insert(entries.end(), {int64_t(place), microbatch});
  }
  return result;
}
