//===- DeviceCalibrationTest.cpp - Measuring a GPU ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibration.h"

#include "runtime/backends/cuda/CudaBackend.h"
#include "runtime/calibrate/QueueTimer.h"
#include "runtime/fabrics/nccl/NcclFabric.h"
#include "simulator/Simulation.h"
#include "simulator/cluster/ClusterReader.h"
#include "test/lib/plans/AsyncBackend.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace deviceCalibrationTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The same as on a GPU, but for the sizes.
CalibrationOptions tinyOptions() {
  CalibrationOptions options = gpuCalibrationOptions();
  options.dtypes = {DType::F32, DType::BF16};
  options.rows = {16, 32};
  options.columns = {16, 64};
  options.depths = {16};
  options.gradientSizes = {8, 64};
  options.largestSizeOfF32 = 32;
  options.kernelBytes = {2 << 10, 16 << 10};
  options.attentionBytes = {4 << 10};
  options.shortAttention = {1, 2, 8, 8};
  options.longAttention = {1, 2, 16, 8};
  options.secondsPerPoint = 1e-6;
  options.workingSetBytes = options.productSetBytes = 8 << 10;
  options.warmUpSeconds = 0;
  return options;
}

class DeviceCalibration : public ::testing::Test {
protected:
  std::shared_ptr<const Backend> backend = createCudaBackend();
};

} // namespace

TEST_F(DeviceCalibration, HasAllCallsOfAGpu) {
  CalibrationOptions options = gpuCalibrationOptions();
  for (DType dtype : options.dtypes) {
    for (const KernelCase &kernel : kernelCases()) {
      if (dtype != DType::F32 && !kernel.in16Bits)
        continue;
      for (int64_t bytes : options.kernelBytes)
        for (const KernelSignature &call : callsOfSize(kernel, dtype, bytes))
          EXPECT_OK(backend->prepare(call));
    }
    for (bool grad : {false, true})
      EXPECT_OK(backend->prepare(attentionCall(grad, dtype, options.longAttention)));
  }
}

TEST_F(DeviceCalibration, IsAClusterWithAllKernels) {
  Expected<cluster::Cluster> cluster = calibrate(tinyOptions(), backend, nullptr);
  ASSERT_OK(cluster);
  EXPECT_OK(checkCluster(*cluster));
  Expected<cluster::Cluster> read = parseCluster(formatCluster(*cluster));
  ASSERT_OK(read);
  EXPECT_EQ(formatCluster(*read), formatCluster(*cluster));

  const cluster::DeviceKind &device = cluster->devices(0);
  EXPECT_EQ(device.name(), (*backend->openDevice(0))->model());
  EXPECT_TRUE(device.fuses_calls());
  EXPECT_TRUE(device.bias_grad_kernels());
  EXPECT_GT(device.memory_bytes(), 0);
  EXPECT_GT(device.usable_memory(), 0);
  EXPECT_LE(device.usable_memory(), 1);
  EXPECT_GT(device.memory_bandwidth(), 0);
  EXPECT_GT(device.launch_seconds(), 0);

  ASSERT_EQ(device.matrix_size(), 2);
  // f32 leaves out what is larger than 32.
  EXPECT_EQ(device.matrix(0).table().flops_size(), 2);
  EXPECT_EQ(device.matrix(0).transposed_table().flops_size(), 1);
  EXPECT_EQ(device.matrix(1).table().flops_size(), 4);
  EXPECT_EQ(device.matrix(1).transposed_table().flops_size(), 8);
  for (const cluster::MatrixRate &rate : device.matrix())
    for (const auto *table : {&rate.table(), &rate.transposed_table()})
      for (double flops : table->flops())
        EXPECT_GT(flops, 0) << rate.dtype();

  std::set<std::string> kernels;
  for (const cluster::KernelRate &rate : device.kernels()) {
    kernels.insert(rate.kernel() + " " + rate.dtype());
    EXPECT_GE(rate.points_size(), 1) << rate.kernel();
    EXPECT_EQ(rate.flops() > 0, rate.kernel().starts_with("attention")) << rate.kernel();
    for (const cluster::TimePoint &point : rate.points())
      EXPECT_GT(point.seconds(), 0) << rate.kernel();
  }
  for (const KernelCase &kernel : kernelCases())
    EXPECT_EQ(kernels.count(std::string(kernel.name) + " f32"), 1u) << kernel.name;
  for (const char *kernel : {"attention f32", "attention bf16", "attention_grad bf16", "add bf16"})
    EXPECT_EQ(kernels.count(kernel), 1u) << kernel;

  const cluster::NodeKind &node = cluster->node_kinds(0);
  EXPECT_EQ(node.devices(), 1);
  EXPECT_EQ(node.shared_cores(), 0);
  EXPECT_FALSE(node.has_link());

  std::string table = calibrationTable(*cluster);
  for (const char *part : {"a launch", "products of bf16", "attention_grad of f32", "512.0 MiB",
                           "links between GPUs are not measured"})
    EXPECT_TRUE(contains(table, part));

  Expected<Simulation> simulation = simulateOnCluster(*trainingPlan(), *cluster);
  ASSERT_OK(simulation);
  EXPECT_GT(simulation->stepSeconds, 0);
}

TEST_F(DeviceCalibration, SeveralAreConnected) {
  CalibrationOptions options = tinyOptions();
  options.devices = 2;
  EXPECT_ERROR(calibrate(options, backend, nullptr), "nothing connects them");
  options.dtypes = {DType::F32};
  options.members = {2, 4};
  options.collectiveBytes = {64, 4 << 10};
  options.openFabric = [](const Mesh &mesh) { return openNcclFabric(mesh, nullptr); };
  options.devices = 3;
  EXPECT_ERROR(calibrate(options, backend, nullptr), "which sees 2 GPUs");
  options.devices = 2;
  Expected<cluster::Cluster> cluster = calibrate(options, backend, nullptr);
  ASSERT_OK(cluster);
  EXPECT_OK(checkCluster(*cluster));
  const cluster::NodeKind &node = cluster->node_kinds(0);
  EXPECT_EQ(node.devices(), 2);
  EXPECT_GT(node.link().bandwidth(), 0);
  ASSERT_EQ(node.link().collectives_size(), static_cast<int>(kAllCollectiveKinds.size()));
  for (const cluster::CollectiveTable &collective : node.link().collectives()) {
    EXPECT_EQ(collective.members(), 2);
    ASSERT_EQ(collective.points_size(), 2) << collective.kind();
    EXPECT_GT(collective.points(0).seconds(), 0) << collective.kind();
  }
  EXPECT_FALSE(contains(calibrationTable(*cluster), "not measured"));
  Expected<Simulation> simulation = simulateOnCluster(*trainingPlan({.dp = 2}), *cluster);
  ASSERT_OK(simulation);
  EXPECT_GT(simulation->stepSeconds, 0);
}

TEST_F(DeviceCalibration, WritesAFile) {
  TempDir dir;
  FILE *out = std::tmpfile(), *err = std::tmpfile();
  CalibrationOptions options = tinyOptions();
  options.dtypes = {DType::F32};
  options.remarks = {"Products of f32 round their operands to TF32."};
  EXPECT_OK(calibrateToFile(options, dir.path("c.textproto"), backend, out, err));
  std::string text = dir.read("c.textproto");
  EXPECT_TRUE(text.starts_with("# Measured by dtc-run calibrate on one "));
  EXPECT_TRUE(contains(text, "\n# Products of f32 round their operands to TF32.\n\n"));
  EXPECT_OK(readCluster(dir.path("c.textproto")));
  EXPECT_GT(std::ftell(out), 0);
  EXPECT_GT(std::ftell(err), 0);
  std::fclose(out);
  std::fclose(err);
}

TEST_F(DeviceCalibration, LaunchesAreNoWorkOfCalls) {
  CalibrationOptions options = tinyOptions();
  std::unique_ptr<Device> device = std::move(*backend->openDevice(0));
  Expected<std::unique_ptr<QueueTimer>> timer = QueueTimer::open(options, *backend, *device);
  ASSERT_OK(timer);
  TensorType x{DType::F32, {8}};
  std::vector<KernelSignature> calls = {{"add", {x, x}, {x}, {}, {}}};
  Expected<double> launch = (*timer)->measureLaunch();
  ASSERT_OK(launch);
  EXPECT_GT(*launch, 0);
  Expected<double> work = (*timer)->secondsOf(calls, {});
  ASSERT_OK(work);
  EXPECT_GT(*work, 0);
}

TEST_F(DeviceCalibration, ErrorsOfTheDevice) {
  CalibrationOptions options = tinyOptions();
  // More than the GPU has.
  options.rows = {1 << 20};
  options.depths = {1 << 20};
  EXPECT_ERROR(calibrate(options, backend, nullptr), "cannot allocate");
  EXPECT_ERROR(calibrate(tinyOptions(), createAsyncBackend(), nullptr), "no graphs");
}

} // namespace deviceCalibrationTest
