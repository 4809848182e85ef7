"""The ATen operators that dtc-import converts (compiler/import/torch/). All others are decomposed where torch can do that."""

CONVERTED = frozenset("""
    abs add addmm alias amax amin arange baddbmm bitwise_and bitwise_not bitwise_or bmm broadcast_to cat chunk clamp
    clamp_max clamp_min clone contiguous convolution cos cross_entropy_loss cumsum detach diff div dropout elu embedding eq erf exp expand
    flatten full full_like gather ge gelu gt index layer_norm le leaky_relu lift_fresh_copy linear log log_softmax logical_and
    logical_not logical_or lt masked_fill matmul maximum mean minimum mm mul ne neg new_ones new_zeros ones ones_like pad
    permute pow reciprocal relu reshape rms_norm rsqrt rsub scalar_tensor scaled_dot_product_attention select sigmoid silu
    sin slice softmax softplus split split_with_sizes sqrt square squeeze stack sub sum t tanh to transpose tril triu
    unbind unflatten unsqueeze var view where zeros zeros_like __and__ __or__ _to_copy _unsafe_view
""".split())


def is_converted(operator):
    """Whether dtc-import has a rule for the operator, a torch._ops.OpOverload."""
    return operator.namespace == "aten" and operator._schema.name.partition("::")[2] in CONVERTED
