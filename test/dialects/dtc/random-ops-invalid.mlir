// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @rate_of_one(%x: tensor<4xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op rate is 1.000000e+00, expected at least 0 and less than 1 [dropout-c1]}}
  %0 = dtc.dropout %x, %key {number = 0, rate = 1.0} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @rate_negative(%x: tensor<4xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op rate is -1.250000e-01, expected at least 0 and less than 1 [dropout-c1]}}
  %0 = dtc.dropout %x, %key {number = 0, rate = -0.125} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @rate_nan(%x: tensor<4xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op rate is nan, expected at least 0 and less than 1 [dropout-c1]}}
  %0 = dtc.dropout %x, %key {number = 0, rate = 0x7FF8000000000000 : f64} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_rate(%x: tensor<4xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op requires attribute 'rate'}}
  %0 = dtc.dropout %x, %key {number = 0} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

// Two ops without numbers would draw the same mask.
func.func @no_number(%x: tensor<4xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op requires attribute 'number'}}
  %0 = dtc.dropout %x, %key {rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @key_size(%x: tensor<4xf32>, %key: tensor<3xi32>) {
  // expected-error@+1 {{'dtc.dropout' op key has type 'tensor<3xi32>', expected 'tensor<2xi32>' [dropout-c2]}}
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<3xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @key_element(%x: tensor<4xf32>, %key: tensor<2xf32>) {
  // expected-error@+1 {{'dtc.dropout' op operand #1 must be}}
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @of_integers(%x: tensor<4xi32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op operand #0 must be}}
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xi32>, tensor<2xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @result(%x: tensor<4xbf16>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.dropout' op result #0 has type 'tensor<4xf32>', expected 'tensor<4xbf16>'}}
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xbf16>, tensor<2xi32>) -> tensor<4xf32>
  return
}
