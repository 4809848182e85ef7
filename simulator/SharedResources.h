//===- SharedResources.h - Shared resources of a simulation ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_SHAREDRESOURCES_H
#define DTC_SIMULATOR_SHAREDRESOURCES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtc {

/// Flows of work through resources that they share. A flow takes a number of seconds when it is
/// alone; a resource that is asked for more than it has gives each flow its part, and a flow goes
/// as fast as the scarcest of its resources lets it.
class SharedResources {
public:
  using Resource = uint32_t;
  using Flow = uint32_t;
  static constexpr size_t mostUses = 4;

  /// The demand of a flow on a resource.
  struct Use {
    Resource resource = 0;
    double demand = 1;
  };
  /// The uses of a flow.
  struct Uses {
    std::array<Use, mostUses> uses;
    size_t count = 0;

    void add(Resource resource, double demand = 1) { uses[count++] = {resource, demand}; }
  };

  /// A flow's end, as it is known now: it is to be asked for again, by finish(), at that time.
  struct End {
    double time = 0;
    Flow flow = 0;
    uint32_t version = 0;
  };

  Resource addResource(double capacity);
  /// Starts a flow of that many seconds; a `factor` below 1 slows it down. Adds to `ends` its end
  /// and those of others that changed by it.
  Flow start(double now, double seconds, const Uses &uses, double factor, std::vector<End> &ends);
  /// Whether the end holds still; then the flow is over, and `ends` gets those that change by it.
  bool finish(const End &end, std::vector<End> &ends);
  /// Changes the factor that slows a flow down.
  void setFactor(double now, Flow flow, double factor, std::vector<End> &ends);

private:
  struct State {
    double remaining = 0, updated = 0, rate = 0, factor = 1;
    uint32_t version = 0;
    bool isActive = false;
    Uses uses;
  };
  struct Shared {
    double capacity = 1, demand = 0;
    std::vector<Flow> flows;
  };

  /// Counts the work that a flow has done, and sets its rate anew.
  void update(double now, Flow flow, std::vector<End> &ends);
  void updateOthers(double now, const Uses &uses, Flow except, std::vector<End> &ends);

  std::vector<State> flows;
  std::vector<Flow> unused;
  std::vector<Shared> resources;
};

} // namespace dtc

#endif // DTC_SIMULATOR_SHAREDRESOURCES_H
