//===- SimulationTrace.h - Simulated steps as traces ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_SIMULATIONTRACE_H
#define DTC_REPORT_SIMULATIONTRACE_H

#include "simulator/Simulation.h"

#include <string>

namespace dtc {

/// A simulated step in the form that dtc-run writes with --trace (see ChromeTrace.h): a process for
/// each coordinate on the pipeline axis, with the threads "compute" (tasks), "collectives" and
/// "transfers", which an arrow leads from sender to receiver. The simulation has kept its
/// collectives.
std::string simulationToTrace(const plan::Plan &plan, const Simulation &simulation);

} // namespace dtc

#endif // DTC_REPORT_SIMULATIONTRACE_H
