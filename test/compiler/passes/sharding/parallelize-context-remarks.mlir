// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-parallelize-context="exchange=all-gather default-shard=seq=cp"

// The reason why a sequence stays in its order is given once, at the attention.
// So does an op whose rule keeps the positions whole.
dist.mesh @mesh <"cp"=2>
func.func @softmax(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.softmax needs the positions of a sequence in their order}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %p = dtc.softmax %lse : tensor<2x2x8xf32>
  %0 = dtc.reduce sum %p dims [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @slice(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.slice needs the positions of a sequence in their order}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %p = dtc.slice %out offsets [0, 7, 0, 0] sizes [2, 1, 2, 8] : (tensor<2x8x2x8xf32>) -> tensor<2x1x2x8xf32>
  %0 = dtc.reduce sum %p dims [0, 1, 2, 3] : (tensor<2x1x2x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @result(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}) -> tensor<2x8x2x8xf32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as a result of the function has the positions of a sequence}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  return %out : tensor<2x8x2x8xf32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @dropout(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}, %key: tensor<2xi32> {dtc.input = "key"}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.dropout drops elements by their positions}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %p = dtc.dropout %out, %key {number = 0, rate = 0.1} : (tensor<2x8x2x8xf32>, tensor<2xi32>) -> tensor<2x8x2x8xf32>
  %0 = dtc.reduce sum %p dims [0, 1, 2, 3] : (tensor<2x8x2x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @attention_dropout(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}, %key: tensor<2xi32> {dtc.input = "key"}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.attention drops elements by their positions}}
  %out, %lse = dtc.attention %q, %q, %q key %key {causal = true, dropout = 0.1, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2xi32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x8x2x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=3>
func.func @size(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as 6 chunks do not divide 8 positions}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x8x2x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @lookup(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}, %i: tensor<4xi32> {dtc.input = "i"}, %x: tensor<8x16xf32> {dtc.param = "x"}) -> tensor<f32> {
  %p = dtc.broadcast %x dims [1, 2] : (tensor<8x16xf32>) -> tensor<2x8x16xf32>
  %r = dtc.reshape %p : (tensor<2x8x16xf32>) -> tensor<2x8x2x8xf32>
  %s = dtc.add %q, %r : tensor<2x8x2x8xf32>
  %rows = dtc.embedding %x, %i : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4x16xf32>
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.embedding looks positions of a sequence up by their numbers}}
  %out, %lse = dtc.attention %s, %s, %s {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %a = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x8x2x8xf32>) -> tensor<f32>
  %b = dtc.reduce sum %rows dims [0, 1] : (tensor<4x16xf32>) -> tensor<f32>
  %0 = dtc.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @scores(%q: tensor<2x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.einsum has the sequence twice in a value}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
  %o = dtc.einsum "bshd,bthd->bhst" %out, %out : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
  %0 = dtc.reduce sum %o dims [0, 1, 2, 3] : (tensor<2x2x8x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @merged(%q: tensor<1x8x2x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}) -> tensor<f32> {
  // expected-remark@+1 {{the devices of cp do not have the same to do: queries stay in the order of their sequence, and the last ones see most keys, as dtc.reshape merges positions with another dimension}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>) -> (tensor<1x8x2x8xf32>, tensor<1x2x8xf32>)
  %r = dtc.reshape %out : (tensor<1x8x2x8xf32>) -> tensor<16x8xf32>
  %0 = dtc.reduce sum %r dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Rows of %t are in the order of samples and positions, and so stay those of the sequence.
dist.mesh @mesh <"cp"=2>
func.func @merged(%q: tensor<2x8x2x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}, %t: tensor<16x8xf32> {dtc.input = "t"}) -> tensor<f32> {
  // expected-remark@+1 {{as dtc.reshape merges positions with another dimension}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0}
    : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
  %r = dtc.reshape %out : (tensor<2x8x2x4xf32>) -> tensor<16x8xf32>
  %m = dtc.mul %r, %t : tensor<16x8xf32>
  %0 = dtc.reduce sum %m dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
