// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,h.0|h.1,h.2,ln_f' 2>/dev/null | FileCheck %s --check-prefix=LAYERS
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte,h.0-h.1|h.2-h.2,ln_f' 2>/dev/null | FileCheck %s --check-prefix=RANGES
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=wte|h.2' 2>/dev/null | FileCheck %s --check-prefix=SOME
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=h.0,wte|ln_f,h.1-h.2' 2>/dev/null | FileCheck %s --check-prefix=REVERSED
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='chunks=2 stages={wte| h.0 , h.1 |h.2|ln_f}' 2>/dev/null | FileCheck %s --check-prefix=CHUNKS

// Layers by their names, which are those of locations up to the first number; the loss has none and stays after ln_f.
// LAYERS: dtc.einsum{{.*}}#dist.stage<0 forward>
// LAYERS: dtc.einsum{{.*}}#dist.stage<0 forward>
// LAYERS: dtc.einsum{{.*}}#dist.stage<0 forward>
// LAYERS: dtc.einsum{{.*}}#dist.stage<1 forward>
// LAYERS: dtc.einsum{{.*}}#dist.stage<1 forward>
// LAYERS: dtc.einsum{{.*}}#dist.stage<1 forward>
// LAYERS: dtc.reduce{{.*}}#dist.stage<1 forward>

// Ranges of layers, also of one.
// RANGES: dtc.einsum{{.*}}#dist.stage<0 forward>
// RANGES: dtc.einsum{{.*}}#dist.stage<0 forward>
// RANGES: dtc.einsum{{.*}}#dist.stage<0 forward>
// RANGES: dtc.einsum{{.*}}#dist.stage<0 forward>
// RANGES: dtc.einsum{{.*}}#dist.stage<1 forward>
// RANGES: dtc.einsum{{.*}}#dist.stage<1 forward>
// RANGES: dtc.reduce{{.*}}#dist.stage<1 forward>

// Layers that are not named belong to the stage before them.
// SOME: dtc.einsum{{.*}}#dist.stage<0 forward>
// SOME: dtc.einsum{{.*}}#dist.stage<0 forward>
// SOME: dtc.einsum{{.*}}#dist.stage<0 forward>
// SOME: dtc.einsum{{.*}}#dist.stage<0 forward>
// SOME: dtc.einsum{{.*}}#dist.stage<1 forward>
// SOME: dtc.einsum{{.*}}#dist.stage<1 forward>
// SOME: dtc.reduce{{.*}}#dist.stage<1 forward>

// The order of names in a stage is of no importance.
// REVERSED: dtc.einsum{{.*}}#dist.stage<0 forward>
// REVERSED: dtc.einsum{{.*}}#dist.stage<0 forward>
// REVERSED: dtc.einsum{{.*}}#dist.stage<0 forward>
// REVERSED: dtc.einsum{{.*}}#dist.stage<1 forward>
// REVERSED: dtc.einsum{{.*}}#dist.stage<1 forward>
// REVERSED: dtc.einsum{{.*}}#dist.stage<1 forward>
// REVERSED: dtc.reduce{{.*}}#dist.stage<1 forward>

// With two stages of each of two devices there are four. Spaces around names do no harm.
// CHUNKS: dtc.einsum{{.*}}#dist.stage<0 forward>
// CHUNKS: dtc.einsum{{.*}}#dist.stage<1 forward>
// CHUNKS: dtc.einsum{{.*}}#dist.stage<1 forward>
// CHUNKS: dtc.einsum{{.*}}#dist.stage<1 forward>
// CHUNKS: dtc.einsum{{.*}}#dist.stage<2 forward>
// CHUNKS: dtc.einsum{{.*}}#dist.stage<3 forward>
// CHUNKS: dtc.reduce{{.*}}#dist.stage<3 forward>

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
