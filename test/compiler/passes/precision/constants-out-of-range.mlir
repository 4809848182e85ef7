// RUN: dtc-opt %s --dtc-mixed-precision=dtype=f16 --canonicalize --cse | FileCheck %s
// RUN: dtc-opt %s --dtc-mixed-precision=dtype=bf16 --canonicalize --cse | FileCheck %s --check-prefix=BF16

// A constant that would become 0 or infinite in f16 keeps its op in f32: 0 is no epsilon. An infinity, and 0, are the same in
// any type.
// CHECK-LABEL: func.func @loss(
// CHECK-DAG: %[[EPS:.*]] = dtc.constant dense<9.99{{.*}}E-9> : tensor<f32>
// CHECK-DAG: %[[LARGE:.*]] = dtc.constant dense<1.000000e+05> : tensor<4xf32>
// CHECK-DAG: %[[INFINITY:.*]] = dtc.constant dense<0xFC00> : tensor<4xf16>
// CHECK-DAG: %[[ZERO:.*]] = dtc.constant dense<0.000000e+00> : tensor<4xf16>
// CHECK: %[[SQUARE:.*]] = dtc.mul %{{.*}}, %{{.*}} : tensor<4xf16>
// CHECK: %[[ALL:.*]] = dtc.broadcast %[[EPS]] dims [] : (tensor<f32>) -> tensor<4xf32>
// CHECK: %[[SUM:.*]] = dtc.add %{{.*}}, %[[ALL]] : tensor<4xf32>
// CHECK: dtc.div %{{.*}}, %[[SUM]] : tensor<4xf32>
// CHECK: dtc.minimum %{{.*}}, %[[LARGE]] : tensor<4xf32>
// CHECK: dtc.maximum %[[SQUARE]], %[[INFINITY]] : tensor<4xf16>
// CHECK: dtc.maximum %{{.*}}, %[[ZERO]] : tensor<4xf16>

// bf16 has the range of f32.
// BF16-LABEL: func.func @loss(
// BF16: dtc.add %{{.*}} : tensor<4xbf16>
// BF16: dtc.div %{{.*}} : tensor<4xbf16>
// BF16: dtc.minimum %{{.*}} : tensor<4xbf16>
func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = dtc.mul %w, %w : tensor<4xf32>
  %1 = dtc.constant dense<1.000000e-08> : tensor<f32>
  %2 = dtc.broadcast %1 dims [] : (tensor<f32>) -> tensor<4xf32>
  %3 = dtc.add %0, %2 : tensor<4xf32>
  %4 = dtc.div %w, %3 : tensor<4xf32>
  %5 = dtc.constant dense<1.000000e+05> : tensor<4xf32>
  %6 = dtc.minimum %0, %5 : tensor<4xf32>
  %7 = dtc.constant dense<0xFF800000> : tensor<4xf32>
  %8 = dtc.maximum %0, %7 : tensor<4xf32>
  %9 = dtc.constant dense<0.000000e+00> : tensor<4xf32>
  %10 = dtc.maximum %8, %9 : tensor<4xf32>
  %11 = dtc.reduce sum %4 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %12 = dtc.reduce sum %6 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %13 = dtc.reduce sum %10 dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %11, %12, %13 : tensor<f32>, tensor<f32>, tensor<f32>
}
