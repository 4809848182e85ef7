//===- VirtualDevices.h - The cluster of a search without a cluster -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PYTHON_NATIVE_VIRTUALDEVICES_H
#define DTC_PYTHON_NATIVE_VIRTUALDEVICES_H

namespace dtc::python {

/// The text of examples/clusters/virtual-cpu.textproto, which a wheel does not have as a file.
extern const char *const kVirtualDevices;

} // namespace dtc::python

#endif // DTC_PYTHON_NATIVE_VIRTUALDEVICES_H
