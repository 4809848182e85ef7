//===- ReadModel.cpp - Model IR from a file -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ReadModel.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace dtc;

/// `loc` with the place in the file, unless it has one.
static Location withPlace(Location loc, const llvm::SourceMgr &sources, llvm::SMLoc place) {
  bool hasPlace =
      loc->walk([](Location part) {
           return isa<FileLineColLoc>(part) ? WalkResult::interrupt() : WalkResult::advance();
         })
          .wasInterrupted();
  if (hasPlace || !place.isValid())
    return loc;
  // getLineAndColumn() looks for the begin of the line, and all arguments of a function are in one.
  const auto &buffer = sources.getBufferInfo(sources.getMainFileID());
  unsigned line = buffer.getLineNumber(place.getPointer());
  auto column = place.getPointer() - buffer.getPointerForLineNumber(line) + 1;
  StringRef file = sources.getMemoryBuffer(sources.getMainFileID())->getBufferIdentifier();
  Location inFile =
      FileLineColLoc::get(loc.getContext(), file, line, static_cast<unsigned>(column));
  if (auto named = dyn_cast<NameLoc>(loc); named && isa<UnknownLoc>(named.getChildLoc()))
    return NameLoc::get(named.getName(), inFile);
  return isa<UnknownLoc>(loc) ? inFile : FusedLoc::get(loc.getContext(), {loc, inFile});
}

OwningOpRef<ModuleOp> dtc::readModel(const llvm::SourceMgr &sources, MLIRContext *context) {
  ParserConfig config(context, /*verifyAfterParse=*/false);
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  if (isBytecode(*buffer))
    return parseSourceFile<ModuleOp>(sources, context);
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, config, &state)))
    return nullptr;
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs())
    definition.op->setLoc(withPlace(definition.op->getLoc(), sources, definition.loc.Start));
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    for (auto [argument, place] : llvm::zip(definition.block->getArguments(), definition.arguments))
      argument.setLoc(withPlace(argument.getLoc(), sources, place.loc.Start));
  auto start = FileLineColLoc::get(context, buffer->getBufferIdentifier(), 1, 1);
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, context, start);
  if (module && failed(verify(*module)))
    return nullptr;
  return module;
}
