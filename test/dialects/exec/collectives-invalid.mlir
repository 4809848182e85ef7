// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op permute needs source axes [collective-c2]}}
    exec.collective permute over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op permute has no use for a reduction [collective-c1]}}
    exec.collective permute reducing sum over ["dp"] from ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op all_gather has no use for source axes [collective-c2]}}
    exec.collective all_gather over ["dp"] from ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op all_gather has no use for a shift [collective-c2]}}
    exec.collective all_gather over ["dp"] (%a) to (%a) dims [0] split_dims [0] {shift = 1 : i64} : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op moves no tensor [collective-c3]}}
    exec.collective all_gather over ["dp"] () to () dims [] split_dims [] : () -> ()
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op has 2 inputs, 1 outputs, 2 dims and 2 split dims, expected as many of each [collective-c4]}}
    exec.collective all_gather over ["dp"] (%a, %a) to (%a) dims [0, 0] split_dims [0, 0] : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op has 1 inputs, 2 outputs, 1 dims and 1 split dims, expected as many of each [collective-c4]}}
    exec.collective all_gather over ["dp"] (%a) to (%a, %a) dims [0] split_dims [0] : (memref<4x8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>)
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op has 2 inputs, 2 outputs, 1 dims and 2 split dims, expected as many of each [collective-c4]}}
    exec.collective all_gather over ["dp"] (%a, %a) to (%a, %a) dims [0] split_dims [0, 0] : (memref<4x8xf32>, memref<4x8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>)
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op has 2 inputs, 2 outputs, 2 dims and 3 split dims, expected as many of each [collective-c4]}}
    exec.collective all_reduce reducing sum over ["dp"] (%a, %a) to (%a, %a) dims [0, 0] split_dims [0, 0, 0] : (memref<4x8xf32>, memref<4x8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>)
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op has 2 inputs, 2 outputs, 2 dims and 2 split dims, expected as many of each [collective-c4]}}
    exec.collective all_gather over ["dp"] (%a, %a) to (%a, %a) dims [0, 0] split_dims [0, 0] {reasons = [{}]} : (memref<4x8xf32>, memref<4x8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>)
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op names a dimension that 'memref<4x8xf32>' lacks [collective-c5]}}
    exec.collective all_gather over ["dp"] (%a, %a) to (%a, %a) dims [0, 2] split_dims [0, 0] : (memref<4x8xf32>, memref<4x8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>)
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.wait' op operand #0 must be token of an asynchronous instruction, but got 'memref<4x8xf32>'}}
    "exec.wait"(%a) : (memref<4x8xf32>) -> ()
  }
}
