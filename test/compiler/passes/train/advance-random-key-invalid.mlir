// RUN: dtc-opt %s --dtc-advance-random-key --verify-diagnostics

// expected-error@+1 {{argument 0, the random key, is 'tensor<3xi32>', expected 'tensor<2xi32>'}}
func.func @loss(%key: tensor<3xi32> {dtc.scalar = "random_key"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
