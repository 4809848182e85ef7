//===- Generator.h - A random graph while it grows ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_GENERATOR_H
#define DTC_TEST_RANDOM_GENERATOR_H

#include "test/random/RandomGraph.h"
#include "test/random/RandomModel.h"
#include "test/random/RandomPipeline.h"

#include <random>

namespace dtc::test {

/// Makes the text of a graph twice, plain and with shardings.
///
/// A graph may have a temporal axis. It then has a batch, whose size no other dimension has, so
/// that a dimension of that size is the batch. Wherever a sharding is written, the batch is split
/// over the same axes, the temporal one last. Ops pass the batch through; it is summed at the end,
/// and ops after that use sums only, as microbatches cannot.
///
/// A model (runModel) may mix samples: to its ops the batch is a dimension like any other.
class Generator {
public:
  explicit Generator(uint64_t seed) : engine(seed) {}
  RandomGraph run();
  RandomPipeline runPipeline();
  RandomModel runModel();

private:
  using Shape = std::vector<int64_t>;
  using Step = void (Generator::*)();
  struct Axis {
    std::string name;
    int64_t size;
  };
  struct Value {
    std::string name;
    Shape shape;
    bool used = false;
    bool trains = false; ///< is or depends on what may be a parameter
  };

  int64_t pick(int64_t low, int64_t high) {
    return low + int64_t(engine() % uint64_t(high - low + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <typename T> const T &oneOf(const std::vector<T> &list) {
    return list[pick(0, list.size() - 1)];
  }
  bool isBatch(int64_t size) const { return !mixesSamples && size == batch; }
  bool hasBatch(const Shape &shape) const;

  static std::string type(const Shape &shape, const char *element = "f64");
  /// "low, high, low": a list of numbers.
  static std::string list(const Shape &numbers);
  static std::string letters(const Shape &shape);
  /// The functions that add ops of one kind. Each is listed as often as its weight in a draw.
  static const std::vector<Step> &allSteps();
  void makeMesh();
  std::string sharding(const Shape &shape);
  /// The annotation of a value of the sharded form: a sharding, or for a pipeline logical axes.
  std::string annotation(const Shape &shape);
  std::string logicalAxes(const Shape &shape);
  /// Whether an argument of a model that mixes samples is data, of a batch of them.
  bool isData(const Shape &shape) const { return !shape.empty() && shape[0] == batch; }
  /// Chooses the pipeline and the batch; returns the number of stages.
  int64_t makePipeline(RandomPipeline &pipeline);
  void growModel(int64_t steps);
  int64_t randomSize();
  Shape randomShape(int64_t rank);
  size_t argument(const Shape &shape, const char *element = "f64");
  /// The name of a new argument of indices in [0, limit).
  std::string indexArgument(const Shape &shape, int64_t limit);
  /// A new constant of few values, so that CSE finds equal ones.
  size_t constant(const Shape &shape);
  /// A value of that shape: an existing one where there is one, else a new argument; of a model
  /// also a constant.
  size_t valueOf(const Shape &shape);
  size_t anyValue(int64_t minRank, int64_t maxRank = 4);
  /// A value whose last dimension an op may need whole.
  size_t rows(int64_t minRank);
  /// `op` is the text with @ where an op of one result has its attribute dictionary. Its results
  /// that are to be used have the given shapes.
  void append(const std::string &op, const std::vector<Shape> &shapes, int64_t numResults = 1);
  /// Whether the text names a value that depends on what may be a parameter.
  bool namesTrained(const std::string &op) const;
  std::string use(size_t index) {
    values[index].used = true;
    return values[index].name;
  }

  void elementwise();
  void select();
  void einsum();
  void reduce();
  void reshape();
  void transpose();
  void broadcast();
  void sliceOrPad();
  void concat();
  void layerNorm();
  void rmsNorm();
  void softmax();
  void indexed();
  void embeddingOfSamples();
  void embeddingGrad();
  /// Takes the largest elements of rows, or the rows of tables at their places.
  void route();
  void crossEntropy();
  void attention();
  /// Convolves, with groups or without.
  void convolve();
  void maxPool();

  std::string signature(bool sharded, bool parameters) const;
  void finish();
  void makeFunctions();

  std::mt19937_64 engine;
  RandomGraph graph;
  std::vector<Axis> axes;             ///< spatial ones
  std::vector<std::string> batchAxes; ///< with a temporal axis, what splits the batch
  int64_t batch = 0;
  bool mixesSamples = false;
  bool forPipeline = false; ///< long chains of ops of the batch, and logical axes for shardings
  std::vector<Value> values;
  struct Argument {
    std::string name, type, annotation; ///< may be empty
    bool mayBeParameter;
  };
  std::vector<Argument> arguments;
  std::string body[2];        ///< plain, sharded
  std::vector<Value> results; ///< what @f returns
  std::vector<Value> ends;    ///< values that nothing uses
  std::string sums[2];        ///< of @f alone: what comes after the sums over the batch
  int64_t numbers = 0;
};

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_GENERATOR_H
