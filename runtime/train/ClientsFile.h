//===- ClientsFile.h - The clients of a run ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_CLIENTSFILE_H
#define DTC_RUNTIME_TRAIN_CLIENTSFILE_H

#include "runtime/data/ClientsSource.h"
#include "support/Error.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// Reads a file of clients (clients.proto), and finds the files of their data. There are at least
/// `replicas` of them. The error begins with the path; it names the line and the column of a fault
/// of the text, else the client.
Expected<std::vector<ClientData>> readClients(const std::string &path, size_t replicas);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_CLIENTSFILE_H
