// RUN: dtc-opt %s --dtc-print-shardings --split-input-file --verify-diagnostics -o /dev/null | count 0

// expected-error @+1 {{has no dist.mesh; declare one, or give dtc-compile --mesh}}
module {
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{the module has no function with a body; give a model}}
module {
  dist.mesh @mesh <"dp"=2>
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error @+1 {{argument 0 has no sharding; run dtc-propagate-shardings first}}
func.func @argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
func.func @result(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{result 0 has no sharding; run dtc-propagate-shardings first}}
  %y = dtc.neg %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error @+1 {{is partitioned already; run dtc-print-shardings before dtc-spmd-partition}}
func.func @local(%x: tensor<2xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{"dp"}]>})
    -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
