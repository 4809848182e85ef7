//===- ExecOps.td - Ops of the exec dialect --------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_EXEC_EXECOPS_TD
#define DTC_DIALECTS_EXEC_EXECOPS_TD

include "dialects/dist/DistDialect.td"
include "dialects/exec/ExecDialect.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_Buffer : MemRefOf<[F32, F64, BF16, F16, I32, I1, F8E4M3FN, F8E5M2]>;

def Exec_ProgramOp : Exec_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, NoRegionArguments, NoTerminator,
                                         SingleBlock]> {
  let summary = "The program of the devices with one pipeline coordinate";
  let description = [{
    Holds buffers, states, inputs, outputs, transfers, tasks and runs, in that order. `arena_bytes` is the size of the arena that
    the offsets of its buffers refer to, `arena_lower_bound` the most bytes that are live at one moment, and
    `memory_by_kind` those bytes by kind of buffer; all three are there once memory is planned. `host_arena_bytes` and
    `host_memory_by_kind` are the same of the buffers in the memory of the host, where there are any. The programs of a
    pipeline are in the order of their coordinates on the pipeline axis; `pipeline` is the function's `dist.pipeline`.

    A plan may have further entry points, which work on the same states: their programs, as many as those without an
    `entry`, have its name. Once memory is planned, all programs of a coordinate have the same states at the same offsets.

    Constraints:

    - [program-c1] `mesh` is the name of a `dist.mesh`.
    - [program-c2] The region holds buffers, views, reuses, states, updates, inputs, outputs, transfers, tasks and runs
      only.
    - [program-c3] No two states, no two inputs and no two outputs have the same name.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh, OptionalAttr<I64Attr>:$arena_bytes,
                       OptionalAttr<I64Attr>:$arena_lower_bound, OptionalAttr<DictionaryAttr>:$memory_by_kind,
                       OptionalAttr<DictionaryAttr>:$pipeline, OptionalAttr<StrAttr>:$entry,
                       OptionalAttr<I64Attr>:$host_arena_bytes, OptionalAttr<DictionaryAttr>:$host_memory_by_kind);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `on` $mesh (`entry` $entry^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Exec_BufferOp : Exec_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "A range of the arena";
  let description = [{
    A dense row-major tensor of the result's shape (one device's). `offset` is in bytes, a multiple of 64, and absent
    until memory is planned. Buffers may overlap in the arena where their live ranges do not.

    Each microbatch has a buffer of its own where `slots` is given: there are that many copies, one after the other at
    multiples of 64 bytes, and a task that runs for microbatch i means copy i mod `slots`, or copy `map`[i] where that is
    given. `slots` is 0 until memory is planned. Buffers with maps may have the same copies: no two of their values are
    in one copy at a time.

    The memory space "host" says that the buffer lies in the memory of the device's host, in an arena of its own:
    `memref<4xf32, "host">`.

    Constraints:

    - [buffer-c1] The type has a static shape and the row-major layout.
    - [buffer-c2] `offset` is a multiple of 64 and not negative.
    - [buffer-c3] `slots` is at least 0.
    - [buffer-c4] The entries of `slot_map` are numbers of slots: at least 0 and less than `slots`.
    - [buffer-c5] `slot_map` has an entry for each microbatch.
    - [buffer-c6] The memory space is "host", or there is none.
  }];
  let arguments = (ins Exec_BufferKindAttr:$kind, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$slots,
                       OptionalAttr<DenseI64ArrayAttr>:$slot_map);
  let results = (outs Exec_Buffer:$result);
  let assemblyFormat = "`` $kind (`at` $offset^)? (`slots` $slots^ (`map` $slot_map^)?)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Exec_ViewOp : Exec_Op<"view", [HasParent<"ProgramOp">]> {
  let summary = "The same bytes with another shape";
  let description = [{
    `[s] -> [t]` with as many elements of the same type.

    Constraints:

    - [view-c1] The type of the result has a static shape and the row-major layout.
    - [view-c2] The result has as many elements as the source, of the same type, in the same memory.
  }];
  let arguments = (ins Exec_Buffer:$source);
  let results = (outs Exec_Buffer:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Exec_ReuseOp : Exec_Op<"reuse", [HasParent<"ProgramOp">, SameOperandsAndResultType]> {
  let summary = "Another value in the same bytes";
  let description = [{
    What is written to the result replaces the value of `source`, which nothing reads from then on: a kernel that works
    in place writes a reuse of what it reads. So every buffer, view and reuse is one value with one writer, whatever
    bytes it lies in, and what an instruction reads is named by value and not by place.
  }];
  let arguments = (ins Exec_Buffer:$source);
  let results = (outs Exec_Buffer:$result);
  let assemblyFormat = "$source attr-dict `:` type($result)";
}

def Exec_StateOp : Exec_Op<"state", [HasParent<"ProgramOp">]> {
  let summary = "A tensor that lives across steps";
  let description = [{
    The buffer holds this device's shard (`shape` is the global one) of a parameter, or, where `parameter` is given, of
    a part of the optimizer's state for it. `file_shape` is the shape in a weights file, with the same elements in the
    same order; `init` is one of the dtc dialect's initializers. A `master` is the parameter itself in full precision:
    it starts as the parameter, and weights files are written from it. A `cache` is neither a parameter nor of an
    optimizer: what an earlier step has left for the next ones. A `step_state` is one of the kinds of
    `dtc.step_state`.

    The buffer is the value before the step. The one after it is that of an `exec.update`, or the same.

    Constraints:

    - [state-c1] `step_state` is "applied_steps", "skipped_steps", "loss_scale", "good_steps", "growth_interval" or
      "random_key".
    - [state-c2] `file_shape` has as many elements as `shape`.
    - [state-c3] The sizes of `shape` are not negative.
    - [state-c4] The buffer has the shape of a device's shard of a tensor of `shape` with `sharding`.
  }];
  let arguments = (ins Exec_Buffer:$buffer, StrAttr:$state_name, OptionalAttr<StrAttr>:$parameter,
                       DenseI64ArrayAttr:$shape, DenseI64ArrayAttr:$file_shape, Dist_ShardingAttr:$sharding,
                       OptionalAttr<AnyAttr>:$init, UnitAttr:$master, UnitAttr:$cache,
                       OptionalAttr<StrAttr>:$step_state);
  let assemblyFormat = [{
    $state_name (`cache` $cache^)? (`master` $master^)? (`step_state` $step_state^)? (`of` $parameter^)? `=` $buffer `shape` $shape `file_shape` $file_shape `sharding` $sharding
    (`init` `(` $init^ `)`)? attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def Exec_UpdateOp : Exec_Op<"update", [HasParent<"ProgramOp">]> {
  let summary = "The value of a state after the step";
  let description = [{
    A reuse of the buffer of the state of that name, directly or through others: the new value lies where the old one did.
    A state without an update is not changed by the step.

    Constraints:

    - [update-c1] `state_name` is the name of a state of the program.
    - [update-c2] A state has at most one update.
    - [update-c3] The buffer is that of the state, or a reuse of it, and has its type.
  }];
  let arguments = (ins Exec_Buffer:$buffer, StrAttr:$state_name);
  let assemblyFormat = "$state_name `=` $buffer attr-dict `:` type($buffer)";
}

def Exec_InputOp : Exec_Op<"input", [HasParent<"ProgramOp">]> {
  let summary = "A value that the caller gives for each step";
  let description = [{
    `role` is "data", "learning_rates", "first_step" or "batches". The buffer holds this device's shard, all microbatches of it. Where
    `index_limit` is given, the elements are indices in [0, index_limit), or `ignored_index`.

    Constraints:

    - [input-c1] `role` is "data", "learning_rates", "first_step" or "batches".
    - [input-c2] The sizes of `shape` are not negative.
    - [input-c3] The buffer has the shape of a device's shard of a tensor of `shape` with `sharding`.
  }];
  let arguments = (ins Exec_Buffer:$buffer, StrAttr:$input_name, StrAttr:$role, DenseI64ArrayAttr:$shape,
                       Dist_ShardingAttr:$sharding, OptionalAttr<I64Attr>:$index_limit,
                       OptionalAttr<I64Attr>:$ignored_index);
  let assemblyFormat = [{
    $role $input_name `=` $buffer `shape` $shape `sharding` $sharding (`limit` $index_limit^)?
    (`ignored` $ignored_index^)? attr-dict
    `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def Exec_OutputOp : Exec_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "A value that the caller reads after a step";
  let description = [{
    The buffer holds this device's shard of a tensor of the global `shape`. A `metric` is a sum or mean over samples that is
    reported with the step; if it `must_be_zero`, a step in which an element is not 0 has changed no parameter.

    Constraints:

    - [output-c1] The sizes of `shape` are not negative.
    - [output-c2] The buffer has the shape of a device's shard of a tensor of `shape` with `sharding`.
    - [output-c3] What must be zero is a metric, and has elements of a float type.
  }];
  let arguments = (ins Exec_Buffer:$buffer, StrAttr:$output_name, DenseI64ArrayAttr:$shape,
                       Dist_ShardingAttr:$sharding, UnitAttr:$metric, UnitAttr:$must_be_zero);
  let assemblyFormat = "$output_name `=` $buffer `shape` $shape `sharding` $sharding attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Exec_TransferOp : Exec_Op<"transfer", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "Tensors that go to a device of another program, or come from it";
  let description = [{
    The other device's coordinate on the pipeline axis is `peer`. Both ends have the same `channel`, and as many buffers
    of the same types, with the same `numbers`, which identify the values as in `dist.send`.

    Constraints:

    - [transfer-c1] At least one tensor is moved.
    - [transfer-c2] `peer` and `channel` are at least 0.
    - [transfer-c3] `numbers`, if there are any, has an entry of at least 0 for each buffer.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_TransferKindAttr:$kind, I64Attr:$peer, I64Attr:$channel,
                       Variadic<Exec_Buffer>:$buffers, OptionalAttr<DenseI64ArrayAttr>:$numbers);
  let assemblyFormat = [{
    $sym_name `` $kind $peer `channel` $channel `(` $buffers `)` attr-dict `:` type($buffers) (`as` $numbers^)?
  }];
  let hasVerifier = 1;
}

def Exec_StartOp : Exec_Op<"start", [HasParent<"TaskOp">]> {
  let summary = "Starts a transfer";
  let description = [{
    It overlaps with the instructions that follow, for the running microbatch, until it is finished. Until then nothing
    writes the buffers of a send and nothing touches those of a receive.

    Constraints:

    - [start-c1] `transfer` is the name of a transfer of the program.
  }];
  let arguments = (ins FlatSymbolRefAttr:$transfer);
  let assemblyFormat = "$transfer attr-dict";
}

def Exec_FinishOp : Exec_Op<"finish", [HasParent<"TaskOp">]> {
  let summary = "Waits for a transfer";
  let description = [{
    What was started for the running microbatch is through when this is.

    Constraints:

    - [finish-c1] `transfer` is the name of a transfer of the program.
  }];
  let arguments = (ins FlatSymbolRefAttr:$transfer);
  let assemblyFormat = "$transfer attr-dict";
}

def Exec_TaskOp : Exec_Op<"task", [Symbol, HasParent<"ProgramOp">, NoRegionArguments, NoTerminator, SingleBlock]> {
  let summary = "Instructions that run in order";
  let description = [{
    Holds kernels, collectives and transfers of the program's buffers. `pass` and `stage` say what the task does in a
    pipeline; `seconds` is how long one execution is estimated to take without waiting for other devices.

    Constraints:

    - [task-c1] The region holds kernels, collectives, waits, starts and finishes only.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<Dist_StagePassAttr>:$pass, OptionalAttr<I64Attr>:$stage,
                       OptionalAttr<F64Attr>:$seconds);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`pass` `` $pass^ $stage)? (`seconds` $seconds^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Exec_KernelOp : Exec_Op<"kernel", [HasParent<"TaskOp">, AttrSizedOperandSegments]> {
  let summary = "A call of a kernel";
  let description = [{
    Reads `inputs` and writes `outputs` as docs/kernels.md says for the kernel of that name, with its attributes in `settings`. `flops` counts the floating
    point operations of one call.

    The device computes on buffers in its memory, and the host's cores on those in the memory of the host; the kernel
    "copy" may go from one to the other. A call with a buffer in the memory of the host may have a token: it starts here
    and overlaps with the instructions that follow, until the `exec.wait` for it, and it begins when the instructions of
    the tokens in `after` are done.

    Constraints:

    - [kernel-c1] The name of the kernel is not empty.
    - [kernel-c2] There is at least one output.
    - [kernel-c3] All buffers are in one memory, or the kernel is "copy".
    - [kernel-c4] A call with a token has a buffer in the memory of the host.
    - [kernel-c5] A call with `after` has a token.
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<Exec_Buffer>:$inputs, Variadic<Exec_Buffer>:$outputs,
                       DictionaryAttr:$settings, DefaultValuedAttr<F64Attr, "0.0">:$flops,
                       Variadic<Exec_TokenType>:$after);
  let results = (outs Optional<Exec_TokenType>:$token);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `to` `(` $outputs `)` $settings (`after` `(` $after^ `)`)? attr-dict
    `:` functional-type($inputs, $outputs) (`async` type($token)^)?
  }];
  let hasVerifier = 1;
}

def Exec_CollectiveOp : Exec_Op<"collective", [HasParent<"TaskOp">, AttrSizedOperandSegments]> {
  let summary = "A collective over the group of devices along mesh axes";
  let description = [{
    As the dist dialect's op of that name, for each tensor from the buffer in `inputs` (`[s]`) to the one in `outputs`
    (`[t]`). Several tensors are a bucket: they move together, each as if alone. `dims` and `split_dims` have an entry
    for each tensor; `reasons` has a dictionary for each that says why it moves, as `dist.reason` does.

    With a token the collective starts here and overlaps with the instructions that follow, until the `exec.wait` for it.
    It begins when the instructions of the tokens in `after` are done. Its buffers are in the memory of the device.

    Constraints:

    - [collective-c1] An all-reduce and a reduce-scatter have a `reduction`, the other kinds have none.
    - [collective-c2] A permute has `source_axes`, the other kinds have none, and no `shift` either.
    - [collective-c3] At least one tensor is moved.
    - [collective-c4] There are as many outputs, `dims`, `split_dims` and, if there are any, `reasons` as inputs.
    - [collective-c5] Of an all-gather, a reduce-scatter and an all-to-all the entries of `dims` and `split_dims` are
      dimensions of the input.
    - [collective-c6] No buffer is in the memory of the host.
    - [collective-c7] A collective with `after` has a token.
  }];
  let arguments = (ins Dist_CollectiveKindAttr:$kind, OptionalAttr<Dist_ReductionKindAttr>:$reduction,
                       TypedArrayAttrBase<StrAttr, "array of axis names">:$axes, Variadic<Exec_Buffer>:$inputs,
                       Variadic<Exec_Buffer>:$outputs, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$split_dims,
                       OptionalAttr<TypedArrayAttrBase<StrAttr, "array of axis names">>:$source_axes,
                       OptionalAttr<I64Attr>:$shift,
                       OptionalAttr<TypedArrayAttrBase<DictionaryAttr, "array of dictionaries">>:$reasons,
                       Variadic<Exec_TokenType>:$after);
  let results = (outs Optional<Exec_TokenType>:$token);
  let assemblyFormat = [{
    `` $kind (`reducing` `` $reduction^)? `over` $axes (`from` $source_axes^)? `(` $inputs `)` `to` `(` $outputs `)`
    `dims` $dims `split_dims` $split_dims (`after` `(` $after^ `)`)? attr-dict
    `:` functional-type($inputs, $outputs) (`async` type($token)^)?
  }];
  let hasVerifier = 1;
}

def Exec_WaitOp : Exec_Op<"wait", [HasParent<"TaskOp">]> {
  let summary = "Waits for an asynchronous instruction";
  let description = [{
    The collective or kernel that made the token is done when this is. Between the two nothing but instructions that come
    after it by their tokens writes its inputs or touches its outputs.

    Constraints:

    - [wait-c1] The token is that of an asynchronous instruction of the same task, and no other `exec.wait` has it.
  }];
  let arguments = (ins Exec_TokenType:$token);
  let assemblyFormat = "$token attr-dict";
  let hasVerifier = 1;
}

def Exec_RunOp : Exec_Op<"run", [HasParent<"ProgramOp">]> {
  let summary = "One execution of a task";
  let description = [{
    Runs in program order follow each other. `microbatch` is the coordinate on the temporal axis. The runs `in_loop`, which
    are neighbours, are the loop over microbatches: it may run again, over other data, before what follows it.

    Constraints:

    - [run-c1] `task` is the name of a task of the program.
    - [run-c2] The runs `in_loop` are neighbours.
    - [run-c3] `microbatch` is at least 0.
  }];
  let arguments = (ins FlatSymbolRefAttr:$task, DefaultValuedAttr<I64Attr, "0">:$microbatch, UnitAttr:$in_loop);
  let assemblyFormat = "$task (`microbatch` $microbatch^)? (`in_loop` $in_loop^)? attr-dict";
  let hasVerifier = 1;
}

#endif // DTC_DIALECTS_EXEC_EXECOPS_TD
