//===- DataSource.h - Batches for the steps -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_DATASOURCE_H
#define DTC_RUNTIME_DATA_DATASOURCE_H

#include "plan/plan.pb.h"
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
  std::optional<int64_t> ignoredIndex;
};

/// The inputs of a valid plan that have the role DATA.
std::vector<DataInput> dataInputsOf(const plan::Plan &plan);

/// A data set. Batches are drawn at random, and depend on the seed, the step and the number of the
/// sample in the batch only: not on the layout of devices.
class DataSource {
public:
  virtual ~DataSource() = default;

  /// The batch of a step (1 is the first): a tensor for each input. Equal steps give equal batches.
  /// The error names the file, and the value and the position where one is out of range.
  virtual Expected<std::map<std::string, HostTensor>> batch(int64_t step) const = 0;

  /// Whole batches that the data hold in their order, none of which shares a sample with another,
  /// and the one of that number, 0 for the first. Errors as those of batch().
  virtual int64_t sequentialBatches() const = 0;
  virtual Expected<std::map<std::string, HostTensor>> sequentialBatch(int64_t index) const = 0;

  /// Is told now and then how many tokens or indices have been looked at, and of how many. The
  /// check goes on while it returns true.
  using Progress = std::function<bool(uint64_t done, uint64_t all)>;
  /// Looks at all that any batch can ever have, for the errors that batch() would give. Without an
  /// error, it may have been ended by `progress`.
  virtual MaybeError check(const Progress &progress) const = 0;

  /// By which the data set is known again, as when a run goes on; see fingerprintOf. It depends on
  /// the files alone: not on the inputs, nor on the seed. Reads up to 64 MiB, or 128 KiB of each
  /// file where that is more.
  virtual Expected<std::string> fingerprint() const = 0;

  /// What was found, for people: "input.txt: 1115394 bytes of text".
  virtual std::string describe() const = 0;
};

/// Opens a data set and checks that it can serve the inputs. The format is told by the name and the
/// first bytes:
///  * *.safetensors: a tensor for each input;
///  * any other file is one of tokens; see TokenFile.
/// Tokens serve the input "tokens" of shape [batch, seq], and "labels", the next token of each.
Expected<std::unique_ptr<DataSource>> openDataSource(const std::string &path,
                                                     std::vector<DataInput> inputs, uint64_t seed);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_DATASOURCE_H
