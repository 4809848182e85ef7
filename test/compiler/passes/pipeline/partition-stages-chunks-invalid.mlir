// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages=chunks=0

module {
  // expected-error@+2 {{the option chunks is 0, expected at least 1}}
  // expected-warning@+1 {{splits no tensor}}
  dist.mesh @mesh <"pp"=2 pipeline, "micro"=4 temporal>
}
