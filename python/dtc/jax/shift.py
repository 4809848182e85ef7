"""stop_gradient() of what a value does not depend on: softmax(x) is exp(x - m) / sum(exp(x - m)) for any m, so that a
gradient through m is zero. Whether a value depends on m follows from its form, x - m or c exp(x - m), op by op."""

import dataclasses

import jax.numpy as jnp

ADDITIVE, FACTOR = "additive", "factor"


@dataclasses.dataclass(frozen=True)
class Shift:
    """A value is y + k m, or y exp(k m), where y does not depend on m. `dims` has for each of its dimensions the one of m that
    goes along with it, or None where all elements have the same of m."""

    symbol: int
    kind: str
    k: float
    dims: tuple

    def times(self, k):
        return dataclasses.replace(self, k=k) if k else None


def of_stopped(symbol, shape):
    return Shift(symbol, ADDITIVE, 1, tuple(i if size != 1 else None for i, size in enumerate(shape)))


def moved(shift, dims):
    """Of a value whose dimension i was dimension dims[i], or is new where that is None."""
    return dataclasses.replace(shift, dims=tuple(None if each is None else shift.dims[each] for each in dims))


class Mixed(Exception):
    """The value is of no such form."""


def combine(first, second, sign, kind):
    """Of a sum or difference of additive values, or a product or quotient of factors: `sign` is 1 or -1."""
    if first is None and second is None:
        return None
    one = first or second
    if one.kind != kind or (first and second and (first.symbol != second.symbol or first.kind != second.kind
                                                  or first.dims != second.dims)):
        raise Mixed
    return one.times((first.k if first else 0) + sign * (second.k if second else 0))


def result(name, shifts, params, operand_ndim):
    """The shift of the result of a primitive on values with the given shifts, of which at least one is not None. Raises
    Mixed where the result has no such form."""
    first, second = (*shifts, None, None)[:2]
    if name in ("add", "sub"):
        return combine(first, second, 1 if name == "add" else -1, ADDITIVE)
    if name in ("mul", "div"):
        return combine(first, second, 1 if name == "mul" else -1, FACTOR)
    if name == "exp" and first.kind == ADDITIVE:
        return dataclasses.replace(first, kind=FACTOR)
    if name == "log" and first.kind == FACTOR:
        return dataclasses.replace(first, kind=ADDITIVE)
    if name == "neg" and first.kind == ADDITIVE:
        return first.times(-first.k)
    if name == "convert_element_type" and not jnp.issubdtype(params["new_dtype"], jnp.floating):
        raise Mixed
    if name in ("convert_element_type", "copy") or (name in ("abs", "neg") and first.kind == FACTOR):
        return first
    if name == "sign" and first.kind == FACTOR:
        return None
    if name == "reduce_sum" and first.kind == FACTOR and all(first.dims[axis] is None for axis in params["axes"]):
        return moved(first, [i for i in range(operand_ndim) if i not in params["axes"]])
    if name == "broadcast_in_dim":
        places = list(params["broadcast_dimensions"])
        return moved(first, [places.index(i) if i in places else None for i in range(len(params["shape"]))])
    if name == "transpose":
        return moved(first, params["permutation"])
    raise Mixed
