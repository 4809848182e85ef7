// RUN: dtc-opt %S/plan-memory-slots-chunks.mlir --dtc-offload-activations --dtc-schedule-pipeline="schedule=zb-v chunks=2" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s

// Values of stages 0, 1 and 2 wait on the host, the one of the last stage on the device. Stages of a device share slots in
// one memory: those of device 0, which has stages 0 and 3, share none, those of device 1 share four.
// CHECK-LABEL: exec.program @step.0
// CHECK: exec.buffer activation at {{[0-9]+}} slots 3 : memref<4x2xf32, "host">
// CHECK: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4x2xf32>
// CHECK-NOT: map
// CHECK: exec.task
// CHECK-LABEL: exec.program @step.1
// CHECK: exec.buffer activation at [[AT:[0-9]+]] slots 4 map [0, 2, 0, 1, 3, 2] : memref<4x2xf32, "host">
// CHECK: exec.buffer activation at [[AT]] slots 4 map [1, 3, 2, 0, 1, 3] : memref<4x2xf32, "host">
// CHECK: exec.task
