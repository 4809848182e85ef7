//===- TransformerBuilder.h - The builder of a transformer ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TRANSFORMERBUILDER_H
#define DTC_COMPILER_IMPORT_TRANSFORMERBUILDER_H

#include "compiler/import/Family.h"
#include "compiler/import/ModelBuilder.h"

namespace dtc {

/// Builds the model of a family: its layers in TransformerBuilder.cpp, their attention and experts
/// in TransformerAttention.cpp and TransformerExperts.cpp.
class TransformerBuilder {
public:
  TransformerBuilder(mlir::MLIRContext &context, const Family &family,
                     const TransformerConfig &config, const ImportOptions &options);

  mlir::OwningOpRef<mlir::ModuleOp> run(ConfigReader &reader);

private:
  /// A side of a linear layer: dimensions, and a letter for each in einsums.
  struct Side {
    std::vector<Dim> dims;
    llvm::StringRef letters;
  };
  struct Heads {
    mlir::Value q, k, v;
  };

  mlir::Value weightOf(llvm::StringRef name, const Side &in, const Side &out, mlir::Attribute init);
  /// The equation of a linear layer of x [B, S, in...] or [B, in...]: "bs<in>,<weight>->bs<out>".
  std::string equation(mlir::Value x, const Side &in, const Side &out) const;
  mlir::Value linear(llvm::StringRef name, mlir::Value x, const Side &in, const Side &out,
                     bool hasBias, mlir::Attribute init);
  mlir::Value norm(mlir::Value x);
  mlir::Value normUnder(const std::string &layer, mlir::Value x);
  mlir::Value addToStream(mlir::Value x, mlir::Value part, const std::string &normAfter);
  mlir::Value normHeads(mlir::Value x, llvm::StringRef name);
  Heads separateHeads(mlir::Value x);
  Heads heads(const TransformerLayer &layer, mlir::Value x);
  Heads headsOfThirds(mlir::Value x);
  Heads headsOfRows(mlir::Value x);
  Heads headsOfLatents(const Rotary &rotary, mlir::Value x);
  mlir::Value attention(const TransformerLayer &layer, int64_t number, mlir::Value x);
  std::pair<mlir::Value, mlir::Value> gateAndUp(mlir::Value x);
  mlir::Value mlp(mlir::Value x);
  void beginBalance();
  void addToBalance(const Routing &routing);
  mlir::Value experts(const std::string &layer, mlir::Value x);
  mlir::Value expertLinear(llvm::StringRef name, mlir::Value rows, const Side &in, const Side &out,
                           mlir::Attribute init, const Routing &routing);
  mlir::Value gatedExperts(mlir::Value rows, const Routing &routing);
  mlir::Value clampedExperts(mlir::Value rows, const Routing &routing);
  mlir::Value sharedExpert(mlir::Value x);
  mlir::Value embedTokens();
  mlir::Value parameterOf(llvm::StringRef name, const std::vector<std::vector<Dim>> &shape);
  mlir::Value embedPatches();
  mlir::Value embedding();
  mlir::Value layer(int64_t number, mlir::Value x);
  mlir::Value tokenHead(mlir::Value x);
  mlir::Value head(mlir::Value x);

  ModelBuilder model;
  const Family &family;
  const ParameterNames &names;
  const TransformerConfig &config;
  const ImportOptions &options;
  mlir::Attribute normal, residual;
  const Side stream{{config.embed}, "d"}, queries{{config.heads, config.headSize}, "he"},
      keys{{config.kvHeads, config.headSize}, "he"}, values{{config.heads, config.valueSize}, "he"},
      inner{{config.mlp}, "f"};
  mlir::Value table; ///< the embedding
  /// The loads of the layers so far, where the balance loss compares the tokens of all layers; none
  /// where each layer has a loss of its own.
  std::optional<ExpertLoads> loads;
  mlir::Value balance; ///< the balance loss, or that of the layers so far where each has its own
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_TRANSFORMERBUILDER_H
