// RUN: dtc-opt %s --verify-diagnostics --pass-pipeline="builtin.module(builtin.module(dtc-propagate-shardings))"
// RUN: dtc-opt %s --verify-diagnostics --pass-pipeline="builtin.module(builtin.module(dtc-insert-reshards))"
// RUN: dtc-opt %s --verify-diagnostics --pass-pipeline="builtin.module(builtin.module(dtc-spmd-partition))"
// RUN: dtc-opt %s --verify-diagnostics --pass-pipeline="builtin.module(builtin.module(dtc-lower-to-exec))"

// A sharding may be on any mesh that is visible; a program runs on the one of its module.
dist.mesh @outer <"x"=2>
module {
  dist.mesh @mesh <"dp"=2>
  // expected-error@+1 {{'func.func' op uses the mesh @outer, expected @mesh, the one of the module}}
  func.func @f(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@outer, [{"x"}]>}) {
    return
  }
}
