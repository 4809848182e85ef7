//===- DeviceTraining.h - Training runs on the stand-in of CUDA -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_EQUIVALENCE_DEVICETRAINING_H
#define DTC_TEST_EQUIVALENCE_DEVICETRAINING_H

#include "plan/plan.pb.h"
#include "runtime/backends/Kernel.h"
#include "runtime/executor/Session.h"
#include "test/equivalence/Training.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc::test::devices {

/// A model and how it is compiled.
struct Case {
  const char *name;
  const char *model; // a file of examples/, or the text of a configuration
  const char *strategy;
  bool isDouble = false;
  AttentionKind attention = AttentionKind::Fused;
};

inline constexpr const char *kGpt2 = R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 8,
                              "n_embd": 16, "n_layer": 2, "n_head": 2, "embd_pdrop": 0.1,
                              "attn_pdrop": 0.1, "resid_pdrop": 0.1})";

// Two heads of queries for one of keys, and rotary positions.
inline constexpr const char *kLlama =
    R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 16,
                               "intermediate_size": 24, "num_hidden_layers": 2,
                               "num_attention_heads": 4, "num_key_value_heads": 2,
                               "max_position_embeddings": 8, "tie_word_embeddings": false})";

// Windows of three keys, longer than a piece of two.
inline constexpr const char *kMistral =
    R"({"model_type": "mistral", "vocab_size": 40, "hidden_size": 16,
                                 "intermediate_size": 24, "num_hidden_layers": 2,
                                 "num_attention_heads": 4, "num_key_value_heads": 2,
                                 "max_position_embeddings": 8, "sliding_window": 3,
                                 "tie_word_embeddings": false})";

inline constexpr const char *kMixtral =
    R"({"model_type": "mixtral", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
        "tie_word_embeddings": false})";

// Sinks, windows, biases of experts and a clamped activation.
inline constexpr const char *kGptOss =
    R"({"model_type": "gpt_oss", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
        "max_position_embeddings": 8, "sliding_window": 3, "num_local_experts": 4,
        "num_experts_per_tok": 2, "swiglu_limit": 0.1})";

/// The plan of a case; null after a failure of the test.
std::shared_ptr<const plan::Plan> compile(const Case &which);

/// The numbers of a training run: losses and norms of the steps, and the states after them.
struct Training {
  std::vector<double> numbers;
  std::map<std::string, HostTensor> states;

  std::string bytes() const {
    std::string all(reinterpret_cast<const char *>(numbers.data()),
                    numbers.size() * sizeof(double));
    for (const auto &[name, tensor] : states)
      all.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
    return all;
  }
};

/// Trains `steps` steps on the same batch; fewer after a failure of the test.
Training train(const std::shared_ptr<const plan::Plan> &plan,
               std::shared_ptr<const runtime::Backend> backend, int steps,
               const runtime::OpenFabric &fabric = nullptr,
               std::optional<bool> graphs = std::nullopt);

} // namespace dtc::test::devices

#endif // DTC_TEST_EQUIVALENCE_DEVICETRAINING_H
