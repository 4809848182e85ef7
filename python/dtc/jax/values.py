"""Values of a graph of JAX, and what can be said of them."""

import jax.numpy as jnp
import numpy

from dtc import capture_text as text
from dtc.errors import Error


class CaptureError(Error):
    """The model cannot be captured; the text says why, where, and what to do."""


class Value:
    """A value of the graph: its name in the text, or a known scalar (`known`); whether it depends on parameters that are
    trained, or on any argument (else it is `fixed`); its shift; what it is drawn from, for which there is no name; the equation
    that has made it, as (name of the primitive, operands), where that was kept; (name, function of arrays, operands) that `made`
    it, and its `array`, where that is known; the problem of what can be a key alone."""

    def __init__(self, name, aval, known=None, shift=None):
        self.name, self.aval, self.known, self.shift = name, aval, known, shift
        self.trained, self.fixed, self.origin, self.drawn, self.problem = False, True, None, None, None
        self.made, self.array = None, None

    @property
    def shape(self):
        return tuple(self.aval.shape)

    @property
    def ndim(self):
        return len(self.aval.shape)

    @property
    def is_argument(self):
        return self.name is not None and self.name.startswith("%a")

    @property
    def is_float(self):
        return jnp.issubdtype(self.aval.dtype, jnp.floating)


def ints(values):
    return tuple(int(each) for each in values)


def scalar_of(value):
    number = value.known.item()
    return bool(number) if value.aval.dtype == numpy.bool_ else number


def elements(array):
    """The elements of an array as a dense attribute."""
    if str(array.dtype) in ("uint32", "uint8"):
        array = array.astype("int64" if str(array.dtype) == "uint32" else "int16")
    is_float = jnp.issubdtype(array.dtype, jnp.floating)
    if not text.is_written_out(array.size, array.dtype == numpy.bool_, not is_float or bool(numpy.isfinite(array).all())):
        return text.dense(numpy.ascontiguousarray(array).tobytes(), array.shape)
    return text.dense((array.astype(numpy.float64) if is_float else array).flatten().tolist(), array.shape)


def source_of_shape(value):
    """The value of which another one is a reshape, a broadcast or a conversion."""
    while value.origin and value.origin[0] in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type"):
        value = value.origin[1][0]
    return value


def first_column(indices):
    """The first of the indices of a dimension each, [..., 1], where all others are 0; None where they are not."""
    name, parts = indices.origin or (None, ())
    if name != "concatenate" or any(each.shape[-1] != 1 for each in parts):
        return None

    def is_zero(value):
        while value.origin and value.origin[0] in ("broadcast_in_dim", "reshape"):
            value = value.origin[1][0]
        return is_number(value, 0)
    return parts[0] if all(map(is_zero, parts[1:])) else None


def is_number(value, number):
    return value.known is not None and value.known == number
