//===- CalibrationTest.cpp - Measuring a machine --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibration.h"

#include "runtime/backends/Device.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/calibrate/KernelCases.h"
#include "runtime/calibrate/Measurements.h"
#include "runtime/calibrate/Rounds.h"
#include "simulator/cluster/ClusterReader.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace calibrationTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// All of docs/kernels.md that takes time; einsum is in tables of its own.
const std::set<std::string> kKernelsWithTimes = {"neg",
                                                 "abs",
                                                 "exp",
                                                 "log",
                                                 "sqrt",
                                                 "rsqrt",
                                                 "tanh",
                                                 "sigmoid",
                                                 "softplus",
                                                 "relu",
                                                 "silu",
                                                 "gelu",
                                                 "gelu_grad",
                                                 "silu_grad",
                                                 "add",
                                                 "sub",
                                                 "mul",
                                                 "div",
                                                 "maximum",
                                                 "minimum",
                                                 "compare",
                                                 "select",
                                                 "convert",
                                                 "fill",
                                                 "copy",
                                                 "broadcast",
                                                 "transpose",
                                                 "slice",
                                                 "pad",
                                                 "concat",
                                                 "zigzag",
                                                 "reduce",
                                                 "shard_slice",
                                                 "mask_padding",
                                                 "accumulate",
                                                 "quantize_blocks",
                                                 "dequantize_blocks",
                                                 "embedding",
                                                 "embedding_grad",
                                                 "pick",
                                                 "pick_grad",
                                                 "top_k",
                                                 "nonzero",
                                                 "softmax",
                                                 "softmax_grad",
                                                 "layer_norm",
                                                 "layer_norm_grad",
                                                 "rms_norm",
                                                 "rms_norm_grad",
                                                 "dropout",
                                                 "random_uniform",
                                                 "rotary",
                                                 "attention",
                                                 "cached_attention",
                                                 "cache_update",
                                                 "select_row",
                                                 "attention_grad",
                                                 "merge_attention",
                                                 "max_pool",
                                                 "max_pool_grad",
                                                 "cross_entropy",
                                                 "cross_entropy_grad",
                                                 "adamw",
                                                 "adam",
                                                 "sgd",
                                                 "lion"};

CalibrationOptions tinyOptions() {
  CalibrationOptions options;
  options.devices = 3;
  options.dtypes = {DType::F32, DType::BF16};
  options.rows = {1, 4};
  options.columns = {1, 4};
  options.depths = {8, 16};
  options.gradientSizes = {2, 8, 16};
  options.kernelBytes = {256, 2048};
  options.collectiveBytes = {64, 1024};
  options.members = {2, 3, 4};
  options.rounds = 2;
  options.secondsPerPoint = 1e-6;
  options.patienceSeconds = 0.1;
  options.workingSetBytes = options.productSetBytes = 4096;
  return options;
}

/// Refuses all kernels.
class NoBackend : public Backend {
public:
  std::string name() const override { return "none"; }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &) const override {
    return Error{"there are no kernels"};
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t) const override {
    return Error{"there are no devices"};
  }
};

cluster::TimePoint pointOf(double bytes, double seconds) {
  cluster::TimePoint point;
  point.set_bytes(bytes);
  point.set_seconds(seconds);
  return point;
}

} // namespace

TEST(KernelCases, AreCallsOfTheContract) {
  std::unique_ptr<Backend> backend = createCpuBackend();
  for (const KernelCase &kernel : kernelCases())
    for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
      if (dtype != DType::F32 && !kernel.in16Bits)
        continue;
      double before = 0;
      for (int64_t bytes : {512, 32 << 10, 2 << 20}) {
        std::vector<KernelSignature> calls = callsOfSize(kernel, dtype, bytes);
        ASSERT_FALSE(calls.empty());
        for (const KernelSignature &call : calls) {
          EXPECT_EQ(call.kernel, kernel.name);
          EXPECT_OK(backend->prepare(call));
        }
        EXPECT_GE(meanBytes(calls), before) << kernel.name;
        before = meanBytes(calls);
      }
      // The calls have what they were asked for, but for a row, which may be of a whole cache.
      EXPECT_LE(before, 2 << 20) << kernel.name;
      EXPECT_GE(before, 0.7 * (2 << 20)) << kernel.name;
    }
}

TEST(KernelCases, AttentionHasTheFlopsOfPlans) {
  // 2 products of [128 x 32] by [32 x 128] for 16 x 4 heads, half of them masked.
  EXPECT_EQ(attentionFlops(false, {16, 4, 128, 32}), 2.0 * 16 * 4 * 128 * 128 * 32);
  EXPECT_EQ(attentionFlops(true, {16, 4, 128, 32}), 5.0 * 16 * 4 * 128 * 128 * 32);
  std::unique_ptr<Backend> backend = createCpuBackend();
  for (bool grad : {false, true})
    EXPECT_OK(backend->prepare(attentionCall(grad, DType::BF16, {2, 3, 8, 4})));
}

TEST(Calibration, IsAClusterWithAllKernels) {
  Expected<cluster::Cluster> cluster = calibrate(tinyOptions(), createCpuBackend(), nullptr);
  ASSERT_OK(cluster);
  EXPECT_OK(checkCluster(*cluster));
  Expected<cluster::Cluster> read = parseCluster(formatCluster(*cluster));
  ASSERT_OK(read);
  EXPECT_EQ(formatCluster(*read), formatCluster(*cluster));

  const cluster::DeviceKind &device = cluster->devices(0);
  std::map<std::string, std::set<std::string>> kernels;
  for (const cluster::KernelRate &rate : device.kernels()) {
    EXPECT_TRUE(kernels[rate.dtype()].insert(rate.kernel()).second) << rate.kernel();
    EXPECT_GE(rate.points_size(), 1) << rate.kernel();
    EXPECT_EQ(rate.flops() > 0, rate.kernel().starts_with("attention")) << rate.kernel();
  }
  EXPECT_EQ(kernels["f32"], kKernelsWithTimes);
  EXPECT_EQ(kernels["bf16"].count("layer_norm_grad"), 1u);
  EXPECT_EQ(kernels["bf16"].count("adamw"), 0u);
  ASSERT_EQ(device.matrix_size(), 2);
  EXPECT_EQ(device.matrix(1).dtype(), "bf16");
  EXPECT_EQ(device.matrix(0).table().flops_size(), 8);
  EXPECT_EQ(device.matrix(0).transposed_table().flops_size(), 27);
  EXPECT_GT(device.memory_bandwidth(), 0);
  EXPECT_GT(device.launch_seconds(), 0);

  const cluster::NodeKind &node = cluster->node_kinds(0);
  EXPECT_EQ(node.devices(), 3);
  EXPECT_EQ(node.shared_cores(), usableCores());
  std::vector<std::string> tables;
  for (const cluster::CollectiveTable &table : node.link().collectives()) {
    tables.push_back(table.kind() + " " + std::to_string(table.members()));
    EXPECT_EQ(table.points_size(), 2) << tables.back();
  }
  EXPECT_EQ(tables, (std::vector<std::string>{"all_reduce 2", "all_reduce 3", "all_gather 2",
                                              "all_gather 3", "reduce_scatter 2",
                                              "reduce_scatter 3", "all_to_all 2", "all_to_all 3",
                                              "permute 2", "permute 3", "transfer 2"}));

  ASSERT_EQ(node.link().arrival_skews_size(), 2);
  EXPECT_EQ(node.link().arrival_skews(1).members(), 3);
  for (const cluster::ArrivalSkew &skew : node.link().arrival_skews())
    EXPECT_GT(skew.work_seconds(), 0);

  std::string table = calibrationTable(*cluster);
  for (const char *part :
       {"3 devices, ", "products of bf16", "attention_grad of f32", "    layer_norm_grad ",
        "all_gather of 3", "transfer of 2", "the last of 3 "})
    EXPECT_TRUE(contains(table, part));
}

TEST(Calibration, OneDeviceHasNoLink) {
  CalibrationOptions options = tinyOptions();
  options.devices = 1;
  options.threadsPerDevice = 2;
  options.dtypes = {DType::F32};
  Expected<cluster::Cluster> cluster = calibrate(options, createCpuBackend(), nullptr);
  ASSERT_OK(cluster);
  EXPECT_OK(checkCluster(*cluster));
  EXPECT_FALSE(cluster->node_kinds(0).has_link());
  EXPECT_EQ(cluster->devices(0).compute_units(), 2);
  EXPECT_EQ(cluster->node_kinds(0).shared_cores(), std::max<int64_t>(1, usableCores() / 2));
  EXPECT_FALSE(contains(calibrationTable(*cluster), "messages"));
}

TEST(Calibration, LinkIsALineThroughTheTimes) {
  auto fit = [](std::vector<cluster::TimePoint> points) {
    cluster::Link link;
    link.add_collectives()->set_kind("all_reduce");
    cluster::CollectiveTable &transfers = *link.add_collectives();
    transfers.set_kind("transfer");
    *transfers.mutable_points() = {points.begin(), points.end()};
    fitLink(link);
    return link;
  };
  cluster::Link line = fit({pointOf(1e3, 5.1e-6), pointOf(1e5, 15e-6), pointOf(1e7, 1005e-6)});
  EXPECT_NEAR(line.latency(), 5e-6, 1e-9);
  EXPECT_NEAR(line.bandwidth(), 1e10, 1e6);
  cluster::Link one = fit({pointOf(1e6, 1e-3)});
  EXPECT_EQ(one.latency(), 0);
  EXPECT_NEAR(one.bandwidth(), 1e9, 1);
  // Measured on a machine that did something else.
  cluster::Link falling = fit({pointOf(1e3, 9e-6), pointOf(1e4, 3e-6)});
  EXPECT_EQ(falling.latency(), 0);
  EXPECT_GT(falling.bandwidth(), 0);
  cluster::Link bent = fit({pointOf(1e3, 1e-6), pointOf(1e4, 90e-6)});
  EXPECT_EQ(bent.latency(), 0);
  EXPECT_GT(bent.bandwidth(), 0);
  cluster::Link none;
  fitLink(none);
  EXPECT_EQ(none.bandwidth(), 0);
}

TEST(Calibration, RoundsAreOneCluster) {
  auto round = [](double factor, double message) {
    cluster::Cluster cluster;
    cluster::DeviceKind &device = *cluster.add_devices();
    device.set_memory_bandwidth(10 * factor);
    device.set_launch_seconds(20 / factor);
    cluster::MatrixRate &rate = *device.add_matrix();
    rate.set_flops(30 * factor);
    rate.mutable_table()->add_flops(30 * factor);
    rate.mutable_table()->add_flops(7 / factor);
    rate.mutable_transposed_table()->add_flops(5 * factor);
    cluster::KernelRate &kernel = *device.add_kernels();
    kernel.set_flops(40 * factor);
    *kernel.add_points() = pointOf(8, 50 / factor);
    cluster::Link &link = *cluster.add_node_kinds()->mutable_link();
    *link.add_collectives()->add_points() = pointOf(16, message);
    link.add_arrival_skews()->set_wait_seconds(message / 2);
    link.mutable_arrival_skews(0)->set_work_seconds(factor);
    return cluster;
  };
  cluster::Cluster result = combineRounds({round(2, 9), round(4, 5), round(1, 6)});
  const cluster::DeviceKind &device = result.devices(0);
  EXPECT_EQ(device.memory_bandwidth(), 40);
  EXPECT_EQ(device.launch_seconds(), 5);
  EXPECT_EQ(device.matrix(0).flops(), 120);
  EXPECT_EQ(device.matrix(0).table().flops(0), 120);
  EXPECT_EQ(device.matrix(0).table().flops(1), 7);
  EXPECT_EQ(device.matrix(0).transposed_table().flops(0), 20);
  EXPECT_EQ(device.kernels(0).flops(), 160);
  EXPECT_EQ(device.kernels(0).points(0).seconds(), 12.5);
  EXPECT_EQ(device.kernels(0).points(0).bytes(), 8);
  EXPECT_EQ(result.node_kinds(0).link().collectives(0).points(0).seconds(), 6);
  EXPECT_EQ(result.node_kinds(0).link().arrival_skews(0).wait_seconds(), 3);
  EXPECT_EQ(result.node_kinds(0).link().arrival_skews(0).work_seconds(), 2);
  EXPECT_EQ(combineRounds({round(3, 1)}).devices(0).memory_bandwidth(), 30);
}

TEST(Calibration, FilesAreWholeOrNotThere) {
  TempDir dir;
  FILE *out = std::tmpfile();
  // The place is looked at before anything is measured.
  EXPECT_ERROR(calibrateToFile(tinyOptions(), dir.path("none/c.textproto"),
                               std::make_shared<NoBackend>(), out, nullptr),
               "none/c.textproto: ");
  EXPECT_ERROR(calibrateToFile(tinyOptions(), dir.path("c.textproto"),
                               std::make_shared<NoBackend>(), out, nullptr),
               "there are no devices");
  EXPECT_EQ(dir.numFiles(), 0u);
  EXPECT_EQ(std::ftell(out), 0);
  EXPECT_OK(
      calibrateToFile(tinyOptions(), dir.path("c.textproto"), createCpuBackend(), out, nullptr));
  EXPECT_EQ(dir.numFiles(), 1u);
  EXPECT_TRUE(dir.read("c.textproto").starts_with("# Measured by dtc-run calibrate on "));
  EXPECT_OK(readCluster(dir.path("c.textproto")));
  EXPECT_GT(std::ftell(out), 0);
  std::fclose(out);
}

} // namespace calibrationTest
