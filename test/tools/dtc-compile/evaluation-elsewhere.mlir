// RUN: dtc-compile %s --mesh pp=2,tp=2 --microbatches 6 --schedule gpipe --shard wide=tp --optimizer sgd -o %t.plan 2>&1 | FileCheck %s
// RUN: dtc-plan verify %t.plan

// The loss alone computes a term without data on another device than the train step does. There the parameter would never
// be updated.
// CHECK: warning: the plan cannot evaluate: the loss alone needs 'a9' on device 1 of the pipeline, where the train step neither has nor updates it
func.func @loss(%a0: tensor<16x12xf64> {dtc.input = "a0", dtc.axes = ["batch", ""]}, %a1: tensor<16x12x6xf64> {dtc.input = "a1", dtc.axes = ["batch", "", ""]}, %a2: tensor<4x16xf64> {dtc.input = "a2", dtc.axes = ["", "batch"]}, %a3: tensor<6xf64> {dtc.param = "a3", dtc.axes = ["wide"]}, %a4: tensor<16x2x6xf64> {dtc.input = "a4", dtc.axes = ["batch", "", ""]}, %a5: tensor<16x8x6x2xf64> {dtc.input = "a5", dtc.axes = ["batch", "", "", ""]}, %a6: tensor<8x16x12xf64> {dtc.input = "a6", dtc.axes = ["", "batch", ""]}, %a7: tensor<12xf64> {dtc.param = "a7", dtc.axes = ["wide"]}, %a8: tensor<12xf64> {dtc.param = "a8", dtc.axes = [""]}, %a9: tensor<12xf64> {dtc.param = "a9", dtc.axes = [""]}) -> tensor<f64> {
  %0 = dtc.reshape %a0 : (tensor<16x12xf64>) -> tensor<16x2x6xf64>
  %1 = dtc.tanh %0 : tensor<16x2x6xf64>
  %2:2 = dtc.rms_norm %1, %a3 {eps = 1.0e-1 : f64} : (tensor<16x2x6xf64>, tensor<6xf64>) -> (tensor<16x2x6xf64>, tensor<16x2xf64>)
  %3 = dtc.slice %2#0 offsets [0, 0, 1] sizes [16, 2, 5] : (tensor<16x2x6xf64>) -> tensor<16x2x5xf64>
  %4 = dtc.tanh %3 : tensor<16x2x5xf64>
  %mask5 = dtc.compare gt %0, %a4 : tensor<16x2x6xf64>
  %5 = dtc.select %mask5, %a4, %1 : tensor<16x2x6xf64>
  %6 = dtc.einsum "abc,adcb->acd" %5, %a5 : (tensor<16x2x6xf64>, tensor<16x8x6x2xf64>) -> tensor<16x6x8xf64>
  %7:2 = dtc.rms_norm %5, %a3 {eps = 1.0e-1 : f64} : (tensor<16x2x6xf64>, tensor<6xf64>) -> (tensor<16x2x6xf64>, tensor<16x2xf64>)
  %8 = dtc.tanh %7#0 : tensor<16x2x6xf64>
  %9 = dtc.einsum "ab,cab->bac" %a0, %a6 : (tensor<16x12xf64>, tensor<8x16x12xf64>) -> tensor<12x16x8xf64>
  %10 = dtc.einsum "ab,b->a" %a0, %a7 : (tensor<16x12xf64>, tensor<12xf64>) -> tensor<16xf64>
  %11 = dtc.tanh %10 : tensor<16xf64>
  %12:2 = dtc.rms_norm %a6, %a8 {eps = 1.0e-1 : f64} : (tensor<8x16x12xf64>, tensor<12xf64>) -> (tensor<8x16x12xf64>, tensor<8x16xf64>)
  %13 = dtc.tanh %12#0 : tensor<8x16x12xf64>
  %mask14 = dtc.compare gt %a8, %a9 : tensor<12xf64>
  %14 = dtc.select %mask14, %a9, %a9 : tensor<12xf64>
  %s0 = dtc.einsum "abc,abc->" %4, %4 : (tensor<16x2x5xf64>, tensor<16x2x5xf64>) -> tensor<f64>
  %s1 = dtc.einsum "abc,abc->" %6, %6 : (tensor<16x6x8xf64>, tensor<16x6x8xf64>) -> tensor<f64>
  %t1 = dtc.add %s0, %s1 : tensor<f64>
  %s2 = dtc.einsum "abc,abc->" %8, %8 : (tensor<16x2x6xf64>, tensor<16x2x6xf64>) -> tensor<f64>
  %t2 = dtc.add %t1, %s2 : tensor<f64>
  %s3 = dtc.einsum "abc,abc->" %9, %9 : (tensor<12x16x8xf64>, tensor<12x16x8xf64>) -> tensor<f64>
  %t3 = dtc.add %t2, %s3 : tensor<f64>
  %s4 = dtc.einsum "a,a->" %11, %11 : (tensor<16xf64>, tensor<16xf64>) -> tensor<f64>
  %t4 = dtc.add %t3, %s4 : tensor<f64>
  %s5 = dtc.einsum "abc,abc->" %13, %13 : (tensor<8x16x12xf64>, tensor<8x16x12xf64>) -> tensor<f64>
  %t5 = dtc.add %t4, %s5 : tensor<f64>
  %s6 = dtc.einsum "a,a->" %14, %14 : (tensor<12xf64>, tensor<12xf64>) -> tensor<f64>
  %t6 = dtc.add %t5, %s6 : tensor<f64>
  return %t6 : tensor<f64>
}
