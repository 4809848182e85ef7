//===- DeviceTimeTest.cpp - Tests of the costs of kernels -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/DeviceTime.h"

#include <gtest/gtest.h>

namespace deviceTimeTest {

using namespace dtc;
namespace cluster = dtc::cluster;

namespace {

/// 108 units of 1000 FLOP/s each; 10 bytes a second.
cluster::DeviceKind device() {
  cluster::DeviceKind device;
  device.set_memory_bandwidth(10);
  device.set_compute_units(108);
  cluster::MatrixRate &rate = *device.add_matrix();
  rate.set_dtype("f32");
  rate.set_flops(108e3);
  return device;
}

cluster::DeviceKind tiled(int64_t rows, int64_t columns, double efficiency = 0, double ramp = 0) {
  cluster::DeviceKind result = device();
  cluster::Tile &tile = *result.mutable_matrix(0)->add_tiles();
  tile.set_rows(rows);
  tile.set_columns(columns);
  tile.set_efficiency(efficiency);
  result.mutable_matrix(0)->set_tile_ramp(ramp);
  return result;
}

double seconds(const cluster::DeviceKind &device, const MatrixShape &shape,
               DType dtype = DType::F32) {
  return productSeconds(device, dtype, shape);
}

} // namespace

TEST(DeviceTime, ShapesOfEinsums) {
  std::optional<MatrixShape> shape = matrixShape("bsd,df->bsf", {2, 3, 5}, {5, 7});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->batch, 1);
  EXPECT_EQ(shape->rows, 6);
  EXPECT_EQ(shape->depth, 5);
  EXPECT_EQ(shape->columns, 7);
  EXPECT_EQ(shape->flops(), 2 * 6 * 5 * 7);
  shape = matrixShape("bsd,bfd->bsf", {2, 3, 5}, {2, 7, 5});
  EXPECT_EQ(shape->batch, 2);
  EXPECT_EQ(shape->rows, 3);
  // Letters of one operand alone, and none at all.
  shape = matrixShape("bs,->bs", {2, 3}, {});
  EXPECT_EQ(shape->rows, 6);
  EXPECT_EQ(shape->columns * shape->depth * shape->batch, 1);
  EXPECT_EQ(matrixShape(",->", {}, {})->flops(), 2);
}

TEST(DeviceTime, OperandsOfEinsumsThatLieTransposed) {
  auto isTransposed = [](const char *equation) {
    return matrixShape(equation, {2, 3, 5}, {2, 3, 7})->isTransposed;
  };
  // The gradient of weights, and the same written the other way around.
  EXPECT_TRUE(isTransposed("bsd,bsf->df"));
  EXPECT_TRUE(isTransposed("bsd,bsf->fd"));
  std::optional<MatrixShape> shape = matrixShape("bsd,bsf->fd", {2, 3, 5}, {2, 3, 7});
  EXPECT_EQ(shape->rows, 7);
  EXPECT_EQ(shape->columns, 5);
  EXPECT_EQ(shape->depth, 6);
  // A layer, its gradient, and its result written the other way around.
  EXPECT_FALSE(matrixShape("bsd,df->bsf", {2, 3, 5}, {5, 7})->isTransposed);
  EXPECT_FALSE(matrixShape("bsf,df->bsd", {2, 3, 7}, {5, 7})->isTransposed);
  EXPECT_TRUE(matrixShape("bsd,df->fbs", {2, 3, 5}, {5, 7})->isTransposed);
  EXPECT_FALSE(matrixShape("bsd,fd->fbs", {2, 3, 5}, {7, 5})->isTransposed);
  // Scores of heads, whose letters are in both operands and in the result.
  EXPECT_FALSE(matrixShape("bshe,bthe->bhst", {2, 3, 4, 5}, {2, 6, 4, 5})->isTransposed);
  // Without a sum, or without rows.
  EXPECT_FALSE(matrixShape("a,b->ab", {2}, {3})->isTransposed);
  EXPECT_FALSE(matrixShape("a,ab->b", {2}, {2, 3})->isTransposed);
  EXPECT_FALSE(matrixShape("ab,b->a", {2, 3}, {3})->isTransposed);
}

TEST(DeviceTime, EquationsThatAreNone) {
  for (const char *equation : {"", "ab", "ab,bc", "ab->ac", "->ab,bc", "aB,bc->ac", "ab,bc->a1",
                               "a,bc->ac", "ab,bcd->ac", "ab,bc,cd->ad", "ab,b\xe4->a"})
    EXPECT_FALSE(matrixShape(equation, {2, 3}, {3, 5})) << equation;
  EXPECT_TRUE(matrixShape("ab,bc->ac", {2, 3}, {3, 5}));
}

TEST(DeviceTime, ProductsWithoutTilesTakeTheirFlops) {
  cluster::DeviceKind plain = device();
  EXPECT_DOUBLE_EQ(seconds(plain, {1, 100, 200, 300}), 2 * 100 * 200 * 300 / 108e3);
  plain.mutable_matrix(0)->set_sustained(0.5);
  EXPECT_DOUBLE_EQ(seconds(plain, {3, 100, 200, 300}), 3 * 2 * 100 * 200 * 300 / 54e3);
  EXPECT_EQ(seconds(plain, {3, 100, 0, 300}), 0);
}

/// 108 tiles are one wave, 109 are two.
TEST(DeviceTime, Waves) {
  cluster::DeviceKind tiles = tiled(8, 4);
  double wave = 2 * 8 * 4 * 100 / 1e3;
  EXPECT_DOUBLE_EQ(seconds(tiles, {1, 8 * 108, 4, 100}), wave);
  EXPECT_DOUBLE_EQ(seconds(tiles, {1, 8 * 108 - 7, 3, 100}), wave);
  EXPECT_DOUBLE_EQ(seconds(tiles, {1, 8 * 109, 4, 100}), 2 * wave);
  EXPECT_DOUBLE_EQ(seconds(tiles, {109, 8, 4, 100}), 2 * wave);
  EXPECT_DOUBLE_EQ(seconds(tiles, {1, 8 * 12, 4 * 9, 100}), wave);
  // A tile may lie on its side.
  EXPECT_DOUBLE_EQ(seconds(tiles, {1, 4, 8 * 108, 100}), wave);
  EXPECT_DOUBLE_EQ(seconds(tiled(8, 4, 0.5), {1, 8 * 108, 4, 100}), 2 * wave);
  EXPECT_DOUBLE_EQ(seconds(tiled(8, 4, 0, 25), {1, 8 * 108, 4, 100}), 1.25 * wave);
}

TEST(DeviceTime, TheBestTileIsTaken) {
  cluster::DeviceKind both = tiled(8, 4);
  cluster::Tile &small = *both.mutable_matrix(0)->add_tiles();
  small.set_rows(4);
  small.set_columns(4);
  small.set_efficiency(0.8);
  // 109 large tiles are two waves, 218 small ones three, of 0.5 / 0.8 each.
  EXPECT_DOUBLE_EQ(seconds(both, {109, 8, 4, 100}), 3 * 2 * 4 * 4 * 100 / 800.0);
  EXPECT_DOUBLE_EQ(seconds(both, {108, 8, 4, 100}), 2 * 8 * 4 * 100 / 1e3);
}

/// Where few tiles leave units idle, the sum is cut into parts of 512 and more.
TEST(DeviceTime, SumsInParts) {
  cluster::DeviceKind tiles = tiled(8, 4);
  auto ofSum = [&](double batch, double depth) { return seconds(tiles, {batch, 8, 4, depth}); };
  double step = 2 * 8 * 4 / 1e3;
  EXPECT_DOUBLE_EQ(ofSum(1, 1023), 1023 * step);
  EXPECT_DOUBLE_EQ(ofSum(1, 1024), 512 * step);
  EXPECT_DOUBLE_EQ(ofSum(27, 4096), 1024 * step); // 4 units for a tile
  EXPECT_DOUBLE_EQ(ofSum(55, 4096), 4096 * step);
  EXPECT_DOUBLE_EQ(ofSum(54, 4097), 2049 * step);
}

/// Each element of a matrix is used once: reading it takes the time.
TEST(DeviceTime, ProductsWithVectorsAreBoundByMemory) {
  EXPECT_EQ(seconds(tiled(8, 4), {5, 1, 400, 300}), 0);
  EXPECT_EQ(seconds(device(), {5, 400, 1, 300}), 0);
  EXPECT_GT(seconds(device(), {5, 2, 2, 300}), 0);
  EXPECT_DOUBLE_EQ(memorySeconds(device(), 50), 5);
}

TEST(DeviceTime, ElementTypesWithoutARateAreThoseOfF32) {
  cluster::DeviceKind two = device();
  cluster::MatrixRate &half = *two.add_matrix();
  half.set_dtype("bf16");
  half.set_flops(216e3);
  EXPECT_DOUBLE_EQ(seconds(two, {1, 9, 9, 9}, DType::BF16), 2 * 729 / 216e3);
  EXPECT_DOUBLE_EQ(seconds(two, {1, 9, 9, 9}, DType::F16), 2 * 729 / 108e3);
  two.mutable_matrix()->DeleteSubrange(0, 1); // no f32 either: the types that are left
  EXPECT_DOUBLE_EQ(seconds(two, {1, 9, 9, 9}, DType::F16), 2 * 729 / 216e3);
  EXPECT_DOUBLE_EQ(peakFlops(two, "f16"), 216e3);
  EXPECT_DOUBLE_EQ(peakFlops(device(), "bf16"), 108e3);
}

TEST(DeviceTime, MeasuredProducts) {
  cluster::DeviceKind measured = device();
  cluster::MatrixTable &table = *measured.mutable_matrix(0)->mutable_table();
  table.add_rows(8);
  table.add_columns(8);
  table.add_depths(8);
  table.add_flops(4e3);
  EXPECT_DOUBLE_EQ(seconds(measured, {3, 100, 20, 30}), 3 * 2 * 100 * 20 * 30 / 4e3);
  EXPECT_EQ(peakFlops(measured, "f32"), 108e3);
  measured.mutable_matrix(0)->set_flops(0);
  EXPECT_EQ(peakFlops(measured, "f32"), 4e3);
  // Transposed ones have a table of their own, where there is one.
  EXPECT_DOUBLE_EQ(seconds(measured, {1, 10, 20, 30, true}), 2 * 10 * 20 * 30 / 4e3);
  cluster::DeviceKind both = measured;
  *both.mutable_matrix(0)->mutable_transposed_table() = table;
  both.mutable_matrix(0)->mutable_transposed_table()->set_flops(0, 5e3);
  EXPECT_DOUBLE_EQ(seconds(both, {1, 10, 20, 30, true}), 2 * 10 * 20 * 30 / 5e3);
  EXPECT_DOUBLE_EQ(seconds(both, {1, 10, 20, 30}), 2 * 10 * 20 * 30 / 4e3);
  EXPECT_EQ(peakFlops(both, "f32"), 5e3);
  // Attention is a part of the best products.
  EXPECT_DOUBLE_EQ(kernelSeconds(measured, {"attention", DType::F32, 2400, 0}), 2400 / (0.6 * 4e3));
}

/// Between the points of a table the time is that of waves of tiles.
TEST(DeviceTime, MeasuredProductsWithTiles) {
  cluster::DeviceKind measured = tiled(8, 8);
  cluster::MatrixTable &table = *measured.mutable_matrix(0)->mutable_table();
  for (int64_t rows : {8 * 108, 8 * 108 * 4})
    table.add_rows(rows);
  table.add_columns(8);
  table.add_depths(8);
  for (double flops : {4e3, 4e3})
    table.add_flops(flops);
  // Two whole waves, and one tile more than that.
  EXPECT_DOUBLE_EQ(seconds(measured, {1, 8 * 216, 8, 8}), 2. * 8 * 216 * 8 * 8 / 4e3);
  EXPECT_DOUBLE_EQ(seconds(measured, {1, 8 * 217, 8, 8}), 2. * 8 * 324 * 8 * 8 / 4e3);
  // At a point nothing but the table counts.
  table.set_flops(1, 5e3);
  EXPECT_DOUBLE_EQ(seconds(measured, {1, 8 * 432, 8, 8}), 2. * 8 * 432 * 8 * 8 / 5e3);
}

TEST(DeviceTime, Kernels) {
  cluster::DeviceKind plain = device();
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"softmax", DType::F32, 1e9, 50}), 5);
  // Attention has products inside: bytes or FLOPs, what takes longer.
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"attention", DType::F32, 0.6 * 108e3 * 7, 50}), 7);
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"attention_grad", DType::F32, 1, 50}), 5);
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"cached_attention", DType::F32, 0.6 * 108e3 * 7, 50}), 7);

  cluster::KernelRate &any = *plain.add_kernels();
  any.set_kernel("attention");
  any.set_flops(1e3);
  cluster::KernelRate &half = *plain.add_kernels();
  half.set_kernel("attention");
  half.set_dtype("bf16");
  half.set_flops(2e3);
  EXPECT_EQ(findKernelRate(plain, "attention", DType::BF16), &plain.kernels(1));
  EXPECT_EQ(findKernelRate(plain, "attention", DType::F32), &plain.kernels(0));
  EXPECT_EQ(findKernelRate(plain, "softmax", DType::F32), nullptr);
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"attention", DType::F32, 9e3, 50}), 9);
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"attention", DType::BF16, 18e3, 50}), 9);

  cluster::KernelRate &softmax = *plain.add_kernels();
  softmax.set_kernel("softmax");
  softmax.add_points()->set_bytes(50);
  softmax.mutable_points(0)->set_seconds(20);
  EXPECT_DOUBLE_EQ(kernelSeconds(plain, {"softmax", DType::F32, 1e9, 100}), 40);
}

} // namespace deviceTimeTest
