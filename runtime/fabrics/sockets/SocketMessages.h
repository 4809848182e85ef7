//===- SocketMessages.h - Messages between processes over TCP --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_SOCKETS_SOCKETMESSAGES_H
#define DTC_RUNTIME_FABRICS_SOCKETS_SOCKETMESSAGES_H

#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/sockets/Rendezvous.h"

#include <memory>

namespace dtc::runtime {

/// A network of all processes, which open it together, of the connections that they have to each
/// other. A thread moves messages while nobody waits for them. Its end waits for the other
/// processes, unless it was aborted.
Expected<std::shared_ptr<Messages>> openSocketMessages(int64_t process, Rendezvous met);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_SOCKETS_SOCKETMESSAGES_H
