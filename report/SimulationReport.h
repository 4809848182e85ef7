//===- SimulationReport.h - Simulations as text and as JSON ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_SIMULATIONREPORT_H
#define DTC_REPORT_SIMULATIONREPORT_H

#include "simulator/Simulation.h"

#include <string>

namespace dtc {

/// Tables for the console.
std::string formatSimulation(const Simulation &simulation);

/// The same as one JSON object.
std::string simulationToJson(const Simulation &simulation);

/// "product", "attention", "other", "optimizer", "launch".
const char *name(KernelClass kernel);

} // namespace dtc

#endif // DTC_REPORT_SIMULATIONREPORT_H
