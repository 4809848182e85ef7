//===- ExecDialect.td - The exec dialect -------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_EXEC_EXECDIALECT_TD
#define DTC_DIALECTS_EXEC_EXECDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::dtc::exec";
  let summary = "Kernels on buffers, in order";
  let description = [{
    The exec dialect is the plan as IR: one `exec.program` is what one kind of device does in a step. It declares buffers
    (memrefs at fixed offsets of the device's arena once `dtc-plan-memory` has run), says which of them are states,
    inputs and outputs, and holds tasks, straight lists of kernels, collectives and transfers, and the order in which
    they run. In a pipeline there is a program for each coordinate on the pipeline axis, in order. It maps one to one
    onto the Protobuf plan.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def Exec_BufferKind : I32EnumAttr<"BufferKind", "what a buffer holds", [
    I32EnumAttrCase<"Parameter", 1, "parameter">, I32EnumAttrCase<"Gradient", 2, "gradient">,
    I32EnumAttrCase<"OptimizerState", 3, "optimizer_state">, I32EnumAttrCase<"Activation", 4, "activation">,
    I32EnumAttrCase<"Input", 5, "input">, I32EnumAttrCase<"Constant", 6, "constant">,
    I32EnumAttrCase<"Output", 7, "output">,
    I32EnumAttrCase<"MasterWeight", 8, "master_weight">, I32EnumAttrCase<"Cache", 9, "cache">]> {
  let cppNamespace = "::dtc::exec";
  let genSpecializedAttr = 0;
}
def Exec_BufferKindAttr : EnumAttr<Exec_Dialect, Exec_BufferKind, "kind">;

def Exec_TransferKind : I32EnumAttr<"TransferKind", "an end of a transfer", [
    I32EnumAttrCase<"Send", 1, "send_to">, I32EnumAttrCase<"Receive", 2, "receive_from">]> {
  let cppNamespace = "::dtc::exec";
  let genSpecializedAttr = 0;
}
def Exec_TransferKindAttr : EnumAttr<Exec_Dialect, Exec_TransferKind, "transfer_kind">;

def Exec_TokenType : TypeDef<Exec_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "A collective token: an asynchronous collective to wait for";
}

#endif // DTC_DIALECTS_EXEC_EXECDIALECT_TD
