//===- ExecDialect.td - The exec dialect -------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_EXEC_EXECDIALECT_TD
#define DTC_DIALECTS_EXEC_EXECDIALECT_TD

include "dialects/dtc/EnumName.td"
include "mlir/IR/AttrTypeBase.td"
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

class Exec_EnumAttr<string enumName, string mnemonic, string summary>
    : Dtc_EnumNameAttr<Exec_Dialect, enumName, enumName, mnemonic, summary>;

def Exec_BufferKindAttr : Exec_EnumAttr<"BufferKind", "kind", "what a buffer holds">;
def Exec_TransferKindAttr : Exec_EnumAttr<"TransferKind", "transfer_kind", "an end of a transfer">;

def Exec_TokenType : TypeDef<Exec_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "token of an asynchronous instruction";
}

#endif // DTC_DIALECTS_EXEC_EXECDIALECT_TD
