"""Random numbers of JAX, followed from a key to the choice between a tensor's elements and zeros, which is dropout. dtc draws the
mask of a dropout itself, by Philox (Salmon et al. 2011), so that of the bits only their distribution is known here."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy

from dtc.jax import identities

KEY, INTEGERS, FLOATS, MASK = "key", "integers", "floats", "mask"
WHAT_TO_DO = ("random numbers are captured as dropout alone, jnp.where(jax.random.bernoulli(key, keep, x.shape), x / keep, 0); draw "
              "others outside of the loss and give them in the batch")
# Ops of each element of numbers, which are computed of all the values that they can have where these are few.
ELEMENTWISE = ("add", "and", "bitcast_convert_type", "convert_element_type", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul",
               "ne", "not", "or", "rem", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sub", "xor")
FEW = 2**16  # values; the probabilities of more are taken as of a continuous distribution
NEAR = 1e-6  # relative; the resolution of f32, in which probabilities are


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """A value that is drawn. `elements` says from what, so that two that JAX draws alike are found. Integers and floats are uniform
    in [low, high), or one of `points`, all as likely, where these are few. A mask is `scale` with the probability `keep`, and else
    0. `shape` is that of the elements that differ, which `repeats`, (shape, places) of broadcast_in_dim each, make the value's."""

    kind: str
    elements: identities.Elements
    low: float = 0
    high: float = 1
    keep: float = 1
    scale: float = 1
    points: numpy.ndarray | None = None
    shape: tuple = ()
    repeats: tuple = ()

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)

    @property
    def distribution(self):
        points = None if self.points is None else (str(self.points.dtype), self.points.tobytes())
        return self.kind, self.low, self.high, self.keep, self.scale, points


def is_key(aval):
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def integers(elements, low, high, dtype):
    """Uniform in [low, high)."""
    points = numpy.arange(low, high, dtype=dtype) if high - low <= FEW else None
    return Drawn(INTEGERS, elements, low, high, points=points)


def is_random(eqn, operands):
    """Whether an equation is of random numbers."""
    name = eqn.primitive.name
    return name.startswith("random_") or name == "threefry2x32" or any(each.drawn for each in operands)


class Draws:
    """Finds the results of equations of random numbers for the printer of the graph."""

    def __init__(self, printer, value_class):
        self.printer, self.value_class = printer, value_class
        self.keys = identities.Keys(printer)
        self.used = {}  # the elements of masks that were applied, by the keys that they are drawn from

    def constant_key(self, array):
        value = self.value_class(None, jax.typeof(array))
        value.drawn = Drawn(KEY, identities.of_keys(self.keys.constant(jax.random.key_data(array))))
        return value

    def input_key(self, name, aval):
        return Drawn(KEY, identities.of_keys(self.keys.argument(name, tuple(aval.shape))))

    def results(self, eqn, operands):
        try:
            return self.found(eqn, operands)
        except identities.Unfit as unfit:
            return self.printer.fail(eqn, str(unfit))

    def found(self, eqn, operands):
        name = eqn.primitive.name
        if name == "select_n" and operands[0].drawn and not any(each.drawn for each in operands[1:]):
            return [self.chosen(eqn, *operands)]
        if name == "mul":
            for mask, other in (operands, operands[::-1]):
                if mask.drawn and mask.drawn.kind == MASK and not other.drawn and self.printer.splat_of(other) is None:
                    return [self.applied(eqn, other, mask, mask.drawn)]
        found = self.distributions(eqn, operands)
        if None in found:
            self.fail(eqn)
        return [self.value(variable.aval, each) for variable, each in zip(eqn.outvars, found, strict=True)]

    def value(self, aval, drawn):
        value = self.value_class(None, aval)
        value.drawn, value.fixed = drawn if drawn.repeats else drawn.with_(shape=tuple(aval.shape)), False
        return value

    def fail(self, eqn):
        self.printer.fail(eqn, WHAT_TO_DO)

    # What is drawn.

    def distributions(self, eqn, operands):
        """What the results of an equation are drawn from; None where it is nothing that leads to a mask."""
        name = eqn.primitive.name
        if name == "threefry2x32":
            return [integers(each, 0, 2**32, "uint32") for each in self.keys.hashed(eqn, operands)]
        if name.startswith("random_"):
            return [self.of_key(eqn, name, operands)]
        if name == "copy":
            return [operands[0].drawn]
        if name == "broadcast_in_dim" and (operands[0].drawn.repeats or eqn.outvars[0].aval.size != operands[0].aval.size):
            return [self.repeated(operands[0], tuple(eqn.params["shape"]), eqn.params["broadcast_dimensions"])]
        if name in identities.MOVES:
            return self.moved(eqn, name, operands)
        return [self.arithmetic(eqn, operands)]

    def of_key(self, eqn, name, operands):
        if name == "random_seed":
            return Drawn(KEY, self.keys.distinct(self.keys.seeded(eqn, operands[0])))
        if name == "random_wrap":
            return Drawn(KEY, self.keys.distinct(self.keys.wrapped(self.keys.words(operands[0]))))
        if name == "random_clone":
            return Drawn(KEY, self.keys.words(operands[0]))
        keys = operands[0].drawn.elements.find()[0]
        if name == "random_unwrap":
            return Drawn(KEY, identities.of_words(keys, eqn.outvars[0].aval.shape[-1]))
        if name == "random_split":
            return Drawn(KEY, self.keys.distinct(self.keys.split(keys, tuple(eqn.params["shape"]))))
        if name == "random_fold_in":
            return Drawn(KEY, self.keys.distinct(self.keys.folded(keys, operands[1])))
        if name == "random_bits":
            self.keys.distinct(keys)
            shape, width = tuple(eqn.params["shape"]), eqn.params["bit_width"]
            return integers(identities.of_draw(keys, shape, (shape, width)), 0, 2**width, eqn.outvars[0].aval.dtype)
        return None

    def moved(self, eqn, name, operands):
        """Of elements that are moved."""
        drawn = [each.drawn for each in operands]
        if drawn[0] is None or any(each and each.repeats for each in drawn):
            return [None]
        if name in identities.JOINS:
            if None in drawn or len({each.distribution for each in drawn}) != 1:
                return [None]
            move = identities.move_of(eqn, ())
            return [self.kept(drawn[0], identities.joined([each.elements for each in drawn], move))]
        for each in operands[1:]:
            self.keys.uses(each)
        indices = [self.printer.evaluated(each) for each in operands[1:]]
        if any(each is None for each in indices):
            raise identities.Unfit(identities.REPEATED)
        found = []
        for i, _ in enumerate(eqn.outvars):
            elements = drawn[0].elements.moved(identities.move_of(eqn, indices, i))
            if name == "gather":
                identities.check_within(eqn, operands[0].shape, indices[0])
                if identities.may_repeat(eqn, indices):
                    elements.check_distinct()
            found.append(self.kept(drawn[0], elements))
        return found

    @staticmethod
    def kept(drawn, elements):
        """Elements with a distribution; those of keys, which are few, are found."""
        if drawn.kind == KEY:
            keys, words = elements.find()
            elements = identities.Elements({}, lambda: (keys, words))
        return drawn.with_(elements=elements)

    @staticmethod
    def repeated(value, shape, places):
        drawn = value.drawn
        return None if drawn.kind == KEY else drawn.with_(repeats=(*drawn.repeats, (shape, tuple(map(int, places)))))

    def arithmetic(self, eqn, operands):
        """Of a value that is drawn and of numbers."""
        position = next(i for i, each in enumerate(operands) if each.drawn)
        drawn = operands[position].drawn
        numbers = [self.printer.splat_of(each) for i, each in enumerate(operands) if i != position]
        if drawn.kind == KEY or len(numbers) > 1 or None in numbers:
            return None
        shape = tuple(eqn.outvars[0].aval.shape)
        if shape != operands[position].shape:  # dimensions of size 1 are repeated without a broadcast_in_dim
            drawn = self.repeated(operands[position], shape, range(operands[position].ndim))
        if drawn.points is not None:
            return self.of_few(eqn, drawn, [None if each.drawn else self.printer.splat_of(each) for each in operands],
                               [each.aval.dtype for each in operands])
        return self.of_many(eqn, drawn, numbers[0] if numbers else None, position == 0)

    @staticmethod
    def of_few(eqn, drawn, numbers, dtypes):
        """Of all the values that there are."""
        if eqn.primitive.name not in ELEMENTWISE:
            return None
        points = jnp.asarray(drawn.points)
        operands = [points if number is None else jnp.full(points.shape, number, dtype) for number, dtype in zip(numbers, dtypes)]
        found = numpy.asarray(eqn.primitive.bind(*operands, **eqn.params))
        if found.shape != points.shape:
            return None
        if found.dtype == numpy.bool_:
            return drawn.with_(kind=MASK, keep=float(found.mean()), low=0, high=1, points=None)
        return drawn.with_(points=found)

    def of_many(self, eqn, drawn, number, is_first):
        name = eqn.primitive.name
        if name == "convert_element_type":
            return self.converted(eqn, drawn)
        if drawn.kind == MASK:
            return self.of_mask(name, drawn, number, is_first, eqn)
        if drawn.kind == INTEGERS and name in ("shift_right_logical", "or", "bitcast_convert_type"):
            return self.of_bits(name, drawn, number, is_first, eqn)
        if name in ("lt", "le", "gt", "ge"):
            if drawn.kind == INTEGERS:  # x < n is x < ceil(n), and x <= n is x < floor(n) + 1
                number = math.ceil(number) if (name in ("lt", "ge")) == is_first else math.floor(number) + 1
            below = (number - drawn.low) / (drawn.high - drawn.low)
            is_below = (name in ("lt", "le")) == is_first
            return drawn.with_(kind=MASK, keep=float(min(max(below if is_below else 1 - below, 0), 1)), low=0, high=1)
        return self.of_floats(name, drawn, number, is_first) if drawn.kind == FLOATS else None

    @staticmethod
    def converted(eqn, drawn):
        kind = eqn.params["new_dtype"]
        is_float = jax.dtypes.issubdtype(kind, numpy.floating)
        if drawn.kind == MASK:
            return drawn if drawn.scale == 1 or is_float else None
        if is_float:  # values that are rounded to few of a type of 16 bits have other probabilities
            return drawn.with_(kind=FLOATS) if 2**jnp.finfo(kind).nmant >= FEW else None
        is_exact = drawn.kind == INTEGERS and jax.dtypes.issubdtype(kind, numpy.integer) and drawn.high - 1 <= jnp.iinfo(kind).max
        return drawn if is_exact else None

    @staticmethod
    def of_mask(name, drawn, number, is_first, eqn):
        if name == "not" and eqn.outvars[0].aval.dtype == numpy.bool_:
            return drawn.with_(keep=1 - drawn.keep)
        if not jax.dtypes.issubdtype(eqn.outvars[0].aval.dtype, numpy.floating):
            return None
        if name == "mul" or (name == "div" and is_first and number != 0):
            return drawn.with_(scale=drawn.scale * number if name == "mul" else drawn.scale / number)
        return None

    @staticmethod
    def of_bits(name, drawn, number, is_first, eqn):
        if name == "shift_right_logical" and is_first and drawn.low == 0:
            return integers(drawn.elements, 0, (drawn.high - 1 >> int(number)) + 1, eqn.outvars[0].aval.dtype) \
                .with_(repeats=drawn.repeats, shape=drawn.shape)
        if name == "or" and drawn.low == 0 and int(number) & (drawn.high - 1) == 0:
            return drawn.with_(low=int(number), high=int(number) + drawn.high)
        if name == "bitcast_convert_type":
            # Floats in [1, 2) have the exponent of 1 and any mantissa.
            kind = numpy.dtype(eqn.params["new_dtype"])
            if jax.dtypes.issubdtype(kind, numpy.floating):
                one = int(numpy.asarray(1, kind).view(f"uint{8 * kind.itemsize}"))
                if (drawn.low, drawn.high) == (one, one + 2 ** jnp.finfo(kind).nmant):
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
        return self.value(aval, self.kept(value.drawn, value.drawn.elements.moved(lambda array: array[index])))

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
        self.use(eqn, drawn.elements)
        # dtc.dropout divides by what it keeps. x is most often divided by that already.
        aval = eqn.outvars[0].aval
        unscaled, factor = self.printer.factor_of(x)
        keep = 1 / (factor * drawn.scale) if factor * drawn.scale > 0 else drawn.keep
        if abs(keep - drawn.keep) > NEAR * drawn.keep:
            unscaled, keep = self.scaled(eqn, x, drawn.scale * drawn.keep), drawn.keep
        unscaled = self.printer.spread(eqn, unscaled, aval.shape, tuple(range(unscaled.ndim)))
        repeats = drawn.repeats if mask.shape == aval.shape else (*drawn.repeats, (aval.shape, tuple(range(mask.ndim))))
        if not repeats or drawn.keep == 1:
            value = self.dropped(eqn, unscaled, keep)
        else:
            ones = self.printer.emit(eqn, "full", {}, {"size": drawn.shape, "fill_value": 1.0}, aval.update(shape=drawn.shape))
            kept = self.dropped(eqn, ones, keep)
            for size, places in repeats:
                kept = self.printer.spread(eqn, kept, size, places)
            value = self.printer.emit(eqn, "mul", {"self": unscaled, "other": kept})
        self.printer.mark(value, [x])
        value.fixed = False
        return value

    def use(self, eqn, elements):
        """Elements of a mask, each of which drops one of a tensor alone."""
        others = {id(each): each for key in elements.draws for each in self.used.get(key, ())}
        if any(elements.overlaps(each) for each in others.values()):
            self.printer.fail(eqn, "one random mask drops elements of two tensors, or two masks are drawn from one key, which JAX "
                                   "draws alike; dtc draws each of its own: use a key for each, such as by jax.random.split()")
        for key in elements.draws:
            self.used.setdefault(key, []).append(elements)

    def dropped(self, eqn, x, keep):
        if keep >= 1:
            return self.value_class(x.name, x.aval, x.known)
        return self.printer.emit(eqn, "dropout", {"input": x}, {"p": 1 - float(keep), "train": True}, aval=x.aval)

    def scaled(self, eqn, x, factor):
        return x if factor == 1 else self.printer.emit(eqn, "mul", {"self": x}, {"other": float(factor)}, x.aval)
