// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @update_rank(%cache: tensor<4xf32>, %rows: tensor<4xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op cache has type 'tensor<4xf32>', expected at least 2 dimensions: samples and rows [cache_update-c1]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @update_rows_rank(%cache: tensor<4x8x2xf32>, %rows: tensor<4x1xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op rows have type 'tensor<4x1xf32>', expected those of 'tensor<4x8x2xf32>' but for dimension 1 [cache_update-c2]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8x2xf32>, tensor<4x1xf32>, tensor<4xi32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @update_rows_type(%cache: tensor<4x8xf32>, %rows: tensor<4x1xf16>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op rows have type 'tensor<4x1xf16>', expected those of 'tensor<4x8xf32>' but for dimension 1 [cache_update-c2]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8xf32>, tensor<4x1xf16>, tensor<4xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @update_samples(%cache: tensor<4x8xf32>, %rows: tensor<3x1xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op rows have type 'tensor<3x1xf32>', expected those of 'tensor<4x8xf32>' but for dimension 1 [cache_update-c2]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8xf32>, tensor<3x1xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @update_width(%cache: tensor<4x8x2xf32>, %rows: tensor<4x1x3xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op rows have type 'tensor<4x1x3xf32>', expected those of 'tensor<4x8x2xf32>' but for dimension 1 [cache_update-c2]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8x2xf32>, tensor<4x1x3xf32>, tensor<4xi32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @update_positions(%cache: tensor<4x8x2xf32>, %rows: tensor<4x1x2xf32>, %positions: tensor<3xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op positions has type 'tensor<3xi32>', expected 'tensor<4xi32>' [cache_update-c3]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8x2xf32>, tensor<4x1x2xf32>, tensor<3xi32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @update_positions_rank(%cache: tensor<4x8x2xf32>, %rows: tensor<4x1x2xf32>, %positions: tensor<4x1xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op positions has type 'tensor<4x1xi32>', expected 'tensor<4xi32>' [cache_update-c3]}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8x2xf32>, tensor<4x1x2xf32>, tensor<4x1xi32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @update_positions_type(%cache: tensor<4x8x2xf32>, %rows: tensor<4x1x2xf32>, %positions: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.cache_update' op operand #2 must be}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8x2xf32>, tensor<4x1x2xf32>, tensor<4xf32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @update_integers(%cache: tensor<4x8xi32>, %rows: tensor<4x1xi32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cache_update' op operand #0 must be}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x8xi32>, tensor<4x1xi32>, tensor<4xi32>) -> tensor<4x8xi32>
  return
}

// -----

func.func @attention_q(%q: tensor<4x1x8xf32>, %k: tensor<4x9x2x8xf32>, %v: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op q has type 'tensor<4x1x8xf32>', expected rank 4 [cached_attention-c1]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>) -> tensor<4x1x8xf32>
  return
}

// -----

func.func @attention_k_rank(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x8xf32>, %v: tensor<4x9x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op k has type 'tensor<4x9x8xf32>', expected tensor<4xtxgx8x'f32'> for some t and g [cached_attention-c2]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x8xf32>, tensor<4x9x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_k_batch(%q: tensor<4x1x6x8xf32>, %k: tensor<3x9x2x8xf32>, %v: tensor<3x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op k has type 'tensor<3x9x2x8xf32>', expected tensor<4xtxgx8x'f32'> for some t and g [cached_attention-c2]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<3x9x2x8xf32>, tensor<3x9x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_k_width(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x4xf32>, %v: tensor<4x9x2x4xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op k has type 'tensor<4x9x2x4xf32>', expected tensor<4xtxgx8x'f32'> for some t and g [cached_attention-c2]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x4xf32>, tensor<4x9x2x4xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_k_type(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf64>, %v: tensor<4x9x2x8xf64>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op k has type 'tensor<4x9x2x8xf64>', expected tensor<4xtxgx8x'f32'> for some t and g [cached_attention-c2]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf64>, tensor<4x9x2x8xf64>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_heads(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x4x8xf32>, %v: tensor<4x9x4x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op k has 4 heads, expected a divisor of the 6 of q [cached_attention-c3]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x4x8xf32>, tensor<4x9x4x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_more_heads(%q: tensor<4x1x2x8xf32>, %k: tensor<4x9x4x8xf32>, %v: tensor<4x9x4x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op k has 4 heads, expected a divisor of the 2 of q [cached_attention-c3]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x2x8xf32>, tensor<4x9x4x8xf32>, tensor<4x9x4x8xf32>, tensor<4xi32>) -> tensor<4x1x2x8xf32>
  return
}

// -----

func.func @attention_v(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %v: tensor<4x9x6x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op v has type 'tensor<4x9x6x8xf32>', expected 'tensor<4x9x2x8xf32>' [cached_attention-c4]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x6x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_positions(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %v: tensor<4x9x2x8xf32>, %positions: tensor<1xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op positions has type 'tensor<1xi32>', expected 'tensor<4xi32>' [cached_attention-c5]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<1xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_scale(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %v: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op scale is INF, expected a finite number [cached_attention-c6]}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0x7FF0000000000000 : f64} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_without_scale(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %v: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op requires attribute 'scale'}}
  %0 = dtc.cached_attention %q, %k, %v, %positions : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %v: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op result #0 has type 'tensor<4x9x6x8xf32>', expected 'tensor<4x1x6x8xf32>'}}
  %0 = dtc.cached_attention %q, %k, %v, %positions {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>) -> tensor<4x9x6x8xf32>
  return
}

// -----

func.func @select_rank(%x: tensor<4xf32>, %rows: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.select_row' op x has type 'tensor<4xf32>', expected at least 2 dimensions: samples and rows [select_row-c1]}}
  %0 = dtc.select_row %x, %rows : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @select_rows(%x: tensor<4x8x2xf32>, %rows: tensor<8xi32>) {
  // expected-error@+1 {{'dtc.select_row' op rows has type 'tensor<8xi32>', expected 'tensor<4xi32>' [select_row-c2]}}
  %0 = dtc.select_row %x, %rows : (tensor<4x8x2xf32>, tensor<8xi32>) -> tensor<4x1x2xf32>
  return
}

// -----

func.func @select_rows_type(%x: tensor<4x8x2xf32>, %rows: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.select_row' op operand #1 must be}}
  %0 = dtc.select_row %x, %rows : (tensor<4x8x2xf32>, tensor<4xf32>) -> tensor<4x1x2xf32>
  return
}

// -----

func.func @select_result(%x: tensor<4x8x2xf32>, %rows: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.select_row' op result #0 has type 'tensor<4x2xf32>', expected 'tensor<4x1x2xf32>'}}
  %0 = dtc.select_row %x, %rows : (tensor<4x8x2xf32>, tensor<4xi32>) -> tensor<4x2xf32>
  return
}

// -----

// expected-error@+1 {{'dtc.cache' of argument #0 is 7 : i64, expected a string [dtc-c6]}}
func.func @cache_no_string(%x: tensor<4x8xf32> {dtc.cache = 7}) { return }

// -----

func.func @attention_window(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op window is -1, expected at least 1 key [cached_attention-c7]}}
  %0 = dtc.cached_attention %q, %k, %k, %positions {scale = 0.25, window = -1} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_softcap(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cached_attention' op softcap is 0.000000e+00, expected a finite positive number [cached_attention-c8]}}
  %0 = dtc.cached_attention %q, %k, %k, %positions {scale = 0.25, softcap = 0.0} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_sinks(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>, %sinks: tensor<2xf32>) {
  // expected-error@+1 {{'dtc.cached_attention' op sinks has type 'tensor<2xf32>', expected 'tensor<6xf32>' [cached_attention-c9]}}
  %0 = dtc.cached_attention %q, %k, %k, %positions sinks %sinks {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>, tensor<2xf32>) -> tensor<4x1x6x8xf32>
  return
}

// -----

func.func @attention_sinks_type(%q: tensor<4x1x6x8xf32>, %k: tensor<4x9x2x8xf32>, %positions: tensor<4xi32>, %sinks: tensor<6xf64>) {
  // expected-error@+1 {{'dtc.cached_attention' op sinks has type 'tensor<6xf64>', expected 'tensor<6xf32>' [cached_attention-c9]}}
  %0 = dtc.cached_attention %q, %k, %k, %positions sinks %sinks {scale = 0.25} : (tensor<4x1x6x8xf32>, tensor<4x9x2x8xf32>, tensor<4x9x2x8xf32>, tensor<4xi32>, tensor<6xf64>) -> tensor<4x1x6x8xf32>
  return
}
