"""The ATen operators that dtc-import converts (compiler/import/torch/). All others are decomposed where torch can do that, or by
decompositions()."""

CONVERTED = frozenset("""
    abs adaptive_avg_pool2d add addmm alias amax amin arange avg_pool1d avg_pool2d baddbmm bitwise_and bitwise_not bitwise_or
    bmm broadcast_to cat chunk clamp clamp_max clamp_min clone contiguous convolution copy cos cross_entropy_loss cumsum detach diff
    div dropout elu embedding empty eq erf exp expand
    flatten full full_like gather ge gelu gt histc index layer_norm le leaky_relu lift_fresh_copy linear log log_softmax logical_and
    logical_not logical_or lt masked_fill matmul max max_pool1d max_pool2d maximum mean minimum mm mul ne neg new_ones new_zeros ones ones_like pad
    permute pow reciprocal relu reshape rms_norm rsqrt rsub scalar_tensor scaled_dot_product_attention scatter select sigmoid silu
    sin slice slice_scatter softmax softplus split split_with_sizes sqrt square squeeze stack sub sum t tanh to topk transpose tril triu
    unbind unflatten unsqueeze var view where zeros zeros_like __and__ __or__ _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _to_copy _unsafe_view
""".split())


def repeat(x, repeats):
    """aten.repeat, which torch does not decompose, by views and one expand()."""
    sizes = [1] * (len(repeats) - x.dim()) + list(x.shape)
    pairs = list(zip(repeats, sizes, strict=True))
    apart = x.reshape([each for count, size in pairs for each in ((1, size) if count != 1 else (size,))])
    wide = apart.expand([each for count, size in pairs for each in ((count, size) if count != 1 else (size,))])
    return wide.reshape([count * size for count, size in pairs])


def log1p(x):
    """log(u) + (x - (u - 1)) / u with u = 1 + x: the second term restores the loss from the rounding of u. Where u is less than 1/2,
    it is not rounded, and the second term is 0, also for u = 0."""
    u = 1 + x
    return u.log() + (x - (u - 1)) / u.clamp(min=0.5)


def expm1(x):
    """tanh(x / 2) (exp(x) + 1), which loses nothing near 0."""
    return (0.5 * x).tanh() * (x.exp() + 1)


def sign(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def hardtanh(x, min_val=-1, max_val=1):
    return x.clamp(min_val, max_val)


def decompositions(aten):
    """Those of operators that torch does not decompose, or decomposes so that an unused branch overflows, by operator. `aten` is
    torch.ops.aten: this file is also read without torch."""
    def celu(x, alpha=1.0):
        return aten.elu.default(x, alpha, 1.0, 1 / alpha)

    return {aten.repeat.default: repeat, aten.log1p.default: log1p, aten.expm1.default: expm1, aten.sign.default: sign,
            aten.sgn.default: sign, aten.hardtanh.default: hardtanh, aten.celu.default: celu}


def is_converted(operator):
    """Whether dtc-import has a rule for the operator, a torch._ops.OpOverload."""
    if operator.namespace == "dtc":
        return True
    return operator.namespace == "aten" and operator._schema.name.partition("::")[2] in CONVERTED
