"""Mixtures of experts in a capture. Their tokens are rows of each expert, of which a capture does not know how many there are:
operators of the library "dtc" stand for what depends on that, and dtc-import turns them into its own. Shapes: T tokens, D width,
X experts, K experts of a token, B samples, C = T / B rows of an expert for a sample."""

import contextlib
import sys

import torch

LIBRARY = torch.library.Library("dtc", "DEF")
# Samples of the batch that is captured; None where nothing is.
_samples = None


def _operator(schema):
    """Registers the decorated function as what gives the types of an operator's results."""
    def register(fake):
        LIBRARY.define(schema)
        torch.library.register_fake("dtc::" + schema.partition("(")[0], fake, lib=LIBRARY)
        return fake
    return register


@_operator("expert_rows(Tensor chosen, Tensor weights, int experts, int samples) -> (Tensor, Tensor, Tensor)")
def _(chosen, weights, experts, samples):
    """Of the experts [T, K] of tokens and their weights: the place of the token of each row [X, B, C], the same for the experts'
    products, and the weight of each row."""
    if chosen.dim() != 2 or weights.shape != chosen.shape:
        raise ValueError(f"experts are chosen as {list(chosen.shape)} with weights {list(weights.shape)}, expected [tokens, selected] "
                         "of both")
    shape = experts, samples, chosen.shape[0] // samples
    return chosen.new_empty(shape), chosen.new_empty(shape), weights.new_empty(shape)


@_operator("dispatch_rows(Tensor x, Tensor rows) -> Tensor")
def _(x, rows):
    """The rows [X, B, C, D] of tokens [T, D]; a row without a token is zeros."""
    return x.new_empty((*rows.shape, x.shape[-1]))


@_operator("expert_product(Tensor x, Tensor weight, Tensor rows, int selected, bool transposed) -> Tensor")
def _(x, weight, rows, selected, transposed):
    """Rows [X, B, C, in] times their expert's weight of [X, out, in], or of [X, in, out] if that is transposed."""
    matrices = ("in", "out") if transposed else ("out", "in")
    if weight.dim() != 3 or weight.shape[0] != x.shape[0] or weight.shape[1 if transposed else 2] != x.shape[-1]:
        raise ValueError(f"rows of {x.shape[0]} experts have {x.shape[-1]} elements, and their weight is {list(weight.shape)}, "
                         f"expected [{x.shape[0]}, {matrices[0]}, {matrices[1]}] where in is {x.shape[-1]}")
    return x.new_empty((*x.shape[:-1], weight.shape[2 if transposed else 1]))


@_operator("weigh_rows(Tensor x, Tensor weights) -> Tensor")
def _(x, weights):
    """Rows [X, B, C, F], each times its weight of [X, B, C]."""
    return torch.empty_like(x)


@_operator("combine_rows(Tensor x, Tensor rows) -> Tensor")
def _(x, rows):
    """The sums [T, D] of the rows [X, B, C, D] of each token."""
    return x.new_empty((x.shape[1] * x.shape[2], x.shape[3]))


class _Captured:
    """The rows of a layer's experts in a capture."""

    def __init__(self, x, chosen, weights, number):
        if x.shape[0] % _samples != 0:
            raise ValueError(f"{x.shape[0]} tokens go to experts, expected a multiple of the {_samples} samples of the batch")
        self.selected = chosen.shape[1]
        self.places, self.places_of_experts, self.weights = torch.ops.dtc.expert_rows(
            chosen, weights.to(x.dtype), number, _samples)
        self.rows = torch.ops.dtc.dispatch_rows(x, self.places)

    def product(self, rows, weight, transposed=False):
        return torch.ops.dtc.expert_product(rows, weight, self.places_of_experts, self.selected, transposed)

    def weigh(self, rows):
        return torch.ops.dtc.weigh_rows(rows, self.weights)

    def combine(self, rows):
        return torch.ops.dtc.combine_rows(rows, self.places)


class _Plain:
    """The same in PyTorch's operators, where each expert has a row for each token: [X, 1, T, D]."""

    def __init__(self, x, chosen, weights, number):
        self.rows = x.expand(number, 1, *x.shape)
        dense = weights.new_zeros(x.shape[0], number).scatter(1, chosen, weights)
        self.weights = dense.t()[:, None, :, None].to(x.dtype)

    def product(self, rows, weight, transposed=False):
        return torch.matmul(rows, (weight if transposed else weight.transpose(1, 2)).unsqueeze(1))

    def weigh(self, rows):
        return rows * self.weights

    def combine(self, rows):
        return rows.sum((0, 1))


def experts(x, chosen, weights, inner, down):
    """What the experts of each token give, times their weights, added up: [T, D].

    x: the tokens, [T, D], those of a sample next to each other.
    chosen, weights: the experts of each token by number, as torch.topk gives them, and their weights, both [T, K].
    inner: a function (rows, product) of the rows [X, ..., D] of all experts that gives rows [X, ..., F]: product(rows, weight)
        multiplies them by a weight [X, out, in], which has the matrix of each expert. All else must be computed of each row by
        itself. Rows may have no token; they are left out of the sum.
    down: the weight [X, D, F] of the last product.

    It can be captured, which a loop over the tokens of each expert cannot; outside of a capture it computes all experts of each
    token.
    """
    if x.dim() != 2 or chosen.dim() != 2 or chosen.shape != weights.shape or chosen.shape[0] != x.shape[0] or down.dim() != 3:
        raise ValueError(f"experts() has tokens {list(x.shape)}, experts {list(chosen.shape)}, weights {list(weights.shape)} and "
                         f"a last product of {list(down.shape)}, expected [T, D], [T, K], [T, K] and [X, D, F]")
    layer = (_Plain if _samples is None else _Captured)(x, chosen, weights, down.shape[0])
    return layer.combine(layer.product(layer.weigh(inner(layer.rows, layer.product)), down))


def _spread(bias):
    """[X, F] -> [X, 1, 1, F]"""
    return bias[:, None, None, :]


class _Sides:
    """Rows [X, B, C, 2 F] of both sides of a gate, which a model takes apart again: each side has a product of its own, so that each
    can be split by its width. Elements of both follow each other by turns where they are not concatenated."""

    def __init__(self, sides, is_concatenated):
        self.sides, self.is_concatenated = sides, is_concatenated

    def whole(self):
        return torch.cat(self.sides, -1) if self.is_concatenated else torch.stack(self.sides, -1).flatten(-2)

    def chunk(self, chunks, dim=0):
        if self.is_concatenated and chunks == 2 and dim in (-1, self.sides[0].dim() - 1):
            return self.sides
        return self.whole().chunk(chunks, dim)

    def __getitem__(self, index):
        for number, side in enumerate(self.sides):
            if not self.is_concatenated and index in ((..., slice(number, None, 2)), (..., slice(number or None, None, 2))):
                return side
        return self.whole()[index]

    def __getattr__(self, name):
        return getattr(self.whole(), name)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        plain = lambda each: each.whole() if isinstance(each, cls) else each
        return function(*map(plain, arguments), **{name: plain(each) for name, each in (named or {}).items()})


def _sides_of(tensor, dim, is_concatenated):
    """Both sides of a gate in a weight or a bias that has them along `dim`."""
    if is_concatenated:
        return tensor.chunk(2, dim=dim)
    places = [slice(None)] * tensor.dim()
    return tuple(tensor[(*places[:dim], slice(side, None, 2), *places[dim + 1:])] for side in range(2))


def _transformers_experts(module, hidden_states, top_k_index, top_k_weights):
    """What transformers' implementations of experts compute (integrations/moe.py), in a capture."""
    if module._is_expert_parallel:
        raise ValueError("the experts of the model are split among processes by transformers; leave that to dtc, mesh=\"ep=2\"")
    number, has_gate = module.down_proj.shape[0], module.has_gate
    layer = _Captured(hidden_states, top_k_index, top_k_weights, number)
    weight = module.gate_up_proj if has_gate else module.up_proj
    bias = (module.gate_up_proj_bias if has_gate else module.up_proj_bias) if module.has_bias else None

    def up(weight, bias):
        rows = layer.product(layer.rows, weight, module.is_transposed)
        return rows if bias is None else rows + _spread(bias)
    if has_gate:
        is_concatenated = getattr(module, "is_concatenated", True)
        weights = _sides_of(weight, 2 if module.is_transposed else 1, is_concatenated)
        biases = _sides_of(bias, 1, is_concatenated) if bias is not None else (None, None)
        sides = tuple(up(each, part) for each, part in zip(weights, biases, strict=True))
        rows = module._apply_gate(_Sides(sides, is_concatenated))
    else:
        rows = module.act_fn(up(weight, bias))
    if module.has_post_expert_norm:
        rows = layer.product(rows, module.down_proj, module.is_transposed)
        rows = rows + _spread(module.down_proj_bias) if module.has_bias else rows
        return layer.combine(layer.weigh(module.post_expert_norm(rows)))
    # Before the last product, which is linear: there the rows are narrower than after it.
    rows = layer.product(layer.weigh(rows), module.down_proj, module.is_transposed)
    if module.has_bias:
        rows = rows + layer.weigh(_spread(module.down_proj_bias).expand_as(rows))
    return layer.combine(rows)


@contextlib.contextmanager
def captured(samples):
    """In this context experts() and the experts of transformers are operators of the library "dtc". The batch has as many
    samples."""
    global _samples
    moe = sys.modules.get("transformers.integrations.moe")
    interface = getattr(moe, "ExpertsInterface", None)
    before, original = _samples, interface.get_interface if interface else None
    _samples = samples
    if interface:
        interface.get_interface = lambda *_: _transformers_experts
    try:
        yield
    finally:
        _samples = before
        if interface:
            interface.get_interface = original
