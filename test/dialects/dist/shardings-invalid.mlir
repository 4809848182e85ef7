// RUN: dtc-opt %s --split-input-file --verify-diagnostics

// Axes.

// expected-error@+1 {{expected string}}
dist.mesh @mesh <"tp.0"=2 of tp>

// -----

// expected-error@+1 {{expected '>'}}
dist.mesh @mesh <"tp.0"=2 part>

// -----

// The order is temporal, of, link.
// expected-error@+1 {{expected '>'}}
dist.mesh @mesh <"tp.0"=2 link 1.0 1.0 of "tp">

// -----

// expected-error@+1 {{expected floating point literal}}
dist.mesh @mesh <"dp"=2 link>

// -----

// expected-error@+1 {{expected floating point literal}}
dist.mesh @mesh <"dp"=2 link 1.0e9>

// -----

// expected-error@+1 {{mesh axis "dp" has a link of -1.000000e+00 bytes a second and 1.000000e-05 seconds, expected at least 0 of each (0: not known) [axis-c4]}}
dist.mesh @mesh <"dp"=2 link -1.0 1.0e-5>

// -----

// expected-error@+1 {{mesh axis "dp" has a link of 1.000000e+09 bytes a second and -1.000000e-05 seconds, expected at least 0 of each (0: not known) [axis-c4]}}
dist.mesh @mesh <"dp"=2 link 1.0e9 -1.0e-5>

// -----

// Parts have names of their own.
// expected-error@+1 {{'dist.mesh' op has two axes named "tp.0" [mesh-c1]}}
dist.mesh @mesh <"tp.0"=2 of "tp", "tp.0"=2 of "tp">

// -----

// Shardings.

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{an open dimension ends with ?, expected } after it}}
func.func private @open_first(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{?, "dp"}]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{an open dimension ends with ?, expected } after it}}
func.func private @open_twice(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{?, ?}]>})

// -----

// A partial value is partial over these axes and no others.
dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{expected string}}
func.func private @open_partial(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"dp", ?}>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{expected a priority such as p1 after a dimension}}
func.func private @no_priority(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}q1]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{expected a priority such as p1 after a dimension}}
func.func private @no_number(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{expected a priority such as p1 after a dimension}}
func.func private @large_number(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p99999999999999999999]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{expected ']'}}
func.func private @negative(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}-1]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{axis "dp" is used twice in one sharding; an axis can split one dimension, or be partial, but not both [sharding-c1]}}
func.func private @twice(tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", ?}, {"dp"}p1]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4>
// expected-error@+1 {{argument 0 is sharded over "pp", which is not an axis of @mesh [sharding-c5]}}
func.func private @axis(tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"pp", ?}p1]>})
