// RUN: dtc-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'dtc.param' of argument #0 is "", expected a string that is not empty [dtc-c20]}}
func.func @empty_param(%x: tensor<4xf32> {dtc.param = ""}) { return }

// -----

// expected-error@+1 {{'dtc.param' of argument #0 is 1 : i64, expected a string that is not empty [dtc-c20]}}
func.func @param_no_string(%x: tensor<4xf32> {dtc.param = 1}) { return }

// -----

// expected-error@+1 {{argument #0 is the parameter "x" and has type 'tensor<4xi32>', expected a ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1 and at most 2^56 elements [dtc-c21]}}
func.func @param_of_indices(%x: tensor<4xi32> {dtc.param = "x"}) { return }

// -----

// expected-error@+1 {{argument #0 is the parameter "x" and has type 'f32', expected a ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1 and at most 2^56 elements [dtc-c21]}}
func.func @param_no_tensor(%x: f32 {dtc.param = "x"}) { return }

// -----

// expected-error@+1 {{argument #2 has 'dtc.param' "x", which an earlier argument has, expected a name of its own [dtc-c5]}}
func.func @param_twice(%x: tensor<4xf32> {dtc.param = "x"}, %y: tensor<4xf32> {dtc.param = "y"}, %z: tensor<4xf32> {dtc.param = "x"}) { return }

// -----

// expected-error@+1 {{argument #1 has 'dtc.input' "x", which an earlier argument has, expected a name of its own [dtc-c5]}}
func.func private @input_twice(tensor<4xf32> {dtc.input = "x"}, tensor<4xf32> {dtc.input = "x"})

// -----

// expected-error@+1 {{argument #1 has both 'dtc.param' and 'dtc.input', expected one of them [dtc-c22]}}
func.func @param_and_input(%x: tensor<4xf32>, %y: tensor<4xf32> {dtc.param = "x", dtc.input = "y"}) { return }

// -----

// expected-error@+1 {{'dtc.input' of argument #0 is unit, expected a string that is not empty [dtc-c20]}}
func.func @input_no_string(%x: tensor<4xi32> {dtc.input}) { return }

// -----

// expected-error@+1 {{'dtc.axes' of argument #0 has 1 names, expected 2, one for each dimension of 'tensor<4x8xf32>' [dtc-c3]}}
func.func @axes_rank(%x: tensor<4x8xf32> {dtc.axes = ["batch"]}) { return }

// -----

// expected-error@+1 {{'dtc.axes' of argument #0 has "batch" twice, expected different names [dtc-c4]}}
func.func @axes_twice(%x: tensor<4x8xf32> {dtc.axes = ["batch", "batch"]}) { return }

// -----

// expected-error@+1 {{'dtc.axes' of argument #0 is ["batch", 1], expected an array of strings [dtc-c2]}}
func.func @axes_no_strings(%x: tensor<4x8xf32> {dtc.axes = ["batch", 1]}) { return }

// -----

// expected-error@+1 {{'dtc.axes' of argument #0 is "batch", expected an array of strings [dtc-c2]}}
func.func @axes_no_array(%x: tensor<4xf32> {dtc.axes = "batch"}) { return }

// -----

// expected-error@+1 {{'dtc.axes' on argument #0 of type 'index', expected a ranked tensor [dtc-c1]}}
func.func @axes_no_tensor(%x: index {dtc.axes = []}) { return }

// -----

// expected-error@+1 {{argument #0 has 'dtc.init' but is no parameter, expected 'dtc.param' as well [dtc-c18]}}
func.func @init_without_param(%x: tensor<4xf32> {dtc.init = #dtc.zeros}) { return }

// -----

// expected-error@+1 {{'dtc.init' of argument #0 is "zeros", expected #dtc.normal, #dtc.uniform, #dtc.zeros or #dtc.ones [dtc-c17]}}
func.func @init_unknown(%x: tensor<4xf32> {dtc.param = "x", dtc.init = "zeros"}) { return }

// -----

// expected-error@+1 {{unknown attribute 'dtc.parm' of argument #0, expected 'dtc.param', 'dtc.input', 'dtc.axes' or 'dtc.init' [dtc-c16]}}
func.func @unknown_on_argument(%x: tensor<4xf32> {dtc.parm = "x"}) { return }

// -----

// expected-error@+1 {{'dtc.axes' on result #0, expected 'dtc.metric', 'dtc.mean', 'dtc.must_be_zero', 'dtc.output' or 'dtc.updates' [dtc-c23]}}
func.func private @on_result(tensor<4xf32>) -> (tensor<4xf32> {dtc.axes = ["batch"]})

// -----

// expected-error@+1 {{'dtc.scalar' of argument #0 is 1 : i64, expected a string [dtc-c6]}}
func.func private @scalar_no_string(tensor<f32> {dtc.scalar = 1})

// -----

// expected-error@+1 {{'dtc.index_limit' of argument #0 is "5", expected an integer [dtc-c6]}}
func.func private @limit_no_integer(tensor<4xi32> {dtc.input = "x", dtc.index_limit = "5"})

// -----

// expected-error@+1 {{'dtc.file_shape' of argument #0 is [4], expected an array of integers [dtc-c6]}}
func.func private @shape_no_integers(tensor<4xf32> {dtc.param = "x", dtc.file_shape = [4]})

// -----

// expected-error@+1 {{'dtc.metric' of result #1 is 1 : i64, expected a string [dtc-c6]}}
func.func private @metric_no_string() -> (tensor<f32>, tensor<f32> {dtc.metric = 1})

// -----

// expected-error@+1 {{'dtc.metric' of result #0 is unit, expected a string [dtc-c6]}}
func.func private @metric_without_name() -> (tensor<f32> {dtc.metric})

// -----

// expected-error@+1 {{'dtc.mean' of result #0 is true, expected no value [dtc-c6]}}
func.func private @mean_with_value() -> (tensor<f32> {dtc.metric = "x", dtc.mean = true})

// -----

// expected-error@+1 {{'dtc.must_be_zero' of result #0 is 1 : i64, expected no value [dtc-c6]}}
func.func private @zero_with_value() -> (tensor<f32> {dtc.metric = "x", dtc.must_be_zero = 1})

// -----

// expected-error@+1 {{'dtc.mean' on result #1, which is no metric, expected 'dtc.metric' as well [dtc-c24]}}
func.func private @mean_of_no_metric() -> (tensor<f32> {dtc.metric = "x"}, tensor<f32> {dtc.mean})

// -----

// expected-error@+1 {{'dtc.must_be_zero' on result #0, which is no metric, expected 'dtc.metric' as well [dtc-c24]}}
func.func private @zero_of_no_metric() -> (tensor<f32> {dtc.output = "loss", dtc.must_be_zero})

// -----

// expected-error@+1 {{result #1, a metric, has the type 'tensor<4xi32>', expected a tensor of floats [dtc-c25]}}
func.func private @metric_of_integers() -> (tensor<f32>, tensor<4xi32> {dtc.metric = "x"})

// -----

// expected-error@+1 {{unknown attribute 'dtc.metric' of argument #0, expected 'dtc.param', 'dtc.input', 'dtc.axes' or 'dtc.init' [dtc-c16]}}
func.func private @metric_on_argument(tensor<f32> {dtc.metric = "x"})

// -----

// expected-error@+1 {{'dtc.updates' of result #0 is 1 : i64, expected the number of an argument [dtc-c7]}}
func.func private @updates_beyond(tensor<4xf32>) -> (tensor<4xf32> {dtc.updates = 1})

// -----

// expected-error@+1 {{'dtc.updates' of result #0 is -1 : i64, expected the number of an argument [dtc-c7]}}
func.func private @updates_negative(tensor<4xf32>) -> (tensor<4xf32> {dtc.updates = -1})

// -----

// expected-error@+1 {{unknown attribute 'dtc.output' of argument #0, expected 'dtc.param', 'dtc.input', 'dtc.axes' or 'dtc.init' [dtc-c16]}}
func.func private @output_on_argument(tensor<4xf32> {dtc.output = "loss"})

// -----

// expected-error@+1 {{unknown attribute 'dtc.mode', expected 'dtc.axes' [dtc-c15]}}
module attributes {dtc.mode = "train"} {}

// -----

func.func @unknown_on_op(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.exp' op unknown attribute 'dtc.shard', expected 'dtc.axes' [dtc-c15]}}
  %0 = dtc.exp %x {dtc.shard = "dp"} : tensor<4xf32>
  return
}

// -----

func.func @param_on_op(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.exp' op 'dtc.param' on an operation, expected it on a function argument [dtc-c15]}}
  %0 = dtc.exp %x {dtc.param = "x"} : tensor<4xf32>
  return
}

// -----

func.func @axes_on_op(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.exp' op 'dtc.axes' of the result has 3 names, expected 2, one for each dimension of 'tensor<4x8xf32>' [dtc-c3]}}
  %0 = dtc.exp %x {dtc.axes = ["a", "b", "c"]} : tensor<4x8xf32>
  return
}

// -----

func.func @axes_on_two_results(%x: tensor<4x8xf32>, %l: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op 'dtc.axes' on an operation with 2 results, expected one result [dtc-c12]}}
  %0:2 = dtc.cross_entropy %x, %l {dtc.axes = ["a"]} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// expected-error@+1 {{found standard deviation -1.000000e+00, expected a finite number that is not negative [normal-c1]}}
func.func private @negative_stddev(tensor<4xf32> {dtc.param = "x", dtc.init = #dtc.normal<-1.0>})

// -----

// expected-error@+1 {{found bound -5.000000e-01, expected a finite number that is not negative [uniform-c1]}}
func.func private @negative_bound(tensor<4xf32> {dtc.param = "x", dtc.init = #dtc.uniform<-0.5>})

// -----

// expected-error@+1 {{expected floating point literal}}
func.func private @no_float(tensor<4xf32> {dtc.param = "x", dtc.init = #dtc.normal<a>})

// -----

// expected-error@+1 {{unknown attribute `constant` in dialect `dtc`}}
func.func private @unknown_initializer(tensor<4xf32> {dtc.param = "x", dtc.init = #dtc.constant<1.0>})

// -----

// expected-error@+1 {{'dtc.lora' is {alpha = 8.000000e+00 : f64, dropout = 0.000000e+00 : f64, rank = 0 : i64, targets = []}, expected on a module {rank = an i64 of at least 1, alpha = a finite float above 0, dropout = a float of at least 0 and less than 1, targets = an array of strings} [dtc-c11]}}
module attributes {dtc.lora = {rank = 0 : i64, alpha = 8.0 : f64, dropout = 0.0 : f64, targets = []}} {}

// -----

// expected-error@+1 {{'dtc.lora' is {alpha = 0.000000e+00 : f64, dropout = 0.000000e+00 : f64, rank = 2 : i64, targets = ["a"]}, expected on a module {rank = an i64 of at least 1, alpha = a finite float above 0, dropout = a float of at least 0 and less than 1, targets = an array of strings} [dtc-c11]}}
module attributes {dtc.lora = {rank = 2 : i64, alpha = 0.0 : f64, dropout = 0.0 : f64, targets = ["a"]}} {}

// -----

// expected-error@+1 {{'dtc.lora' is {alpha = 8.000000e+00 : f64, dropout = 1.000000e+00 : f64, rank = 2 : i64, targets = ["a"]}, expected on a module {rank = an i64 of at least 1, alpha = a finite float above 0, dropout = a float of at least 0 and less than 1, targets = an array of strings} [dtc-c11]}}
module attributes {dtc.lora = {rank = 2 : i64, alpha = 8.0 : f64, dropout = 1.0 : f64, targets = ["a"]}} {}

// -----

// expected-error@+1 {{'dtc.lora' is {alpha = 8.000000e+00 : f64, dropout = 0.000000e+00 : f64, rank = 2 : i64}, expected on a module {rank = an i64 of at least 1, alpha = a finite float above 0, dropout = a float of at least 0 and less than 1, targets = an array of strings} [dtc-c11]}}
module attributes {dtc.lora = {rank = 2 : i64, alpha = 8.0 : f64, dropout = 0.0 : f64}} {}

// -----

// expected-error@+1 {{'dtc.lora' is "q_proj", expected on a module {rank = an i64 of at least 1, alpha = a finite float above 0, dropout = a float of at least 0 and less than 1, targets = an array of strings} [dtc-c11]}}
module attributes {dtc.lora = "q_proj"} {}

// -----

// expected-error@+1 {{expected on a module {rank = an i64 of at least 1, alpha = a finite float above 0, dropout = a float of at least 0 and less than 1, targets = an array of strings} [dtc-c11]}}
func.func private @lora() attributes {dtc.lora = {rank = 2 : i64, alpha = 8.0 : f64, dropout = 0.0 : f64, targets = ["a"]}}

// -----

func.func @agreed(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.agreed' is true, expected no value [dtc-c13]}}
  %0 = dtc.neg %x {dtc.agreed = true} : tensor<f32>
  return
}

// -----

func.func @reads_master(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.reads_master' is 1 : i32, expected no value [dtc-c13]}}
  %0 = dtc.neg %x {dtc.reads_master = 1 : i32} : tensor<f32>
  return
}

// -----

func.func @outer_gradient(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.outer_gradient' is true, expected no value [dtc-c13]}}
  %0 = dtc.neg %x {dtc.outer_gradient = true} : tensor<f32>
  return
}

// -----

func.func @loss_chunk(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.loss_chunk' is 2 : i64, expected no value [dtc-c13]}}
  %0 = dtc.neg %x {dtc.loss_chunk = 2} : tensor<f32>
  return
}

// -----

// expected-error@+1 {{argument #0 is the step state "speed", expected applied_steps, skipped_steps, loss_scale, good_steps, growth_interval or random_key [dtc-c8]}}
func.func private @unknown_step_state(tensor<i32> {dtc.step_state = "speed"})

// -----

// expected-error@+1 {{argument #0 is the step state "applied_steps" of type 'tensor<f32>', expected tensor<i32> [dtc-c9]}}
func.func private @counter_of_floats(tensor<f32> {dtc.step_state = "applied_steps"})

// -----

// expected-error@+1 {{argument #0 is the step state "growth_interval" of type 'tensor<1xi32>', expected tensor<i32> [dtc-c9]}}
func.func private @counters(tensor<1xi32> {dtc.step_state = "growth_interval"})

// -----

// expected-error@+1 {{argument #0 is the step state "loss_scale" of type 'tensor<f16>', expected tensor<f32> or tensor<f64> [dtc-c9]}}
func.func private @narrow_scale(tensor<f16> {dtc.step_state = "loss_scale"})

// -----

// expected-error@+1 {{argument #0 is the step state "random_key" of type 'tensor<i32>', expected tensor<2xi32> [dtc-c9]}}
func.func private @short_key(tensor<i32> {dtc.step_state = "random_key"})

// -----

// expected-error@+1 {{argument #1 is the step state "good_steps", as argument #0 is already; expected one of each kind [dtc-c10]}}
func.func private @twice(tensor<i32> {dtc.step_state = "good_steps"}, tensor<i32> {dtc.step_state = "good_steps"})

// -----

func.func @op_number(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.op' is "first", expected the number of an op [dtc-c14]}}
  %0 = dtc.neg %x {dtc.op = "first"} : tensor<f32>
  return
}

// -----

func.func @gradient_of(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.gradient_of' is unit, expected the number of an op [dtc-c14]}}
  %0 = dtc.neg %x {dtc.gradient_of} : tensor<f32>
  return
}

// -----

// expected-error@+1 {{argument #0 has 'dtc.frozen', expected it without a value on an argument with 'dtc.param' [dtc-c19]}}
func.func private @frozen_input(tensor<4xf32> {dtc.input = "x", dtc.frozen})

// -----

// expected-error@+1 {{argument #0 has 'dtc.frozen', expected it without a value on an argument with 'dtc.param' [dtc-c19]}}
func.func private @frozen_value(tensor<4xf32> {dtc.param = "x", dtc.frozen = true})
