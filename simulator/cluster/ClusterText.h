//===- ClusterText.h - The two forms of cluster files ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_CLUSTERTEXT_H
#define DTC_SIMULATOR_CLUSTER_CLUSTERTEXT_H

#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <string>

namespace dtc {

/// Reads a message of any kind in Protobuf's text format. The error begins with the line and the
/// column of the first fault; without a place it says that the text is no `what`.
MaybeError parseMessageText(const std::string &text, const std::string &what,
                            google::protobuf::Message &message);

/// The cluster of a text in Protobuf's text format; its fields are not checked. The error begins
/// with the line and the column of the first fault.
Expected<cluster::Cluster> parseClusterText(const std::string &text);

/// The same of a text in JSON: the form that Protobuf has for the schema, where a field may be
/// given once, lists are lists, and a field that the schema does not have is an error.
Expected<cluster::Cluster> parseClusterJson(const std::string &text);

/// The message for an unknown field: "a Device has no field "speed"; ...".
std::string unknownField(const google::protobuf::Descriptor &message, const std::string &field);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_CLUSTERTEXT_H
