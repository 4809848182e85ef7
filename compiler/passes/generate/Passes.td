//===- Passes.td - The pass for generation -----------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_GENERATE_PASSES_TD
#define DTC_COMPILER_PASSES_GENERATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildGenerationPass : Pass<"dtc-build-generation", "::mlir::ModuleOp"> {
  let summary = "Build the function for the logits of the next token from a loss";
  let description = [{
    The function of a loss, of one input of tokens `i32[batch, seq]`, becomes a function of the logits at one position
    of each sample, `positions i32[batch]`. The keys and values of each `dtc.attention` are stored in caches as long as
    the sequence, arguments with `dtc.cache` that the function updates. `phase` is

    * `prefill`: @prefill takes whole sequences of tokens, fills the caches and returns the logits at `positions`.
      Tokens after these positions have no influence on the logits;
    * `decode`: @decode takes the one token at `positions`, adds its keys and values to the caches and returns its
      logits.

    Dropout is left out, and so are the inputs of packed documents, `segments` and `positions`: a sequence is one
    document then. All ops but causal attention must compute each position from that position alone. Rows that tokens
    are routed to by `dtc.nonzero` become as many as the sequence has tokens, so that experts drop none.

    ```mlir
    // dtc-opt --dtc-build-generation=phase=decode
    // Before
    func.func @loss(%wte: tensor<64x4xf32> {dtc.param = "wte"}, %tokens: tensor<2x8xi32> {dtc.input = "tokens"})
        -> tensor<f32> {
      %x = dtc.embedding %wte, %tokens : (tensor<64x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
      %q = dtc.reshape %x : (tensor<2x8x4xf32>) -> tensor<2x8x1x4xf32>
      %a, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5}
        : (tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>) -> (tensor<2x8x1x4xf32>, tensor<2x1x8xf32>)
      %y = dtc.reshape %a : (tensor<2x8x1x4xf32>) -> tensor<2x8x4xf32>
      %losses, %z = dtc.cross_entropy %y, %tokens
        : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
      %loss = dtc.reduce sum %losses dims [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // After
    func.func @decode(%wte: tensor<64x4xf32> {dtc.param = "wte"}, %positions: tensor<2xi32> {dtc.input = "positions"},
                      %token: tensor<2x1xi32> {dtc.input = "tokens"},
                      %keys: tensor<2x8x1x4xf32> {dtc.cache = "attention.keys"},
                      %values: tensor<2x8x1x4xf32> {dtc.cache = "attention.values"})
        -> (tensor<2x1x4xf32> {dtc.output = "logits"}, tensor<2x8x1x4xf32> {dtc.updates = 3},
            tensor<2x8x1x4xf32> {dtc.updates = 4}) {
      %x = dtc.embedding %wte, %token {dtc.op = 0} : (tensor<64x4xf32>, tensor<2x1xi32>) -> tensor<2x1x4xf32>
      %q = dtc.reshape %x {dtc.op = 1} : (tensor<2x1x4xf32>) -> tensor<2x1x1x4xf32>
      %k = dtc.cache_update %keys, %q, %positions {dtc.op = 2}
        : (tensor<2x8x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2xi32>) -> tensor<2x8x1x4xf32>
      %v = dtc.cache_update %values, %q, %positions {dtc.op = 2}
        : (tensor<2x8x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2xi32>) -> tensor<2x8x1x4xf32>
      %a = dtc.cached_attention %q, %k, %v, %positions {dtc.op = 2, scale = 0.5}
        : (tensor<2x1x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2xi32>) -> tensor<2x1x1x4xf32>
      %y = dtc.reshape %a {dtc.op = 3} : (tensor<2x1x1x4xf32>) -> tensor<2x1x4xf32>
      return %y, %k, %v : tensor<2x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>
    }
    ```
  }];
  let options = [
    Option<"phase", "phase", "std::string", "\"prefill\"", "prefill or decode">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

#endif // DTC_COMPILER_PASSES_GENERATE_PASSES_TD
