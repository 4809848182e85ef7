// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    %t = exec.collective all_gather over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32> async !exec.token
    // expected-error@+1 {{'exec.wait' op waits for an instruction that is waited for elsewhere too [wait-c1]}}
    exec.wait %t
    exec.wait %t
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.wait' op cannot stand in an exec.program [program-c2]}}
  exec.wait %t
  exec.task @t {
    %t = exec.collective all_gather over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32> async !exec.token
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    %t = exec.collective all_gather over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32> async !exec.token
  }
  exec.task @other {
    // expected-error@+1 {{use of undeclared SSA value name}}
    exec.wait %t
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.kernel' op has a token and no buffer in the memory of the host [kernel-c4]}}
    %t = exec.kernel "exp"(%a) to(%a) {} : (memref<4x8xf32>) -> memref<4x8xf32> async !exec.token
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  %h = exec.buffer activation : memref<4x8xf32, "host">
  exec.task @t {
    %t = exec.kernel "copy"(%a) to(%h) {} : (memref<4x8xf32>) -> memref<4x8xf32, "host"> async !exec.token
    // expected-error@+1 {{'exec.kernel' op comes after 1 tokens and has none itself [kernel-c5]}}
    exec.kernel "exp"(%h) to(%h) {} after(%t) : (memref<4x8xf32, "host">) -> memref<4x8xf32, "host">
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  %h = exec.buffer activation : memref<4x8xf32, "host">
  exec.task @t {
    %t = exec.kernel "copy"(%h) to(%a) {} : (memref<4x8xf32, "host">) -> memref<4x8xf32> async !exec.token
    // expected-error@+1 {{'exec.collective' op comes after 1 tokens and has none itself [collective-c7]}}
    exec.collective all_reduce reducing sum over ["dp"](%a) to(%a) dims [0] split_dims [0] after(%t) : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}
