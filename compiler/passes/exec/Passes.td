//===- Passes.td - Passes about programs of devices --------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_PASSES_TD
#define DTC_COMPILER_PASSES_EXEC_PASSES_TD

include "mlir/Pass/PassBase.td"

def OffloadStatesPass : Pass<"dtc-offload-states", "::mlir::ModuleOp"> {
  let summary = "Keep optimizer states in the memory of the host, whose cores update them";
  let description = [{
    Marks the states that the optimizer updates, such as moments and master weights, as values in the memory of the host
    (`dist.host`), with the op that updates them. A `dist.copy` brings the gradient to the host as soon as it is
    complete, and the new parameter back. A parameter without master weights stays where it is and goes to the host with
    its gradient.

    With a `fraction` below 1, whole parameters are taken, those with the most bytes of such states first and equals in
    the order of the arguments, until their states have at least that fraction of the bytes of all of the function.

    Updates on the host come before those on the device, so that both go on at once.

    Source: Ren et al., "ZeRO-Offload" (arXiv:2101.06840), section 4.

    ```mlir
    // Before
    dist.mesh @mesh <>
    func.func @train_step(%p: tensor<4xf32> {dtc.param = "w"},
                          %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w"},
                          %x: tensor<4xf32> {dtc.input = "x"}, %lr: tensor<f32>, %scale: tensor<f32>,
                          %apply: tensor<i1>)
        -> (tensor<4xf32> {dtc.updates = 0 : i64}, tensor<4xf32> {dtc.updates = 1 : i64}) {
      %g = dtc.mul %p, %x : tensor<4xf32>
      %new_p, %new_m = dtc.sgd %p, %g, %m, %lr, %scale, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      return %new_p, %new_m : tensor<4xf32>, tensor<4xf32>
    }
    // After
    dist.mesh @mesh <>
    func.func @train_step(%p: tensor<4xf32> {dtc.param = "w"},
                          %m: tensor<4xf32> {dist.host, dtc.state = "momentum_buffer", dtc.state_of = "w"},
                          %x: tensor<4xf32> {dtc.input = "x"}, %lr: tensor<f32>, %scale: tensor<f32>,
                          %apply: tensor<i1>)
        -> (tensor<4xf32> {dtc.updates = 0 : i64}, tensor<4xf32> {dtc.updates = 1 : i64}) {
      %0 = dist.copy %apply to "host" : tensor<i1>
      %1 = dist.copy %scale to "host" : tensor<f32>
      %2 = dist.copy %lr to "host" : tensor<f32>
      %g = dtc.mul %p, %x : tensor<4xf32>
      %3 = dist.copy %g to "host" : tensor<4xf32>
      %4 = dist.copy %p to "host" : tensor<4xf32>
      %new_p, %new_m = dtc.sgd %4, %3, %m, %2, %1, %0 {dist.host, momentum = 0.9 : f64, weight_decay = 0.0 : f64}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      %5 = dist.copy %new_p to "device" : tensor<4xf32>
      return %5, %new_m : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"fraction", "fraction", "double", "1.0",
      "the part of the bytes of states that the host has, above 0 and at most 1">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

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
  let summary = "Overlap collectives and the work of the host with kernels";
  let description = [{
    A collective becomes asynchronous if some kernel comes before the first instruction that needs its outputs or
    overwrites its inputs: it starts where it was, and runs at the same time as the instructions after it. An
    `exec.wait` comes before the first instruction that must not run before its end, or at the end of the task. Of
    collectives whose inputs are memory that could be used again, such as gradients that are scattered, at most two are
    running or queued: before a third starts, the first is waited for.

    A copy to or from the memory of the host and a kernel there become asynchronous too. Where one of them, or an
    asynchronous collective, uses what another one makes, it comes after that one's token, and the device does not wait.

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
    of the arena and the lower bound go to the program's attributes. The buffers of an entry point that sends a fragment of an
    outer step, which runs beside the others, come after the arenas of these.

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
