// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"dp"=2>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op is in the memory space "disk", expected "host" or none [buffer-c6]}}
  %a = exec.buffer activation : memref<4xf32, "disk">
}

// -----

dist.mesh @mesh <"dp"=2>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4xf32, "host">
  // expected-error@+1 {{expected as many elements of the same type in the same memory [view-c2]}}
  %b = exec.view %a : memref<4xf32, "host"> to memref<2x2xf32>
}

// -----

dist.mesh @mesh <"dp"=2>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %h = exec.buffer activation : memref<4xf32, "host">
  exec.task @t {
    // expected-error@+1 {{'exec.kernel' op has buffers in the memory of the device and in that of the host, expected all in one [kernel-c3]}}
    exec.kernel "add"(%a, %h) to(%h) {} : (memref<4xf32>, memref<4xf32, "host">) -> memref<4xf32, "host">
  }
}

// -----

dist.mesh @mesh <"dp"=2>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %h = exec.buffer activation : memref<4xf32, "host">
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op has a buffer in the memory of the host [collective-c6]}}
    exec.collective all_reduce reducing sum over ["dp"](%h) to(%a) dims [0] split_dims [0] : (memref<4xf32, "host">) -> memref<4xf32>
  }
}
