// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    %t = exec.collective all_gather over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32> async !exec.token
    // expected-error@+1 {{'exec.wait' op waits for a collective that is waited for elsewhere too [wait-c1]}}
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
