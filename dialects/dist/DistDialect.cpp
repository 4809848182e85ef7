//===- DistDialect.cpp - The dist dialect ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/ChunkAttribute.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/DistCompressionOps.h"
#include "dialects/dist/DistScaledOps.h"
#include "dialects/dist/SampleAttributes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::dist;

#include "dialects/dist/DistDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistCompressionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistScaledOps.cpp.inc"
      >();
}

ShardingAttr dtc::dist::getSharding(Value value) {
  Attribute attr;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<FunctionOpInterface>(arg.getOwner()->getParentOp());
    if (!function || !arg.getOwner()->isEntryBlock())
      return {};
    attr = function.getArgAttr(arg.getArgNumber(), kShardingAttrName);
  } else {
    attr = value.getDefiningOp()->getAttr(kShardingAttrName);
    if (auto array = dyn_cast_or_null<ArrayAttr>(attr))
      attr = array[cast<OpResult>(value).getResultNumber()];
  }
  return dyn_cast_or_null<ShardingAttr>(attr);
}

void dtc::dist::setSharding(Value value, ShardingAttr sharding) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto function = cast<FunctionOpInterface>(arg.getOwner()->getParentOp());
    function.setArgAttr(arg.getArgNumber(), kShardingAttrName, sharding);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (op->getNumResults() == 1) {
    op->setAttr(kShardingAttrName, sharding);
    return;
  }
  // An op with several results holds an array; entries that are not known yet are units.
  SmallVector<Attribute> all(op->getNumResults(), UnitAttr::get(op->getContext()));
  if (auto array = op->getAttrOfType<ArrayAttr>(kShardingAttrName))
    llvm::copy(array, all.begin());
  all[cast<OpResult>(value).getResultNumber()] = sharding;
  op->setAttr(kShardingAttrName, ArrayAttr::get(op->getContext(), all));
}

StageAttr dtc::dist::getStage(Operation *op) {
  return op->getAttrOfType<StageAttr>(kStageAttrName);
}

MeshOp dtc::dist::lookupMesh(Operation *at, FlatSymbolRefAttr name) {
  // Other symbol tables in between, such as an exec.program with its thousands of ops, hold no
  // meshes and are not searched.
  for (auto module = at->getParentOfType<ModuleOp>(); module;
       module = module->getParentOfType<ModuleOp>())
    if (auto mesh = dyn_cast_or_null<MeshOp>(SymbolTable::lookupSymbolIn(module, name)))
      return mesh;
  return {};
}

LogicalResult dtc::dist::verifySharding(Operation *at, ShardingAttr sharding, Type type,
                                        const Twine &what) {
  auto mesh = lookupMesh(at, sharding.getMesh());
  if (!mesh)
    return violates(at, "sharding-c2") << what << " has a sharding on " << sharding.getMesh()
                                       << ", which is not a dist.mesh; declare it in the module";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return violates(at, "sharding-c3")
           << what << " has a sharding, but its type is " << type << ", expected a tensor";
  if (tensor.getRank() != sharding.getRank())
    return violates(at, "sharding-c4")
           << what << " has rank " << tensor.getRank() << ", but its sharding " << sharding
           << " has " << sharding.getRank() << " dimensions";
  auto check = [&](ArrayAttr axes) -> LogicalResult {
    for (Attribute name : axes) {
      auto meshAxes = mesh.getAxes().getAsRange<AxisAttr>();
      auto known = llvm::find_if(meshAxes, [&](AxisAttr axis) { return axis.getName() == name; });
      if (known == meshAxes.end())
        return violates(at, "sharding-c5") << what << " is sharded over " << name
                                           << ", which is not an axis of " << sharding.getMesh();
      if ((*known).getPipeline())
        return violates(at, "sharding-c6")
               << what << " is sharded over " << name << ", the pipeline, which splits no tensor";
    }
    return success();
  };
  for (Attribute dim : sharding.getDims())
    if (failed(check(cast<ArrayAttr>(dim))))
      return failure();
  return check(sharding.getPartialAxes());
}

/// Whether the attribute is one of gradients of samples that are to be clipped.
static bool isSampleAttribute(NamedAttribute attr) {
  StringRef name = attr.getName();
  Attribute value = attr.getValue();
  return (name == kSamplesAttrName && isa<IntegerAttr>(value)) ||
         (name == kSampleNoiseAttrName && isa<StringAttr>(value)) ||
         (name == kSampleDivisorAttrName && isa<UnitAttr>(value)) ||
         (name == kNoiseShapeAttrName && isa<DenseI64ArrayAttr>(value)) ||
         (name == kNoiseShardingAttrName && isa<ArrayAttr>(value));
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if ((attr.getName() == kReasonAttrName || attr.getName() == kPipelineAttrName) &&
      isa<DictionaryAttr>(attr.getValue()))
    return success();
  if (attr.getName() == kStageStartsAttrName && isa<DenseI64ArrayAttr>(attr.getValue()))
    return success();
  if (attr.getName() == kChunkAttrName && isa<IntegerAttr>(attr.getValue()))
    return success();
  if (attr.getName() == kOneBatchAttrName && isa<StringAttr>(attr.getValue()))
    return success();
  if (attr.getName() == kHostAttrName && isa<UnitAttr>(attr.getValue()))
    return success();
  if (isSampleAttribute(attr) ||
      (attr.getName() == kOperandAxesAttrName && isa<ArrayAttr>(attr.getValue())))
    return success();
  if (attr.getName() == kStageAttrName) {
    if (!isa<StageAttr>(attr.getValue()))
      return violates(op, "dist-c1") << "has '" << kStageAttrName << "' = " << attr.getValue()
                                     << ", expected a #dist.stage";
    return success();
  }
  if (attr.getName() == kFactorsAttrName) {
    auto factors = dyn_cast<ArrayAttr>(attr.getValue());
    if (!factors || !llvm::all_of(factors, llvm::IsaPred<ArrayAttr>))
      return violates(op, "dist-c2") << "has '" << kFactorsAttrName << "' = " << attr.getValue()
                                     << ", expected a list of axes for each factor";
    return success();
  }
  if (attr.getName() != kShardingAttrName)
    return violates(op, "dist-c3")
           << "has the attribute '" << attr.getName().getValue()
           << "', which the dist dialect does not know; expected '" << kShardingAttrName << "'";
  if (auto sharding = dyn_cast<ShardingAttr>(attr.getValue())) {
    if (op->getNumResults() != 1)
      return violates(op, "dist-c4")
             << "has " << op->getNumResults() << " results; '" << kShardingAttrName
             << "' must be an array with one sharding for each";
    return verifySharding(op, sharding, op->getResult(0).getType(), "result");
  }
  auto array = dyn_cast<ArrayAttr>(attr.getValue());
  if (!array || array.size() != op->getNumResults())
    return violates(op, "dist-c5")
           << "has '" << kShardingAttrName << "' = " << attr.getValue()
           << ", expected a sharding for each of its " << op->getNumResults() << " results";
  for (auto [index, element] : llvm::enumerate(array)) {
    if (isa<UnitAttr>(element))
      continue;
    auto sharding = dyn_cast<ShardingAttr>(element);
    if (!sharding)
      return violates(op, "dist-c6") << "has '" << kShardingAttrName << "' with " << element
                                     << ", expected a #dist.sharding";
    if (failed(
            verifySharding(op, sharding, op->getResult(index).getType(), "result " + Twine(index))))
      return failure();
  }
  return success();
}

static LogicalResult verifySignatureAttribute(Operation *op, NamedAttribute attr, Type type,
                                              const Twine &what) {
  auto sharding = dyn_cast<ShardingAttr>(attr.getValue());
  if (attr.getName() != kShardingAttrName || !sharding)
    return violates(op, "dist-c7")
           << what << " has '" << attr.getName().getValue() << "' = " << attr.getValue()
           << ", expected '" << kShardingAttrName << "' with a #dist.sharding";
  return verifySharding(op, sharding, type, what);
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argIndex,
                                                    NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  if (attr.getName() == kHostAttrName && isa<UnitAttr>(attr.getValue()))
    return success();
  Type type = function.getArgumentTypes()[argIndex];
  if (auto dim = dyn_cast<IntegerAttr>(attr.getValue());
      dim && attr.getName() == kSampleDimAttrName) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && dim.getInt() >= 0 && dim.getInt() < tensor.getRank())
      return success();
    // No constraint: an attribute that passes give an argument.
    return op->emitOpError() << "argument " << argIndex << " has '" << kSampleDimAttrName
                             << "' = " << dim.getInt() << ", expected a dimension of " << type;
  }
  return verifySignatureAttribute(op, attr, type, "argument " + Twine(argIndex));
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                       unsigned resultIndex, NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifySignatureAttribute(op, attr, function.getResultTypes()[resultIndex],
                                  "result " + Twine(resultIndex));
}
