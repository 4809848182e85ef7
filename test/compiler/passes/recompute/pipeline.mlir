// RUN: dtc-opt %s --dtc-recompute-activations="mode=none" 2>&1 >/dev/null | FileCheck %s --check-prefix NONE
// RUN: dtc-opt %s --dtc-recompute-activations="mode=none schedule=gpipe" 2>&1 >/dev/null | FileCheck %s --check-prefix GPIPE
// RUN: dtc-opt %s --dtc-recompute-activations="mode=auto keep-bytes=0,1000000" 2>/dev/null | FileCheck %s --check-prefix FIRST
// RUN: dtc-opt %s --dtc-recompute-activations="mode=auto keep-bytes=1000000,0" 2>/dev/null | FileCheck %s --check-prefix SECOND
// RUN: dtc-opt %s --dtc-recompute-activations="mode=auto keep-bytes=0" 2>/dev/null | FileCheck %s --check-prefix BOTH

// Two values of 16 KiB each; the first device has two microbatches of four in flight with 1F1B, all four with GPipe.
// NONE: device 0 of the pipeline keeps 65536 of 65536 bytes
// NONE: device 1 of the pipeline keeps 32768 of 32768 bytes
// GPIPE: device 0 of the pipeline keeps 131072 of 131072 bytes
// GPIPE: device 1 of the pipeline keeps 131072 of 131072 bytes

// The bound of each device by itself; the last holds for those that follow. The loop stays.
// FIRST: dist.microbatch_loop
// FIRST: dtc.exp {{.*}}<1 forward>
// FIRST-NOT: <1 backward>} : tensor<64x64xf32>{{$}}
// FIRST: dtc.mul {{.*}}<1 backward>
// FIRST: dtc.exp {{.*}}<0 backward>
// SECOND: dist.microbatch_loop
// SECOND: dtc.exp {{.*}}<1 backward>
// SECOND-NOT: dtc.exp {{.*}}<0 backward>
// BOTH: dtc.exp {{.*}}<1 backward>
// BOTH: dtc.exp {{.*}}<0 backward>
dist.mesh @mesh <"pp"=2 pipeline, "micro"=4 temporal>
func.func @stages(%x: tensor<64x64xf32> {dtc.input = "x"}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<64x64xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32> {
    %a0 = dtc.mul %x, %w {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %e0 = dtc.exp %a0 {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %y0 = dtc.add %e0, %w {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %a1 = dtc.mul %y0, %w {dist.stage = #dist.stage<1 forward>} : tensor<64x64xf32> loc("h.1.mlp")
    %e1 = dtc.exp %a1 {dist.stage = #dist.stage<1 forward>} : tensor<64x64xf32> loc("h.1.mlp")
    %d1 = dtc.mul %a1, %e1 {dist.stage = #dist.stage<1 backward>} : tensor<64x64xf32> loc("h.1.mlp")
    %d0 = dtc.mul %d1, %e0 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    %d = dtc.mul %d0, %a0 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    dist.yield %d : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}
