//===- Passes.td - Passes about programs of devices --------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_PASSES_TD
#define DTC_COMPILER_PASSES_EXEC_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToExecPass : Pass<"dtc-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "Lower tensors to kernels on buffers";
  let description = [{
    Makes one `exec.program` from the function of the local view: a buffer for each value, in place where the kernel can
    and the operand is not needed any more, a kernel or collective for each op, and tasks before, in and after the
    microbatch loop. Broadcasts that are read only by kernels which can repeat an operand themselves are folded into
    these.

    ```mlir
    // Before
    dist.mesh @mesh <>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>,
                                       dist.sharding = #dist.sharding<@mesh, [{} ]>})
        -> (tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>,
                           dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %0 = dtc.exp %x : tensor<4xf32>
      %1 = dtc.neg %0 : tensor<4xf32>
      %2 = dtc.exp %1 : tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <>
    exec.program @loss on @mesh {
      %x = exec.buffer input : memref<4xf32>
      exec.input "data" "x" = %x shape [4] sharding <@mesh, [{} ]> : memref<4xf32>
      %0 = exec.buffer activation : memref<4xf32>
      %1 = exec.reuse %0 : memref<4xf32>
      %2 = exec.buffer output : memref<4xf32>
      exec.output "y" = %2 shape [4] sharding <@mesh, [{} ]> : memref<4xf32>
      exec.task @step seconds 6.4e-11 {
        exec.kernel "exp"(%x) to(%0) {} {flops = 4.0} : (memref<4xf32>) -> memref<4xf32>
        exec.kernel "neg"(%0) to(%1) {} {flops = 4.0} : (memref<4xf32>) -> memref<4xf32>
        exec.kernel "exp"(%1) to(%2) {} {flops = 4.0} : (memref<4xf32>) -> memref<4xf32>
      }
      exec.run @step
    }
    ```
  }];
  let options = [
    Option<"keepSums", "keep-sums", "bool", "false",
      "add up the results of a loop over one microbatch too, for gradient accumulation over several batches">,
  ];
  let dependentDialects = ["::dtc::exec::ExecDialect", "::mlir::memref::MemRefDialect"];
}

def OverlapCollectivesPass : Pass<"dtc-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Overlap collectives with kernels";
  let description = [{
    A collective becomes asynchronous if some kernel comes before the first instruction that needs its outputs or
    overwrites its inputs: it starts where it was, and runs at the same time as the instructions after it. An
    `exec.wait` comes before the first instruction that must not run before its end, or at the end of the task. Of
    collectives whose inputs are memory that could be used again, such as gradients that are scattered, at most two are
    running or queued: before a third starts, the first is waited for.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    exec.program @train_step on @mesh {
      %0 = exec.buffer activation : memref<4xf32>
      %1 = exec.buffer activation : memref<8xf32>
      %2 = exec.buffer activation : memref<4xf32>
      exec.task @step {
        exec.collective all_gather over ["dp"](%0) to(%1) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
        exec.kernel "exp"(%0) to(%2) {} : (memref<4xf32>) -> memref<4xf32>
        exec.kernel "neg"(%1) to(%1) {} : (memref<8xf32>) -> memref<8xf32>
      }
      exec.run @step
    }
    // After
    dist.mesh @mesh <"dp"=2>
    exec.program @train_step on @mesh {
      %0 = exec.buffer activation : memref<4xf32>
      %1 = exec.buffer activation : memref<8xf32>
      %2 = exec.buffer activation : memref<4xf32>
      exec.task @step {
        %t = exec.collective all_gather over ["dp"](%0) to(%1) dims [0] split_dims [0]
          : (memref<4xf32>) -> memref<8xf32> async !exec.token
        exec.kernel "exp"(%0) to(%2) {} : (memref<4xf32>) -> memref<4xf32>
        exec.wait %t
        exec.kernel "neg"(%1) to(%1) {} : (memref<8xf32>) -> memref<8xf32>
      }
      exec.run @step
    }
    ```
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

def PlanMemoryPass : Pass<"dtc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Assign every buffer an offset in the arena";
  let description = [{
    Live ranges follow from the order of the tasks; a buffer that a repeated task reads from outside is live during all
    its executions. A buffer that each microbatch has for itself gets as many slots as there are microbatches at once
    between its first use and its last; buffers of several stages of a device share slots where that saves any. The size
    of the arena and the lower bound go to the program's attributes.

    ```mlir
    // Before
    dist.mesh @mesh <>
    exec.program @train_step on @mesh {
      %0 = exec.buffer activation : memref<16xf32>
      %1 = exec.buffer activation : memref<f32>
      %2 = exec.buffer activation : memref<16xf32>
      exec.task @step {
        exec.kernel "fill"() to(%0) {} : () -> memref<16xf32>
        exec.kernel "reduce"(%0) to(%1) {} : (memref<16xf32>) -> memref<f32>
        exec.kernel "broadcast"(%1) to(%2) {} : (memref<f32>) -> memref<16xf32>
      }
      exec.run @step
    }
    // After
    dist.mesh @mesh <>
    exec.program @train_step on @mesh
        attributes {arena_bytes = 128, arena_lower_bound = 128, memory_by_kind = {activation = 128}} {
      %0 = exec.buffer activation at 0 : memref<16xf32>
      %1 = exec.buffer activation at 64 : memref<f32>
      %2 = exec.buffer activation at 0 : memref<16xf32>
      exec.task @step {
        exec.kernel "fill"() to(%0) {} : () -> memref<16xf32>
        exec.kernel "reduce"(%0) to(%1) {} : (memref<16xf32>) -> memref<f32>
        exec.kernel "broadcast"(%1) to(%2) {} : (memref<f32>) -> memref<16xf32>
      }
      exec.run @step
    }
    ```
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

#endif // DTC_COMPILER_PASSES_EXEC_PASSES_TD
