// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s -mlir-print-op-generic | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @blocks(
func.func @blocks(%x: tensor<6x10xf32>, %y: tensor<7xf64>, %u: tensor<7xf32>, %key: tensor<2xi32>) {
  // Two parts of 30 elements: three whole blocks and one of three elements each.
  // CHECK: dist.quantize_blocks %{{.*}} {bits = 8 : i64, block = 9 : i64, dim = 1 : i64, parts = 2 : i64} : (tensor<6x10xf32>) -> tensor<8x4xi32>
  %0 = dist.quantize_blocks %x {bits = 8, block = 9, dim = 1, parts = 2} : (tensor<6x10xf32>) -> tensor<8x4xi32>
  // CHECK: dist.dequantize_blocks %{{.*}} {bits = 8 : i64, block = 9 : i64, dim = 1 : i64, parts = 2 : i64} : (tensor<8x4xi32>) -> tensor<6x10xf32>
  %1 = dist.dequantize_blocks %0 {bits = 8, block = 9, dim = 1, parts = 2} : (tensor<8x4xi32>) -> tensor<6x10xf32>
  // Eight integers of four bits are a word.
  // CHECK: dist.quantize_blocks {{.*}} : (tensor<7xf64>) -> tensor<1x2xi32>
  %2 = dist.quantize_blocks %y {bits = 4, block = 8, dim = 0, parts = 1} : (tensor<7xf64>) -> tensor<1x2xi32>
  // CHECK: dist.quantize_blocks %{{.*}} noise %{{.*}} {bits = 4 : i64, block = 8 : i64, dim = 0 : i64, parts = 1 : i64} : (tensor<7xf64>, tensor<7xf32>) -> tensor<1x2xi32>
  %3 = dist.quantize_blocks %y noise %u {bits = 4, block = 8, dim = 0, parts = 1} : (tensor<7xf64>, tensor<7xf32>) -> tensor<1x2xi32>
  // CHECK: dist.random_uniform %{{.*}} {number = 4294967295 : i64, shape = array<i64: 8, 6>, sharding = ["", "tp"]} : (tensor<2xi32>) -> tensor<8x3xf32>
  %4 = dist.random_uniform %key {number = 4294967295, shape = array<i64: 8, 6>, sharding = ["", "tp"]} : (tensor<2xi32>) -> tensor<8x3xf32>
  return
}
