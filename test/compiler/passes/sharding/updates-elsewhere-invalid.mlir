// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings --dtc-insert-reshards

// A state's new value lies where the state does; a result that asks for something else contradicts the argument.
dist.mesh @mesh <"dp"=2, "tp"=2>
// expected-error-re@+1 {{result 0{{.*}}[{}, {"tp"}]{{.*}}[{"dp"}, {"tp"}]}}
func.func @updates(%w: tensor<4x4xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>})
    -> (tensor<4x4xf32> {dtc.updates = 0, dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) {
  %0 = dtc.exp %w : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
