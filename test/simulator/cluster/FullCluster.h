//===- FullCluster.h - A cluster with every field -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_SIMULATOR_CLUSTER_FULLCLUSTER_H
#define DTC_TEST_SIMULATOR_CLUSTER_FULLCLUSTER_H

namespace dtc::runtime::testing {

/// A text in which every field of the schema is given and is not 0. Two kinds of devices in two
/// kinds of nodes, 3 nodes in all.
inline constexpr const char *kFullClusterText = R"(
# A cluster of 3 nodes.
name: "full"
devices {
  name: "fast"
  memory_bytes: 8e10
  memory_bandwidth: 1.5e12
  matrix {
    dtype: "bf16"
    flops: 3e14
    sustained: 0.85
    tiles { rows: 256 columns: 128 efficiency: 1 }
    tiles { rows: 64 columns: 64 efficiency: 0.5 }
    tile_ramp: 64
  }
  matrix {
    dtype: "f32"
    table { rows: [1, 64] columns: [1, 32, 64] depths: 128 flops: [1e9, 2e9, 3e9, 4e9, 5e9, 6e9] }
    transposed_table { rows: [8, 64] columns: 64 depths: 128 flops: [1e9, 2e9] }
  }
  compute_units: 108
  launch_seconds: 3e-6
  kernels { kernel: "attention" dtype: "bf16" flops: 1.5e14 }
  kernels {
    kernel: "attention"
    points { bytes: 1024 seconds: 1e-6 }
    points { bytes: 4096 seconds: 2e-6 }
  }
  fuses_pointwise: true
  gelu_epilogue_seconds: 1e-12
  bias_grad_kernels: true
  usable_memory: 0.9
  busy_watts: 400
  idle_watts: 60
  price_per_hour: 2.5
  overlap_slowdown: 0.1
}
devices {
  name: "slow"
  memory_bytes: 4e10
  memory_bandwidth: 1e12
  matrix { dtype: "f32" flops: 1e13 }
}
node_kinds {
  name: "four"
  device: "fast"
  devices: 4
  link {
    bandwidth: 3e11
    sustained: 0.8
    latency: 5e-6
    arrival_skews { members: 3 work_seconds: 2e-3 wait_seconds: 1e-4 }
    collectives {
      kind: "all_reduce"
      members: 2
      points { bytes: 1024 seconds: 1e-5 }
      points { bytes: 1048576 seconds: 1e-4 }
    }
    collectives { kind: "all_reduce" members: 4 points { bytes: 1024 seconds: 2e-5 } }
    collectives { kind: "transfer" members: 2 points { bytes: 1024 seconds: 2e-5 } }
  }
  shared_cores: 16
  watts: 2000
  device_network_bandwidth: 2.5e10
  network_bandwidth: 1e11
  host: "slow"
  host_link { bandwidth: 2.5e10 sustained: 0.8 latency: 1e-5 }
  host_memory_bytes: 1e12
}
node_kinds { name: "one" device: "slow" devices: 1 network_bandwidth: 1e10 }
nodes { node: "four" count: 2 }
nodes { node: "one" count: 1 }
network { latency: 1e-5 sustained: 0.9 oversubscription: 2 }
grams_co2_per_kwh: 400
power_usage_effectiveness: 1.2
)";

} // namespace dtc::runtime::testing

#endif // DTC_TEST_SIMULATOR_CLUSTER_FULLCLUSTER_H
