// RUN: dtc-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_other_axes(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.permute' op is over ["dp", "tp"] from ["dp"], expected the same axes in another order [permute-c3]}}
  %0 = dist.permute %x over @mesh ["dp", "tp"] from ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_shift(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.permute' op has a shift of -1, expected at least 0 [permute-c4]}}
  %0 = dist.permute %x over @mesh ["dp"] from ["dp"] {shift = -1 : i64} : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_twice(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.permute' op names axis "dp" twice [permute-c2]}}
  %0 = dist.permute %x over @mesh ["dp", "dp"] from ["dp", "dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_axis(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.permute' op is over axis "pp", which @mesh lacks [permute-c2]}}
  %0 = dist.permute %x over @mesh ["pp"] from ["pp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_temporal(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.permute' op is over axis "micro", which is temporal; nothing moves between microbatches [permute-c2]}}
  %0 = dist.permute %x over @mesh ["dp", "micro"] from ["micro", "dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_mesh(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.permute' op is over @other, which is not a dist.mesh [permute-c1]}}
  %0 = dist.permute %x over @other ["dp"] from ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @permute_type(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{failed to verify that all of {input, result} have same type}}
  %0 = "dist.permute"(%x) <{mesh = @mesh, axes = ["dp"], source_axes = ["dp"]}> : (tensor<5x3xf32>) -> tensor<3x5xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_size(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op has 3 elements in dimension 0, expected 2 for a block of 5 over ["tp"] [shard_slice-c5]}}
  %0 = dist.shard_slice %x dim 0 over @mesh ["tp"] : (tensor<5x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_cut(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+2 {{'dist.shard_slice' op has 2 elements in dimension 0, expected 3 for a block of 5 over ["dp"] [shard_slice-c5]}}
  // Rounding down would lose an element.
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_other_dim(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op has a result of type 'tensor<3x2xf32>' from 'tensor<5x3xf32>', expected another size of dimension 0 only [shard_slice-c4]}}
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_rank(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op has a result of type 'tensor<3xf32>' from 'tensor<5x3xf32>', expected another size of dimension 0 only [shard_slice-c4]}}
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_element(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op has a result of type 'tensor<3x3xf64>' from 'tensor<5x3xf32>', expected another size of dimension 0 only [shard_slice-c4]}}
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<3x3xf64>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_dim(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op names dimension 2 of 'tensor<5x3xf32>' [shard_slice-c3]}}
  %0 = dist.shard_slice %x dim 2 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_axis(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op is over axis "pp", which @mesh lacks [shard_slice-c2]}}
  %0 = dist.shard_slice %x dim 0 over @mesh ["pp"] : (tensor<5x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @slice_twice(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op names axis "dp" twice [shard_slice-c2]}}
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp", "dp"] : (tensor<5x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_size(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.mask_padding' op has 5 elements in dimension 0, expected 6 for a block of 11 over ["dp"] [mask_padding-c4]}}
  %0 = dist.mask_padding zero %x dim 0 of 11 over @mesh ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_small(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.mask_padding' op has 5 elements in dimension 0, expected 4 for a block of 8 over ["dp"] [mask_padding-c4]}}
  %0 = dist.mask_padding zero %x dim 0 of 8 over @mesh ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_dim(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.mask_padding' op names dimension 2 of 'tensor<5x3xf32>' [mask_padding-c3]}}
  %0 = dist.mask_padding zero %x dim 2 of 9 over @mesh ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_negative_dim(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.mask_padding' op names dimension -1 of 'tensor<5x3xf32>' [mask_padding-c3]}}
  %0 = dist.mask_padding zero %x dim -1 of 9 over @mesh ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_axis(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.mask_padding' op is over axis "pp", which @mesh lacks [mask_padding-c2]}}
  %0 = dist.mask_padding zero %x dim 0 of 9 over @mesh ["pp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_mesh(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.mask_padding' op is over @other, which is not a dist.mesh [mask_padding-c1]}}
  %0 = dist.mask_padding zero %x dim 0 of 9 over @other ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @mask_value(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+2 {{found "one", expected one of zero, lowest, highest}}
  // expected-error@+1 {{failed to parse Dist_PaddingValueAttr parameter}}
  %0 = dist.mask_padding one %x dim 0 of 9 over @mesh ["dp"] : tensor<5x3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_kernel(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<4xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dtc.exp' op cannot stand in a dist.bucket, which holds collectives [bucket-c1]}}
    %b = dtc.exp %y : tensor<4xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_slice(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<2xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.shard_slice' op cannot stand in a dist.bucket, which holds collectives [bucket-c1]}}
    %b = dist.shard_slice %y dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<2xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_kind(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<8xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.all_gather' op is of another kind or over other axes than the first collective of its dist.bucket [bucket-c2]}}
    %b = dist.all_gather %y dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<8xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_axes(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<4xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.all_reduce' op is of another kind or over other axes than the first collective of its dist.bucket [bucket-c2]}}
    %b = dist.all_reduce sum %y over @mesh ["tp"] : tensor<4xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_reduction(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<4xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.all_reduce' op is of another kind or over other axes than the first collective of its dist.bucket [bucket-c2]}}
    %b = dist.all_reduce max %y over @mesh ["dp"] : tensor<4xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_element(%x: tensor<5x3xf32>, %y: tensor<4xf64>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<4xf64> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.all_reduce' op is of another kind or over other axes than the first collective of its dist.bucket [bucket-c2]}}
    %b = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf64>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<4xf64>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_source_axes(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<4xf32> {
    %a = dist.permute %x over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.permute' op is of another kind or over other axes than the first collective of its dist.bucket [bucket-c2]}}
    %b = dist.permute %y over @mesh ["dp", "tp"] from ["dp", "tp"] : tensor<4xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_chain(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  %0:2 = dist.bucket -> tensor<5x3xf32>, tensor<5x3xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    // expected-error@+1 {{'dist.all_reduce' op reads a result of its own dist.bucket [bucket-c3]}}
    %b = dist.all_reduce sum %a over @mesh ["dp"] : tensor<5x3xf32>
    dist.yield %a, %b : tensor<5x3xf32>, tensor<5x3xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_order(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.bucket' op yields other values than those of its collectives, in their order [bucket-c4]}}
  %0:2 = dist.bucket -> tensor<4xf32>, tensor<5x3xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    %b = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf32>
    dist.yield %b, %a : tensor<4xf32>, tensor<5x3xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_outside(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.bucket' op yields other values than those of its collectives, in their order [bucket-c4]}}
  %0 = dist.bucket -> tensor<5x3xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    dist.yield %x : tensor<5x3xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_fewer(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.bucket' op yields other values than those of its collectives, in their order [bucket-c4]}}
  %0 = dist.bucket -> tensor<5x3xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    %b = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf32>
    dist.yield %a : tensor<5x3xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_types(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dist.bucket' op yields other values than those of its collectives, in their order [bucket-c4]}}
  %0 = dist.bucket -> tensor<3x5xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5x3xf32>
    dist.yield %a : tensor<5x3xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @bucket_terminator(%x: tensor<5x3xf32>, %y: tensor<4xf32>) {
  "dist.bucket"() ({
  // expected-error@+1 {{'func.return' op expects parent op 'func.func'}}
  return
  }) : () -> ()
  return
}
