// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-plan-memory

dist.mesh @mesh <>
exec.program @step on @mesh {
  %w = exec.buffer parameter : memref<16xf32>
  // expected-note@+1 {{the other one is here}}
  exec.state "w" = %w shape [16] file_shape [16] sharding <@mesh, [{}]> : memref<16xf32>
}
exec.program @evaluate on @mesh entry "evaluate" {
  %w = exec.buffer parameter : memref<16xbf16>
  // expected-error@+1 {{the state 'w' is 'memref<16xbf16>'}}
  exec.state "w" = %w shape [16] file_shape [16] sharding <@mesh, [{}]> : memref<16xbf16>
}

// -----

dist.mesh @mesh <"tp"=2>
exec.program @step on @mesh {
  %w = exec.buffer parameter : memref<8x16xf32>
  // expected-note@+1 {{the other one is here}}
  exec.state "w" = %w shape [16, 16] file_shape [16, 16] sharding <@mesh, [{"tp"}, {}]> : memref<8x16xf32>
}
exec.program @decode on @mesh entry "decode" {
  %w = exec.buffer parameter : memref<16x8xf32>
  // expected-error@+1 {{in the entry point "decode", and 'memref<8x16xf32>'}}
  exec.state "w" = %w shape [16, 16] file_shape [16, 16] sharding <@mesh, [{}, {"tp"}]> : memref<16x8xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline>
exec.program @step.0 on @mesh {
}
exec.program @step.1 on @mesh {
}
// expected-error@+1 {{the entry point 'decode' has 1 programs, expected 2, as the plan has}}
exec.program @decode on @mesh entry "decode" {
}
