//===- MatmulEpilogue.cpp - Epilogues of matrix products ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/MatmulEpilogue.h"

namespace dtc {

bool mayHaveEpilogue(const MatmulEpilogue &epilogue, const GemmShape &shape, DType in, DType out) {
  if (epilogue.empty())
    return true;
  MatrixOrder c(shape.c, shape.m, shape.n);
  bool needsRows = epilogue.addsBias || epilogue.gelu != MatmulEpilogue::Gelu::None;
  bool hasGeluInput = epilogue.gelu == MatmulEpilogue::Gelu::ValueKept ||
                      epilogue.gelu == MatmulEpilogue::Gelu::Gradient;
  if (isFloat8(in) && (out != DType::BF16 || epilogue.gelu == MatmulEpilogue::Gelu::Gradient ||
                       epilogue.biasGrad != MatmulEpilogue::BiasGrad::None))
    return false;
  return in != DType::F64 && !(needsRows && c.columnMajor) && !(hasGeluInput && c.step % 8 != 0);
}

} // namespace dtc
