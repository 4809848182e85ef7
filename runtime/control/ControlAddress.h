//===- ControlAddress.h - Network address of a process --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CONTROL_CONTROLADDRESS_H
#define DTC_RUNTIME_CONTROL_CONTROLADDRESS_H

#include "support/Error.h"

#include <string>

namespace dtc::runtime {

/// The numeric address of this host that others reach: that of its name, or of the route to
/// elsewhere, or of the first interface that is up. `network` chooses another: an interface
/// ("eth0") or a network ("10.1.0.0/16", "fd00::/8"). An error names the addresses that exist.
Expected<std::string> addressOfHost(const std::string &network);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CONTROL_CONTROLADDRESS_H
