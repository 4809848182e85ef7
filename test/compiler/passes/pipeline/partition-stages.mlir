// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages | FileCheck %s

// A chain of equal layers, cut in the middle.
// CHECK-LABEL: func.func @chain(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.reduce{{.*}}dist.stage = #dist.stage<1 forward>
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @chain(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %3 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Seven layers in three stages: the slowest has three. That is the first one, because the last one has the loss as well, and
// one in the middle would send and receive.
// CHECK-LABEL: func.func @seven_layers(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<2 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<2 forward>
// CHECK: dtc.reduce{{.*}}dist.stage = #dist.stage<2 forward>
dist.mesh @mesh <"pp"=3 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @seven_layers(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = dtc.einsum "bi,io->bo" %3, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = dtc.einsum "bi,io->bo" %4, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = dtc.einsum "bi,io->bo" %5, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %6 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Not ops are counted but their time: the first layer is as long as the four after it.
// CHECK-LABEL: func.func @unequal_layers(
// CHECK: dtc.einsum "bi,ih->bh"{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum "bh,ho->bo"{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.reduce{{.*}}dist.stage = #dist.stage<1 forward>
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @unequal_layers(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}, %up: tensor<64x256xf32> {dtc.param = "up"}, %down: tensor<256x64xf32> {dtc.param = "down"}) -> tensor<f32> {
  %up1 = dtc.einsum "bi,ih->bh" %x, %up : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %down1 = dtc.einsum "bh,ho->bo" %up1, %down : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %0 = dtc.einsum "bi,io->bo" %down1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = dtc.einsum "bi,io->bo" %3, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = dtc.einsum "bi,io->bo" %4, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = dtc.einsum "bi,io->bo" %5, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %7 = dtc.einsum "bi,io->bo" %6, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %7 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// A cut in the middle sends what skips the layers between as well.
// CHECK-LABEL: func.func @skip(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.add{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @skip(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.add %2, %0 : tensor<64x64xf32>
  %4 = dtc.einsum "bi,io->bo" %3, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %4 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Messages move beside the work: a slow link does not make stages uneven.
// CHECK-LABEL: func.func @skip_slow(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.add{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
dist.mesh @mesh <"pp"=2 pipeline link 4.0e7 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @skip_slow(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.add %2, %0 : tensor<64x64xf32>
  %4 = dtc.einsum "bi,io->bo" %3, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %4 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Of cuts that are about as even the one is taken over which least is sent.
// CHECK-LABEL: func.func @narrow(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.reduce{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.exp{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
dist.mesh @mesh <"pp"=2 pipeline link 1.0e8 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @narrow(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.reduce sum %1 dims [1] : (tensor<64x64xf32>) -> tensor<64xf32>
  %3 = dtc.exp %2 : tensor<64xf32>
  %4 = dtc.broadcast %3 dims [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %5 = dtc.einsum "bi,io->bo" %4, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = dtc.einsum "bi,io->bo" %5, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %6 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Two towers that join. The first one's result goes past the stage of the second.
// CHECK-LABEL: func.func @towers(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.mul{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<2 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<2 forward>
dist.mesh @mesh <"pp"=3 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @towers(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = dtc.mul %1, %3 : tensor<64x64xf32>
  %5 = dtc.einsum "bi,io->bo" %4, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = dtc.einsum "bi,io->bo" %5, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %6 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Ops that do not work on a microbatch have no stage: neither those on parameters only, nor those on the sum.
// CHECK-LABEL: func.func @outside_the_loop(
// CHECK: dtc.exp %{{[^{]*}} {dist.factors = {{[^@]*}}, dist.sharding = #dist.sharding<@mesh, [{}, {}]>} :
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.reduce{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.sqrt %{{[^{]*}} {dist.factors = [], dist.sharding = #dist.sharding<@mesh, []>} :
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @outside_the_loop(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.exp %w : tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %x, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.reduce sum %2 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  %4 = dtc.sqrt %3 : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// One stage is the whole model. The axis may have any name.
// CHECK-LABEL: func.func @one_stage(
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}dist.stage = #dist.stage<0 forward>
dist.mesh @mesh <"stages"=1 pipeline, "micro"=4 temporal>
func.func @one_stage(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
