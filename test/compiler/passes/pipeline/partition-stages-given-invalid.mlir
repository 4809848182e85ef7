// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte|h.0|ln_f' 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,ln_f' 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte|lm_head' 2>&1 | FileCheck %s --check-prefix=LAYER
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,h.0-h.3|ln_f' 2>&1 | FileCheck %s --check-prefix=BEHIND
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,|ln_f' 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=|h.0' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte-h.1|ln_f' 2>&1 | FileCheck %s --check-prefix=KINDS
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,h.1-h.0|ln_f' 2>&1 | FileCheck %s --check-prefix=BACKWARDS
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,h.0-h.1|h.1-h.2,ln_f' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=h.0|wte,ln_f' 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,h.1|h.0,ln_f' 2>&1 | FileCheck %s --check-prefix=FALLING
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='chunks=2 stages=wte|h.0|ln_f|h.1-h.2' 2>&1 | FileCheck %s --check-prefix=SKIPPED

// COUNT: error: stages are 3 ('wte|h.0|ln_f'), expected 2, as many as the pipeline has
// ONE: error: stages are 1 ('wte,ln_f'), expected 2, as many as the pipeline has
// LAYER: error: stages name the layer 'lm_head', which no op has; the layers are wte, h.0, h.1, h.2, ln_f
// BEHIND: error: stages name the layer 'h.3', which no op has; the layers are wte, h.0, h.1, h.2, ln_f
// EMPTY: error: stages name the layer '', which no op has
// NOTHING: error: stages name the layer '', which no op has
// KINDS: error: stages have the range 'wte-h.1', expected two layers of one kind in order, such as h.0-h.3
// BACKWARDS: error: stages have the range 'h.1-h.0', expected two layers of one kind in order, such as h.0-h.3
// TWICE: error: the layer 'h.1' is in stages 0 and 1, expected one
// ORDER: loc("h.0.fc"): the layer 'h.0' is put in stage 0, after an op of stage 1; stages must rise along the program
// FALLING: loc("h.1.fc"): the layer 'h.1' is put in stage 0, after an op of stage 1; stages must rise along the program
// SKIPPED: loc("h.1.fc"): stage 2 has no op: the program goes from stage 1 to stage 3 here

dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("wte")
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.fc")
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.proj")
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.1.fc")
  %4 = dtc.einsum "bi,io->bo" %3, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.2.fc")
  %5 = dtc.einsum "bi,io->bo" %4, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("ln_f")
  %sum = dtc.reduce sum %5 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
