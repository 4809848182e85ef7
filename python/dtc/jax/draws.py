"""Random numbers of JAX, followed from a key to the choice between a tensor's elements and zeros, which is dropout. dtc draws the
mask of a dropout itself, by Philox (Salmon et al. 2011), so that of the bits only their distribution is known here."""

import dataclasses

import jax
import numpy

KEY, INTEGERS, FLOATS, MASK = "key", "integers", "floats", "mask"
WHAT_TO_DO = ("random numbers are captured as dropout alone, jnp.where(jax.random.bernoulli(key, keep, x.shape), x / keep, 0); draw "
              "others outside of the loss and give them in the batch")
# Ops that choose or reorder elements: what they are applied to stays as random as it was.
PARTS = ("slice", "dynamic_slice", "gather", "transpose", "rev", "unstack", "split", "select")
SAME = ("reshape", "squeeze", "expand_dims", "copy", "random_wrap", "random_unwrap", "random_clone")
NEAR = 1e-6  # relative; the resolution of f32, in which probabilities are


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A value that is drawn. `source` says from what, so that two that JAX draws alike are found. Integers and floats are uniform
    in [low, high). A mask is `scale` with the probability `keep`, and else 0. `shape` is that of the elements that differ, which
    `repeats`, (shape, places) of broadcast_in_dim each, make the value's."""

    kind: str
    source: tuple
    low: float = 0
    high: float = 1
    keep: float = 1
    scale: float = 1
    shape: tuple = ()
    repeats: tuple = ()

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)


def is_key(aval):
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def key(source):
    return Drawn(KEY, (source,))


def is_random(eqn, operands):
    """Whether an equation is of random numbers."""
    name = eqn.primitive.name
    return name.startswith("random_") or name == "threefry2x32" or any(each.drawn for each in operands)


class Draws:
    """Finds the results of equations of random numbers for the printer of the graph."""

    def __init__(self, printer, value_class):
        self.printer, self.value_class = printer, value_class
        self.used = set()  # the sources of masks that were applied
        self.key_names = set()  # of values that are keys, as arguments give them

    def results(self, eqn, operands):
        name = eqn.primitive.name
        if name == "select_n" and operands[0].drawn and not any(each.drawn for each in operands[1:]):
            return [self.chosen(eqn, *operands)]
        if name == "mul":
            for mask, other in (operands, operands[::-1]):
                if mask.drawn and mask.drawn.kind == MASK and not other.drawn and self.printer.splat_of(other) is None:
                    return [self.applied(eqn, other, mask, mask.drawn)]
        found = self.distribution(eqn, operands)
        if found is None:
            self.fail(eqn)
        many = len(eqn.outvars) > 1
        return [self.value(variable.aval, found.with_(source=(*found.source, i)) if many else found)
                for i, variable in enumerate(eqn.outvars)]

    def value(self, aval, drawn):
        value = self.value_class(None, aval)
        value.drawn, value.fixed = drawn if drawn.repeats else drawn.with_(shape=tuple(aval.shape)), False
        return value

    def fail(self, eqn):
        self.printer.fail(eqn, WHAT_TO_DO)

    # What is drawn.

    def distribution(self, eqn, operands):
        """What the results of an equation are drawn from; None where it is nothing that leads to a mask."""
        name = eqn.primitive.name
        if name == "random_bits":
            return Drawn(INTEGERS, ("bits", self.source(operands[0]), str(eqn.params)), 0, 2 ** eqn.params["bit_width"])
        if name == "threefry2x32":
            return Drawn(INTEGERS, ("threefry", *map(self.source, operands)), 0, 2**32)
        if name in ("random_seed", "random_split", "random_fold_in"):
            return key((name, str(eqn.params), *map(self.source, operands)))
        if name == "random_wrap" and not operands[0].drawn:
            return key(self.source(operands[0]))
        drawn = operands[0].drawn if operands else None
        if name in SAME and drawn and (not drawn.repeats or name == "copy"):
            return drawn
        if name == "broadcast_in_dim" and drawn:
            return self.repeated(eqn, operands[0])
        if name == "concatenate" and all(each.drawn and (each.drawn.kind, each.drawn.low, each.drawn.high, each.drawn.keep,
                                                         each.drawn.scale) ==
                                         (drawn.kind, drawn.low, drawn.high, drawn.keep, drawn.scale) and not each.drawn.repeats
                                         for each in operands):
            return drawn.with_(source=(name, str(eqn.params), *map(self.source, operands)))
        if name in PARTS and drawn and not drawn.repeats and not any(each.drawn for each in operands[1:]):
            return drawn.with_(source=(drawn.source, name, str(eqn.params), *map(self.source, operands[1:])))
        if drawn and drawn.kind == KEY:
            return None
        return self.arithmetic(eqn, operands)

    def source(self, value):
        if value.drawn:
            return value.drawn.source
        if value.known is not None:
            return ("number", value.known.item())
        if value.problem:  # an integer that was converted to one without a sign
            return self.source(value.origin[1][0])
        self.key_names.add(value.name)
        return ("value", value.name)

    def repeated(self, eqn, value):
        shape, places = tuple(eqn.params["shape"]), tuple(int(each) for each in eqn.params["broadcast_dimensions"])
        drawn = value.drawn
        repeats = numpy.prod(shape) != numpy.prod(value.shape)
        if drawn.kind == KEY:
            return drawn if not repeats else None
        return drawn.with_(repeats=(*drawn.repeats, (shape, places))) if repeats or drawn.repeats else drawn

    def arithmetic(self, eqn, operands):
        """Of a value that is drawn and of numbers."""
        name = eqn.primitive.name
        position = next(i for i, each in enumerate(operands) if each.drawn)
        drawn = operands[position].drawn
        numbers = [self.printer.splat_of(each) for i, each in enumerate(operands) if i != position]
        if len(numbers) > 1 or None in numbers:
            return None
        number, is_first = numbers[0] if numbers else None, position == 0
        if name == "convert_element_type":
            return self.converted(eqn, drawn)
        if drawn.kind == MASK:
            return self.of_mask(name, drawn, number, is_first, eqn)
        if drawn.kind == INTEGERS and name in ("shift_right_logical", "or", "bitcast_convert_type"):
            return self.of_bits(name, drawn, number, is_first, eqn)
        if name in ("lt", "le", "gt", "ge"):
            below = (number - drawn.low) / (drawn.high - drawn.low)
            is_below = (name in ("lt", "le")) == is_first
            return drawn.with_(kind=MASK, keep=float(min(max(below if is_below else 1 - below, 0), 1)), low=0, high=1)
        return self.of_floats(name, drawn, number, is_first) if drawn.kind == FLOATS else None

    @staticmethod
    def converted(eqn, drawn):
        kind = eqn.params["new_dtype"]
        if drawn.kind == INTEGERS:
            if jax.dtypes.issubdtype(kind, numpy.floating):
                return drawn.with_(kind=FLOATS)
            return drawn if jax.dtypes.issubdtype(kind, numpy.integer) and drawn.high - 1 <= jax.numpy.iinfo(kind).max else None
        if drawn.kind == MASK and drawn.scale != 1 and not jax.dtypes.issubdtype(kind, numpy.floating):
            return None
        return drawn if drawn.kind == MASK or jax.dtypes.issubdtype(kind, numpy.floating) else None

    @staticmethod
    def of_mask(name, drawn, number, is_first, eqn):
        if name == "not" and eqn.outvars[0].aval.dtype == numpy.bool_:
            return drawn.with_(keep=1 - drawn.keep)
        if name == "mul" or (name == "div" and is_first and number != 0):
            return drawn.with_(scale=drawn.scale * number if name == "mul" else drawn.scale / number)
        return None

    @staticmethod
    def of_bits(name, drawn, number, is_first, eqn):
        if name == "shift_right_logical" and is_first and drawn.low == 0:
            return drawn.with_(high=drawn.high >> int(number))
        if name == "or" and drawn.low == 0 and int(number) & (drawn.high - 1) == 0:
            return drawn.with_(low=int(number), high=int(number) + drawn.high)
        if name == "bitcast_convert_type":
            # Floats in [1, 2) have the exponent of 1 and any mantissa.
            kind = numpy.dtype(eqn.params["new_dtype"])
            if jax.dtypes.issubdtype(kind, numpy.floating):
                one = int(numpy.asarray(1, kind).view(f"uint{8 * kind.itemsize}"))
                if (drawn.low, drawn.high) == (one, one + 2 ** jax.numpy.finfo(kind).nmant):
                    return drawn.with_(kind=FLOATS, low=1, high=2)
        return None

    @staticmethod
    def of_floats(name, drawn, number, is_first):
        low, high = drawn.low, drawn.high
        if name == "add":
            return drawn.with_(low=low + number, high=high + number)
        if name == "sub" and is_first:
            return drawn.with_(low=low - number, high=high - number)
        if name == "sub":
            return drawn.with_(low=number - high, high=number - low)
        if name == "mul" and number > 0:
            return drawn.with_(low=low * number, high=high * number)
        if name == "div" and is_first and number > 0:
            return drawn.with_(low=low / number, high=high / number)
        return drawn if (name == "max" and number <= low) or (name == "min" and number >= high) else None

    def part(self, eqn, value, index, aval):
        """An element of the first dimension, as a step of a scan takes it."""
        if value.drawn.repeats:
            self.fail(eqn)
        return self.value(aval, value.drawn.with_(source=(value.drawn.source, "step", index)))

    # What is dropped.

    def chosen(self, eqn, which, *cases):
        """Of a choice by a mask between a tensor and zeros."""
        if which.drawn.kind == MASK and which.aval.dtype == numpy.bool_ and len(cases) == 2:
            for i, drawn in ((1, which.drawn), (0, which.drawn.with_(keep=1 - which.drawn.keep))):
                if self.printer.splat_of(cases[1 - i]) == 0:
                    return self.applied(eqn, cases[i], which, drawn)
        return self.fail(eqn)

    def applied(self, eqn, x, mask, drawn):
        """x times a mask."""
        if x.shift:
            self.printer.fail_stopped(eqn)
        if not x.is_float:
            self.fail(eqn)
        if drawn.keep <= 0:
            self.printer.fail(eqn, f"dropout keeps elements with the probability {drawn.keep}, expected one above 0; leave the "
                                   "tensor out")
        if drawn.source in self.used:
            self.printer.fail(eqn, "one random mask drops elements of two tensors, or two masks are drawn from one key, which JAX "
                                   "draws alike; dtc draws each of its own: use a key for each, such as by jax.random.split()")
        self.used.add(drawn.source)
        # dtc.dropout divides by what it keeps. x is most often divided by that already.
        unscaled, factor = self.printer.factor_of(x)
        keep = 1 / (factor * drawn.scale) if factor * drawn.scale > 0 else drawn.keep
        if abs(keep - drawn.keep) > NEAR * drawn.keep:
            unscaled, keep = self.scaled(eqn, x, drawn.scale * drawn.keep), drawn.keep
        repeats = drawn.repeats if mask.shape == x.shape else (*drawn.repeats, (x.shape, tuple(range(mask.ndim))))
        if not repeats or drawn.keep == 1:
            value = self.dropped(eqn, unscaled, keep)
        else:
            ones = self.printer.emit(eqn, "full", {}, {"size": drawn.shape, "fill_value": 1.0}, x.aval.update(shape=drawn.shape))
            kept = self.dropped(eqn, ones, keep)
            for size, places in repeats:
                kept = self.printer.spread(eqn, kept, size, places)
            value = self.printer.emit(eqn, "mul", {"self": unscaled, "other": kept}, aval=x.aval)
        self.printer.mark(value, [x])
        value.fixed = False
        return value

    def dropped(self, eqn, x, keep):
        if keep >= 1:
            return self.value_class(x.name, x.aval, x.known)
        return self.printer.emit(eqn, "dropout", {"input": x}, {"p": 1 - float(keep), "train": True}, aval=x.aval)

    def scaled(self, eqn, x, factor):
        return x if factor == 1 else self.printer.emit(eqn, "mul", {"self": x}, {"other": float(factor)}, x.aval)
