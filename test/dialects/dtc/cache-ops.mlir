// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @cache_update
func.func @cache_update(%cache: tensor<4x32x2x8xf32>, %rows: tensor<4x1x2x8xf32>, %flat: tensor<4x32xbf16>, %more: tensor<4x40xbf16>, %positions: tensor<4xi32>) {
  // CHECK: dtc.cache_update {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x32x2x8xf32>, tensor<4x1x2x8xf32>, tensor<4xi32>) -> tensor<4x32x2x8xf32>
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x32x2x8xf32>, tensor<4x1x2x8xf32>, tensor<4xi32>) -> tensor<4x32x2x8xf32>
  // As many rows as there are, and a cache without further dimensions; more rows than places.
  // CHECK: dtc.cache_update {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x32x2x8xf32>
  %1 = dtc.cache_update %cache, %cache, %positions : (tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x32x2x8xf32>
  // CHECK: dtc.cache_update {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x32xbf16>, tensor<4x40xbf16>, tensor<4xi32>) -> tensor<4x32xbf16>
  %2 = dtc.cache_update %flat, %more, %positions : (tensor<4x32xbf16>, tensor<4x40xbf16>, tensor<4xi32>) -> tensor<4x32xbf16>
  return
}

// CHECK-LABEL: func.func @cached_attention
func.func @cached_attention(%q: tensor<4x1x6x8xf32>, %k: tensor<4x32x2x8xf32>, %q16: tensor<4x3x2x8xf16>, %k16: tensor<4x32x2x8xf16>, %positions: tensor<4xi32>, %sinks: tensor<6xf32>) {
  // CHECK: dtc.cached_attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {scale = 1.250000e-01 : f64} : (tensor<4x1x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  %0 = dtc.cached_attention %q, %k, %k, %positions {scale = 0.125} : (tensor<4x1x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  // CHECK: dtc.cached_attention {{.*}} {scale = 1.250000e-01 : f64, softcap = 2.000000e+00 : f64, window = 5 : i64}
  %w = dtc.cached_attention %q, %k, %k, %positions {scale = 0.125, softcap = 2.0, window = 5} : (tensor<4x1x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  // CHECK: dtc.cached_attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {scale = 5.000000e-01 : f64} : (tensor<4x3x2x8xf16>, tensor<4x32x2x8xf16>, tensor<4x32x2x8xf16>, tensor<4xi32>) -> tensor<4x3x2x8xf16>
  %1 = dtc.cached_attention %q16, %k16, %k16, %positions {scale = 0.5} : (tensor<4x3x2x8xf16>, tensor<4x32x2x8xf16>, tensor<4x32x2x8xf16>, tensor<4xi32>) -> tensor<4x3x2x8xf16>
  // CHECK: dtc.cached_attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} sinks {{%[^ ,]+}} {scale = 1.250000e-01 : f64} : (tensor<4x1x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>, tensor<6xf32>) -> tensor<4x1x6x8xf32>
  %s = dtc.cached_attention %q, %k, %k, %positions sinks %sinks {scale = 0.125} : (tensor<4x1x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>, tensor<6xf32>) -> tensor<4x1x6x8xf32>
  return
}

// CHECK-LABEL: func.func @select_row
func.func @select_row(%x: tensor<4x32x8xf32>, %tokens: tensor<4x32xi32>, %flags: tensor<4x1x2x2xi1>, %rows: tensor<4xi32>) {
  // CHECK: dtc.select_row {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x32x8xf32>, tensor<4xi32>) -> tensor<4x1x8xf32>
  %0 = dtc.select_row %x, %rows : (tensor<4x32x8xf32>, tensor<4xi32>) -> tensor<4x1x8xf32>
  // CHECK: dtc.select_row {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x32xi32>, tensor<4xi32>) -> tensor<4x1xi32>
  %1 = dtc.select_row %tokens, %rows : (tensor<4x32xi32>, tensor<4xi32>) -> tensor<4x1xi32>
  // CHECK: dtc.select_row {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x1x2x2xi1>, tensor<4xi32>) -> tensor<4x1x2x2xi1>
  %2 = dtc.select_row %flags, %rows : (tensor<4x1x2x2xi1>, tensor<4xi32>) -> tensor<4x1x2x2xi1>
  return
}

// CHECK-LABEL: func.func @cache_argument
// CHECK-SAME: {dtc.cache = "h.0.keys"}
func.func @cache_argument(%cache: tensor<4x32xf32> {dtc.cache = "h.0.keys"}) {
  return
}
