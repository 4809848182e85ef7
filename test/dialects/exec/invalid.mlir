// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// expected-error@+1 {{'exec.program' op is on @other, which is not a dist.mesh [program-c1]}}
exec.program @p on @other {
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// expected-error@+1 {{'exec.buffer' op expects parent op 'exec.program'}}
%a = exec.buffer activation : memref<4x8xf32>

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// expected-error@+1 {{'exec.run' op expects parent op 'exec.program'}}
exec.run @t

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// expected-error@+1 {{'exec.task' op expects parent op 'exec.program'}}
exec.task @t {
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.kernel' op cannot stand in an exec.program [program-c2]}}
  exec.kernel "exp"(%a) to (%a) {} : (memref<4x8xf32>) -> memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'func.func' op cannot stand in an exec.program [program-c2]}}
  func.func private @f()
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op repeats the name 'w' [program-c3]}}
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.input "data" "x" = %a shape [4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
  // expected-error@+1 {{'exec.input' op repeats the name 'x' [program-c3]}}
  exec.input "data" "x" = %a shape [4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// A state, an input and an output may have one name.
exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.output "y" = %a shape [4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
  exec.input "data" "y" = %a shape [4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
  // expected-error@+1 {{'exec.output' op repeats the name 'y' [program-c3]}}
  exec.output "y" = %a shape [4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-note@+1 {{see existing symbol definition here}}
  exec.task @t {
  }
  // expected-error@+1 {{redefinition of symbol named 't'}}
  exec.task @t {
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// expected-error@+1 {{'exec.program' op requires one region}}
"exec.program"() <{mesh = @mesh, sym_name = "p"}> : () -> ()

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// expected-error@+1 {{'exec.program' op expects region #0 to have 0 or 1 blocks}}
"exec.program"() <{mesh = @mesh, sym_name = "p"}> ({
^bb0:
^bb1:
}) : () -> ()

// -----

dist.mesh @mesh <>

// A program has all its buffers in it.
%outside = memref.alloc() : memref<4xf32>
// expected-note@+1 {{required by region isolation constraints}}
exec.program @p on @mesh {
  exec.task @t {
    // expected-error@+1 {{'exec.kernel' op using value defined outside the region}}
    exec.kernel "exp"(%outside) to (%outside) {} : (memref<4xf32>) -> memref<4xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  exec.task @t {
    // expected-error@+1 {{'exec.buffer' op cannot stand in an exec.task [task-c1]}}
    %a = exec.buffer activation : memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op has type 'memref<?xf32>', expected a static shape and the row-major layout [buffer-c1]}}
  %a = exec.buffer activation : memref<?xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op has type 'memref<4x8xf32, strided<[1, 4]>>', expected a static shape and the row-major layout [buffer-c1]}}
  %a = exec.buffer activation : memref<4x8xf32, strided<[1, 4]>>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op result #0 must be memref of}}
  %a = exec.buffer activation : memref<4xi64>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op is at 32, expected a multiple of 64 [buffer-c2]}}
  %a = exec.buffer activation at 32 : memref<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.buffer' op is at -64, expected a multiple of 64 [buffer-c2]}}
  %a = exec.buffer activation at -64 : memref<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.view' op views 'memref<4x8xf32>' as 'memref<16xf32>', expected as many elements of the same type in the same memory [view-c2]}}
  %v = exec.view %a : memref<4x8xf32> to memref<16xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.view' op views 'memref<4x8xf32>' as 'memref<32xi32>', expected as many elements of the same type in the same memory [view-c2]}}
  %v = exec.view %a : memref<4x8xf32> to memref<32xi32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.view' op has type 'memref<?xf32>', expected a static shape and the row-major layout [view-c1]}}
  %v = exec.view %a : memref<4x8xf32> to memref<?xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.view' op has type 'memref<8x4xf32, strided<[1, 8]>>', expected a static shape and the row-major layout [view-c1]}}
  %v = exec.view %a : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op has shape [4, 8] and file shape [31], expected as many elements [state-c2]}}
  exec.state "w" = %a shape [4, 8] file_shape [31] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op has a buffer of type 'memref<4x8xf32>' for a shard of a tensor of shape [4, 8] with sharding #dist.sharding<@mesh, [{"tp"}, {}]> [state-c4]}}
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{"tp"}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op has a buffer of type 'memref<4x8xf32>' for a shard of a tensor of shape [9, 8] with sharding #dist.sharding<@mesh, [{"tp"}, {}]> [state-c4]}}
  exec.state "w" = %a shape [9, 8] file_shape [72] sharding <@mesh, [{"tp"}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op has the shape [-4, -8], expected sizes that are not negative [state-c3]}}
  exec.state "w" = %a shape [-4, -8] file_shape [32] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op the value has rank 2, but its sharding #dist.sharding<@mesh, [{}]> has 1 dimensions [sharding-c4]}}
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op the value is sharded over "pp", which is not an axis of @mesh [sharding-c5]}}
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{"pp"}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op the value has a sharding on @other, which is not a dist.mesh; declare it in the module [sharding-c2]}}
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@other, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.input' op has the role 'weights', expected data, learning_rates, first_step or batches [input-c1]}}
  exec.input "weights" "x" = %a shape [4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.input' op has a buffer of type 'memref<4x8xf32>' for a shard of a tensor of shape [8, 8] with sharding #dist.sharding<@mesh, [{}, {}]> [input-c3]}}
  exec.input "data" "x" = %a shape [8, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.output' op has a buffer of type 'memref<4x8xf32>' for a shard of a tensor of shape [8, 8] with sharding #dist.sharding<@mesh, [{}, {}]> [output-c2]}}
  exec.output "y" = %a shape [8, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.output' op must be zero and is no metric [output-c3]}}
  exec.output "y" = %a shape [4, 8] sharding <@mesh, [{}, {}]> {must_be_zero} : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4xi32>
  // expected-error@+1 {{'exec.output' op must be zero and is no metric of floats [output-c3]}}
  exec.output "y" = %a shape [4] sharding <@mesh, [{}]> {metric, must_be_zero} : memref<4xi32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.kernel' op has an empty kernel name [kernel-c1]}}
    exec.kernel ""(%a) to (%a) {} : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.kernel' op writes no buffer [kernel-c2]}}
    exec.kernel "exp"(%a) to () {} : (memref<4x8xf32>) -> ()
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op all_reduce needs a reduction [collective-c1]}}
    exec.collective all_reduce over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op reduce_scatter needs a reduction [collective-c1]}}
    exec.collective reduce_scatter over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op all_gather has no use for a reduction [collective-c1]}}
    exec.collective all_gather reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op all_to_all has no use for a reduction [collective-c1]}}
    exec.collective all_to_all reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op names a dimension that 'memref<4x8xf32>' lacks [collective-c5]}}
    exec.collective all_gather over ["dp"] (%a) to (%a) dims [2] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  exec.task @t {
    // expected-error@+1 {{'exec.collective' op names a dimension that 'memref<4x8xf32>' lacks [collective-c5]}}
    exec.collective all_to_all over ["dp"] (%a) to (%a) dims [0] split_dims [-1] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  // expected-error@+1 {{'exec.run' op runs @t, which is not an exec.task of this program [run-c1]}}
  exec.run @t
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  exec.task @t {
  }
  // expected-error@+1 {{'exec.run' op has microbatch -1, expected at least 0 [run-c3]}}
  exec.run @t microbatch -1
}

// -----

dist.mesh @mesh <"micro"=2 temporal>

exec.program @p on @mesh {
  exec.task @t {
  }
  exec.run @t in_loop
  exec.run @t
  // expected-error@+1 {{'exec.run' op is in_loop after a run that is not, expected one loop [run-c2]}}
  exec.run @t microbatch 1 in_loop
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer parameter : memref<4x8xf32>
  // expected-error@+1 {{'exec.update' op is of 'w', which is not an exec.state of this program [update-c1]}}
  exec.update "w" = %a : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer parameter : memref<4x8xf32>
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
  %b = exec.buffer parameter : memref<4x8xf32>
  // expected-error@+1 {{'exec.update' op is not in the buffer of 'w', expected a reuse of it [update-c3]}}
  exec.update "w" = %b : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer parameter : memref<4x8xf32>
  exec.state "w" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
  %b = exec.reuse %a : memref<4x8xf32>
  exec.update "w" = %b : memref<4x8xf32>
  // expected-error@+1 {{'exec.update' op is a second one of 'w', expected one at most [update-c2]}}
  exec.update "w" = %b : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.input' op has the shape [4, -8], expected sizes that are not negative [input-c2]}}
  exec.input "data" "x" = %a shape [4, -8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.output' op has the shape [-4, 8], expected sizes that are not negative [output-c1]}}
  exec.output "y" = %a shape [-4, 8] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  // expected-error@+1 {{'exec.state' op is the step state 'speed', expected applied_steps, skipped_steps, loss_scale, good_steps, growth_interval or random_key [state-c1]}}
  exec.state "s" step_state "speed" = %a shape [4, 8] file_shape [32] sharding <@mesh, [{}, {}]> : memref<4x8xf32>
}
