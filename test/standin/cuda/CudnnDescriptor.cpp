//===- CudnnDescriptor.cpp - The descriptors of cuDNN's graph interface --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/CudnnDescriptor.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace dtc::standin {

namespace {

constexpr int64_t kMany = std::numeric_limits<int64_t>::max();

/// An attribute that a descriptor of a type may have, or must have.
struct Rule {
  cudnnBackendDescriptorType_t descriptor;
  const char *descriptorName;
  cudnnBackendAttributeName_t attribute;
  const char *attributeName;
  cudnnBackendAttributeType_t type;
  bool isRequired = false;
  int64_t count = 1; // at most
};

#define RULE(descriptor, attribute, type, ...)                                                     \
  Rule {                                                                                           \
    CUDNN_BACKEND_##descriptor##_DESCRIPTOR, "CUDNN_BACKEND_" #descriptor "_DESCRIPTOR",           \
        CUDNN_ATTR_##attribute, "CUDNN_ATTR_" #attribute,                                          \
        CUDNN_TYPE_##type __VA_OPT__(, ) __VA_ARGS__                                               \
  }

/// The attributes that the stand-in has; it has no others. Source: NVIDIA, "cuDNN Backend API",
/// version 9.
const Rule kRules[] = {
    RULE(TENSOR, TENSOR_UNIQUE_ID, INT64, true),
    RULE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, true),
    RULE(TENSOR, TENSOR_DIMENSIONS, INT64, true, CUDNN_DIM_MAX),
    RULE(TENSOR, TENSOR_STRIDES, INT64, true, CUDNN_DIM_MAX),
    RULE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, true),
    RULE(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN),
    RULE(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN),

    RULE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, true),
    RULE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, true),
    RULE(POINTWISE, POINTWISE_AXIS, INT64),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_ALPHA1, FLOAT),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_ALPHA2, FLOAT),

    RULE(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE, true),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, true),

    RULE(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, true),
    RULE(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE, true),
    RULE(REDUCTION, REDUCTION_IS_DETERMINISTIC, BOOLEAN),
    RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR, true),

    RULE(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, true),

    RULE(OPERATION_SDPA_FWD, OPERATION_SDPA_FWD_QDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_SDPA_FWD, OPERATION_SDPA_FWD_KDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_SDPA_FWD, OPERATION_SDPA_FWD_VDESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_SDPA_FWD, OPERATION_SDPA_FWD_ODESC, BACKEND_DESCRIPTOR, true),
    RULE(OPERATION_SDPA_FWD, OPERATION_SDPA_FWD_STATSDESC, BACKEND_DESCRIPTOR),
    RULE(OPERATION_SDPA_FWD, OPERATION_SDPA_FWD_SCALEDESC, BACKEND_DESCRIPTOR),

    RULE(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, true, kMany),
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE),
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, BOOLEAN),

    RULE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, true),
    RULE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, true),
    RULE(ENGINEHEUR, ENGINEHEUR_SM_COUNT_TARGET, INT32),
    RULE(ENGINEHEUR, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR),
    RULE(ENGINE, ENGINE_OPERATION_GRAPH, BACKEND_DESCRIPTOR, true),
    RULE(ENGINE, ENGINE_GLOBAL_INDEX, INT64, true),
    RULE(ENGINE, ENGINE_DEVICEPROP, BACKEND_DESCRIPTOR),
    RULE(ENGINECFG, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, true),
    RULE(KNOB_CHOICE, KNOB_CHOICE_KNOB_TYPE, KNOB_TYPE, true),
    RULE(KNOB_CHOICE, KNOB_CHOICE_KNOB_VALUE, INT64, true),
    RULE(KNOB_INFO, KNOB_INFO_TYPE, KNOB_TYPE, true),
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, true),
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR),

    RULE(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, true, kMany),
    RULE(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, true, kMany),
    RULE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR),

    RULE(DEVICEPROP, DEVICEPROP_HANDLE, HANDLE),
    RULE(DEVICEPROP, DEVICEPROP_DEVICE_ID, INT32),
    RULE(DEVICEPROP, DEVICEPROP_JSON_REPRESENTATION, CHAR, false, kMany),
};

#undef RULE

const Rule *findRule(cudnnBackendDescriptorType_t descriptor,
                     cudnnBackendAttributeName_t attribute) {
  auto found = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule &rule) {
    return rule.descriptor == descriptor && rule.attribute == attribute;
  });
  return found == std::end(kRules) ? nullptr : found;
}

} // namespace

bool isKnown(cudnnBackendDescriptorType_t type) {
  return std::any_of(std::begin(kRules), std::end(kRules),
                     [&](const Rule &rule) { return rule.descriptor == type; });
}

std::string nameOf(cudnnBackendDescriptorType_t type) {
  for (const Rule &rule : kRules)
    if (rule.descriptor == type)
      return rule.descriptorName;
  return fmt::format("descriptor type {}", static_cast<int>(type));
}

size_t bytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    return 1;
  default: // enumerations, floats and integers of 32 bits
    return 4;
  }
}

void setAttribute(CudnnDescriptor &descriptor, cudnnBackendAttributeName_t name,
                  CudnnAttribute value) {
  const Rule *rule = findRule(descriptor.type, name);
  if (!rule)
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                     fmt::format("attribute {} of {}, which the stand-in does not have",
                                 static_cast<int>(name), nameOf(descriptor.type))};
  if (descriptor.isFinalized)
    throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                     fmt::format("{} is set in a {} that is finalized already", rule->attributeName,
                                 rule->descriptorName)};
  if (value.type != rule->type)
    throw CudnnError{CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                     fmt::format("{} is set with the type {}, expected {}", rule->attributeName,
                                 static_cast<int>(value.type), static_cast<int>(rule->type))};
  if (value.count < 1 || value.count > rule->count)
    throw CudnnError{CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                     fmt::format("{} is set with {} elements, expected 1 to {}",
                                 rule->attributeName, value.count, rule->count)};
  descriptor.attributes[name] = std::move(value);
}

void checkComplete(const CudnnDescriptor &descriptor) {
  for (const Rule &rule : kRules)
    if (rule.descriptor == descriptor.type && rule.isRequired && !descriptor.has(rule.attribute))
      throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                       fmt::format("{} is not set in a {} that is finalized", rule.attributeName,
                                   rule.descriptorName)};
}

} // namespace dtc::standin
