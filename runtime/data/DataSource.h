//===- DataSource.h - Batches for the steps -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_DATASOURCE_H
#define DTC_RUNTIME_DATA_DATASOURCE_H

#include "plan/plan.pb.h"
#include "runtime/data/Sampling.h"
#include "support/Error.h"
#include "support/Tensor.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// A value that a data set must give for each step.
struct DataInput {
  std::string name;
  TensorType type;        // the whole batch; the first dimension is the sample
  int64_t indexLimit = 0; // > 0: elements lie in [0, indexLimit), or are ignoredIndex
  std::optional<int64_t> ignoredIndex = {};
};

/// The inputs of a valid plan that have the role DATA, but for those that the run sets for clients.
std::vector<DataInput> dataInputsOf(const plan::Plan &plan);

/// Rows [begin, end) of a batch; a row is a sample.
struct RowRange {
  int64_t begin = 0, end = 0;
};

/// The rows that are wanted of inputs, by name: ascending and without overlap, within the batch. An
/// input that has no entry is wanted whole.
using BatchRows = std::map<std::string, std::vector<RowRange>>;

/// A tensor for each input: the wanted rows one after the other, [rows, ...].
using Batch = std::map<std::string, HostTensor>;

struct DataOptions {
  uint64_t seed = 0;
  Sampling sampling = Sampling::Random;
};

/// A data set of one file or several; no sample lies in two. A batch depends on the data, the seed
/// and its number alone, not on the layout of devices nor on what was read before. So one number is
/// the position in the data. Several threads may read at one time.
class DataSource {
public:
  virtual ~DataSource() = default;

  /// The batch of that number, 1 for the first.
  ///  * Random: sample i depends on (seed, number, i). Of tokens, a sample begins anywhere.
  ///  * Epochs: the batches are consecutive parts of one sequence of samples, epoch after epoch,
  ///    which depends on the seed alone; a batch of 8 has the samples of two of 4. Of tokens,
  ///    samples are the windows that are full when a file is divided from its beginning; fewer than
  ///    a window at its end are in none.
  /// The error names the file, and the value and the position where one is out of range.
  Expected<Batch> batch(int64_t number, const BatchRows &rows = {}) const;

  /// The number of batches in the order of the data, no two with a common sample, and batch `index`
  /// of these, 0 for the first. Errors as those of batch(). Where an input has an ignored index,
  /// all samples are in a batch: the last one is filled up with copies of a sample in which all
  /// elements of such inputs are the ignored index. Elsewhere samples that fill no batch are left
  /// out.
  int64_t sequentialBatches() const;
  uint64_t samplesLeftOut() const;
  Expected<Batch> sequentialBatch(int64_t index, const BatchRows &rows = {}) const;

  /// The samples of a batch.
  int64_t batchSize() const { return samplesOfBatch; }
  /// The most samples that share nothing with each other; at least 1.
  uint64_t samplesPerEpoch() const { return numDisjoint(); }

  /// Is told now and then how many tokens, indices and documents have been looked at, and of how
  /// many. The check goes on while it returns true.
  using Progress = std::function<bool(uint64_t done, uint64_t all)>;
  /// Looks at all that any batch can ever have, for the errors that batch() would give. Without an
  /// error, it may have been ended by `progress`.
  virtual MaybeError check(const Progress &progress) const = 0;

  /// Whether any label counts in the loss: false where all labels are the index that is ignored. It
  /// looks at samples that do not overlap until it finds one, while `goesOn` returns true.
  Expected<bool> hasLabelThatCounts(const std::function<bool()> &goesOn) const;

  /// Notes about the files for people: contents that are not used, or that may be meant otherwise.
  /// Each names the file.
  virtual Expected<std::vector<std::string>> notes() const = 0;

  /// By which the data set is known again, as when a run goes on; see fingerprintOf. It depends on
  /// the files that are read alone: not on the options, and on the inputs only as packed documents
  /// need files of their own. Reads up to 64 MiB, or 128 KiB of each file where that is more.
  virtual Expected<std::string> fingerprint() const = 0;

  /// The data that was found, for people: "input.txt: 1115394 bytes of text", "3 files, a.bin to
  /// c.bin: 900 16-bit tokens".
  virtual std::string describe() const = 0;

protected:
  DataSource(std::vector<DataInput> inputs, DataOptions options)
      : inputs(std::move(inputs)), options(options) {}

  /// Samples are numbered from 0 to numSamples() - 1; they may overlap. numDisjoint() of them,
  /// which disjointSample() names in their order, do not.
  virtual uint64_t numSamples() const = 0;
  virtual uint64_t numDisjoint() const = 0;
  virtual uint64_t disjointSample(uint64_t index) const = 0;
  /// Reads a row of an input, and checks its values.
  virtual MaybeError readSample(const DataInput &input, uint64_t sample, std::byte *out) const = 0;

  /// The sample of one row of a training batch.
  virtual uint64_t trainingSample(int64_t number, int64_t row) const {
    return drawnSample(number, row, samplesOfBatch);
  }

  std::vector<DataInput> inputs;
  DataOptions options;
  int64_t samplesOfBatch = 0; // equal for all inputs

private:
  friend class ClientsSource; // reads samples of others

  /// The sample of a row of the batch; none: one that does not count.
  using SampleOf = std::function<std::optional<uint64_t>(int64_t row)>;

  /// The sample of one row of a training batch of `rows` rows.
  uint64_t drawnSample(int64_t number, int64_t row, int64_t rows) const;
  bool fillsBatches() const;
  MaybeError readRow(const DataInput &input, std::optional<uint64_t> sample, std::byte *out) const;
  Expected<HostTensor> readRows(const DataInput &input, const std::vector<RowRange> &rows,
                                const SampleOf &sampleOf) const;
  Expected<Batch> readBatch(const BatchRows &rows, const SampleOf &sampleOf) const;
};

/// Opens a data set of these files, in this order (see findDataFiles), and checks that it can serve
/// the inputs. The format is told by the names and the first bytes, and is the same for all files:
///  * *.safetensors: a tensor for each input;
///  * any other file is one of tokens; see TokenFile.
/// Tokens serve the input "tokens" of shape [batch, seq], and "labels", the next token of each; for
/// packed documents also "segments" and "positions" (see TokenSource).
/// The files are read when a batch needs them, by read(2): see InputFile.
Expected<std::unique_ptr<DataSource>> openDataSource(const std::vector<std::string> &paths,
                                                     std::vector<DataInput> inputs,
                                                     DataOptions options);

/// "a.bin", or "3 files, a.bin to c.bin".
std::string describeFiles(const std::vector<std::string> &paths);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_DATASOURCE_H
