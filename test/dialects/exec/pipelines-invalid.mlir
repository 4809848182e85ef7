// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.transfer' op moves no tensor [transfer-c1]}}
  "exec.transfer"() <{sym_name = "t", kind = #exec<transfer_kind send_to>, peer = 1 : i64, channel = 0 : i64}> : () -> ()
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.transfer' op has the peer -1 and the channel 0, expected at least 0 of each [transfer-c2]}}
  exec.transfer @t send_to -1 channel 0 (%a) : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.transfer' op has the peer 0 and the channel -3, expected at least 0 of each [transfer-c2]}}
  exec.transfer @t send_to 0 channel -3 (%a) : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.transfer' op has the numbers [1, 2] for 1 buffers, expected one of at least 0 for each [transfer-c3]}}
  exec.transfer @t send_to 0 channel 0 (%a) : memref<4x8xf32> as [1, 2]
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+2 {{failed to parse Exec_TransferKindAttr}}
  // expected-error@+1 {{found "hands_to", expected one of send_to, receive_from}}
  exec.transfer @t hands_to 1 channel 0 (%a) : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-note@+1 {{see existing symbol definition here}}
  exec.transfer @t send_to 1 channel 0 (%a) : memref<4x8xf32>
  // expected-error@+1 {{redefinition of symbol named 't'}}
  exec.transfer @t send_to 1 channel 1 (%a) : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

// expected-error@+1 {{'exec.transfer' op expects parent op 'exec.program'}}
"exec.transfer"() <{sym_name = "t", kind = #exec<transfer_kind send_to>, peer = 1 : i64, channel = 0 : i64}> : () -> ()

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

// expected-error@+1 {{'exec.start' op expects parent op 'exec.task'}}
exec.start @t

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.finish' op cannot stand in an exec.program [program-c2]}}
  "exec.finish"() <{transfer = @t}> : () -> ()
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.start' op names @t, which is not an exec.transfer of this program [start-c1]}}
    exec.start @t
  }
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.finish' op names @t, which is not an exec.transfer of this program [finish-c1]}}
    exec.finish @t
  }
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @other on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.transfer @elsewhere send_to 1 channel 0 (%a) : memref<4x8xf32>
}
exec.program @p on @mesh {
  exec.task @t {
    // expected-error@+1 {{'exec.start' op names @elsewhere, which is not an exec.transfer of this program [start-c1]}}
    exec.start @elsewhere
  }
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.transfer @t send_to 1 channel 0 (%a) : memref<4x8xf32>
  exec.task @u {
    // expected-error@+1 {{'exec.transfer' op cannot stand in an exec.task [task-c1]}}
    exec.transfer @t send_to 1 channel 0 (%a) : memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.transfer @t send_to 1 channel 0 (%a) : memref<4x8xf32>
  // expected-error@+1 {{'exec.run' op runs @t, which is not an exec.task of this program [run-c1]}}
  exec.run @t
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.buffer' op has -1 slots, expected at least 0 [buffer-c3]}}
  %b = exec.buffer activation slots -1 : memref<4xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op maps a microbatch to slot 3, expected one of its 3 slots, which count from 0 [buffer-c4]}}
  %b = exec.buffer activation slots 3 map [0, 3] : memref<4xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op maps a microbatch to slot -1, expected one of its 3 slots, which count from 0 [buffer-c4]}}
  %b = exec.buffer activation slots 3 map [-1, 0] : memref<4xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op maps a microbatch to slot 0, expected one of its 0 slots, which count from 0 [buffer-c4]}}
  %b = exec.buffer activation slots 0 map [0, 0] : memref<4xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op has a map of 3 slots, expected 2, one for each microbatch [buffer-c5]}}
  %b = exec.buffer activation slots 3 map [0, 1, 2] : memref<4xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+2 {{failed to parse}}
  // expected-error@+1 {{found "sideways", expected one of forward, backward, weight}}
  exec.task @t pass sideways 0 {
  }
}
