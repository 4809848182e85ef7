"""Names for the elements of random numbers of JAX, the same for those that JAX draws alike."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy

# Primitives that move elements and change none.
JOINS = ("concatenate", "stack")
MOVES = ("slice", "dynamic_slice", "gather", "transpose", "rev", "unstack", "split", "reshape", "squeeze", "expand_dims", "copy",
         "broadcast_in_dim", *JOINS)
REPEATED = ("JAX has one random number for all elements that look up the same place, dtc draws one for each; look up constant "
            "places, each once, or draw outside of the loss and give what is drawn in the batch")
MAY_BE_EQUAL = ("one key is folded with numbers that may be equal, or is split also, which may give equal keys; fold it with one number, "
                "from which others differ by constants, or make keys by jax.random.split()")


class Unfit(Exception):
    """What is drawn cannot be captured; the text says why and what to do."""


@dataclasses.dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a value that is drawn. `draws` has the keys that they may be drawn from, each with what is drawn from it.
    `find()` gives two arrays of the value's shape: the number of each element's key, and the place of the element in what is drawn
    from that; it is called where needed alone, as masks are large."""

    draws: dict
    find: Callable

    def moved(self, move):
        return Elements(self.draws, lambda: tuple(map(move, self.find())))

    def names(self):
        keys, places = self.find()
        return (keys.astype(numpy.int64) << 32 | places).ravel()

    @functools.cached_property
    def bounds(self):
        names = self.names()
        return (names.min(), names.max()) if names.size else (0, -1)

    def overlaps(self, other):
        """Whether JAX may draw elements of both alike. Draws of two shapes from one key may have bits in common."""
        shared = self.draws.keys() & other.draws.keys()
        if any(self.draws[key] != other.draws[key] for key in shared):
            return True
        if not shared or self.bounds[1] < other.bounds[0] or other.bounds[1] < self.bounds[0]:
            return False
        return bool(numpy.isin(self.names(), other.names()).any())

    def check_distinct(self):
        names = self.names()
        if numpy.unique(names).size != names.size:
            raise Unfit(REPEATED)


def joined(elements, join):
    for i, one in enumerate(elements):
        if any(one.overlaps(other) for other in elements[:i]):
            raise Unfit("what is joined has elements that JAX draws alike; draw each part from a key of its own, such as by "
                        "jax.random.split()")

    def find():
        keys, places = zip(*(each.find() for each in elements))
        return join(*keys), join(*places)
    return Elements({key: draw for each in elements for key, draw in each.draws.items()}, find)


def of_keys(keys):
    return Elements({}, lambda: (keys, numpy.zeros(keys.shape, numpy.int32)))


def of_words(keys, count):
    """Of the numbers without a sign that keys consist of."""
    shape = (*keys.shape, count)
    return Elements({}, lambda: (numpy.broadcast_to(keys[..., None], shape),
                                 numpy.broadcast_to(numpy.arange(count, dtype=numpy.int32), shape)))


def of_draw(keys, shape, draw, begin=0):
    """Of numbers of a shape that are drawn from each of some keys."""
    def find():
        places = begin + numpy.arange(numpy.prod(shape, dtype=int), dtype=numpy.int32).reshape(shape)
        whole = (*keys.shape, *shape)
        return (numpy.broadcast_to(keys.reshape(*keys.shape, *(1 for _ in shape)), whole), numpy.broadcast_to(places, whole))
    return Elements({key: draw for key in keys.ravel().tolist()}, find)


def move_of(eqn, indices, i=0):
    """The function of an array, or of several where it joins them, that an equation is: its result i."""
    function = bound(eqn, i if eqn.primitive.multiple_results else None)
    return lambda *arrays: numpy.asarray(function(*map(jnp.asarray, (*arrays, *indices))))


def check_within(eqn, shape, places):
    """That a gather looks up places of a shape."""
    dims, mode = eqn.params["dimension_numbers"].start_index_map, eqn.params["mode"]
    ends = [shape[dim] - eqn.params["slice_sizes"][dim] for dim in dims]
    if mode != jax.lax.GatherScatterMode.CLIP and ((places < 0) | (places > numpy.array(ends, int))).any():
        raise Unfit("random numbers are looked up at places beyond their ends; look up places that there are")


def may_repeat(eqn, indices):
    """Whether the result of a move can have an element twice."""
    return eqn.primitive.name == "gather" and (bool(eqn.params["dimension_numbers"].operand_batching_dims)
                                               or numpy.prod(indices[0].shape[:-1]) != 1)


class Keys:
    """The keys of a capture, each a number. Those that JAX derives alike are one key."""

    def __init__(self, printer):
        self.printer = printer
        self.numbers = {}
        self.bases = {}  # of the numbers that a key was folded with
        self.sources = set()  # the names of values that are keys, or that keys are made of

    def number(self, *name):
        return self.numbers.setdefault(name, len(self.numbers))

    @staticmethod
    def distinct(keys):
        if numpy.unique(keys).size != keys.size:
            raise Unfit("keys repeat, so that JAX draws alike from them, which dtc does not; use a key for each, such as by "
                        "jax.random.split()")
        return of_keys(keys)

    def constant(self, words):
        """Of the words of keys, an array of [..., words]."""
        words = numpy.asarray(words)
        rows = words.reshape(-1, words.shape[-1])
        return numpy.array([self.number("key", row.tobytes()) for row in rows], numpy.int32).reshape(words.shape[:-1])

    def argument(self, name, shape):
        """Of an input of keys, which are distinct."""
        count = numpy.prod(shape, dtype=int)
        return numpy.array([self.number("input", name, i) for i in range(count)], numpy.int32).reshape(shape)

    def split(self, keys, shape):
        """random_split: the n-th key is what random_fold_in makes with n (jax._src.prng, threefry_split and threefry_fold_in)."""
        places = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape)
        return self.children(keys.reshape(*keys.shape, *(1 for _ in shape)), None, places)

    def folded(self, keys, value):
        base, numbers = self.distances(value)
        return self.children(keys, base, numbers)

    def children(self, keys, base, numbers):
        """The keys that are folded with numbers, each its distance from an element of a base, or a number itself without one."""
        keys, numbers, elements = numpy.broadcast_arrays(keys, numbers, numpy.arange(numbers.size).reshape(numbers.shape))
        found = []
        for key, number, element in zip(keys.ravel().tolist(), numbers.ravel().tolist(), elements.ravel().tolist(), strict=True):
            source = base if base is None else (base, element)
            if self.bases.setdefault(key, source) != source:
                raise Unfit(MAY_BE_EQUAL)
            found.append(self.number("folded", key, source, number % 2**32))
        return numpy.array(found, numpy.int32).reshape(keys.shape)

    def seeded(self, eqn, value):
        known = self.printer.evaluated(value)
        self.uses(value)
        if known is not None:
            return self.constant(jax.random.key_data(eqn.primitive.bind(jnp.asarray(known), **eqn.params)))
        base, numbers = self.distances(value)
        if numbers.size != 1:
            raise Unfit("keys are made of seeds that may repeat; make them by jax.random.split() of one key")
        return numpy.array(self.number("seed", base, numbers.item() % 2**32), numpy.int32).reshape(numbers.shape)

    def distances(self, value):
        """The integers of a value: what they are distances from, None for 0, and the distances. Integers wrap around."""
        self.uses(value)
        if (known := self.printer.evaluated(value)) is not None:
            return None, known.astype(numpy.int64)
        shape, distance = value.shape, 0
        while value.origin:
            name, (x, *others) = value.origin
            if name in ("reshape", "squeeze", "expand_dims", "broadcast_in_dim") and x.aval.size == value.aval.size:
                value = x
            elif name == "convert_element_type" and jnp.issubdtype(x.aval.dtype, jnp.integer):
                value = x
            elif name in ("add", "sub") and (number := self.printer.splat_of(others[0])) is not None:
                value, distance = x, distance + (number if name == "add" else -number)
            elif name == "add" and (number := self.printer.splat_of(x)) is not None:
                value, distance = others[0], distance + number
            else:
                break
        return self.printer.first_name(value), numpy.full(shape, distance, numpy.int64)

    def uses(self, value):
        while value.problem:  # an integer that was converted to one without a sign
            value = value.origin[1][0]
        if value.name is not None:
            self.sources.add(value.name)

    def words(self, value):
        """The elements of a value of numbers without a sign that are keys."""
        if value.drawn:
            return value.drawn.elements
        self.uses(value)
        return self.words_of(value)

    def words_of(self, value):
        count = value.shape[-1] if value.shape else 0
        if count > 1 and (known := self.printer.evaluated(value)) is not None:  # one word is a part of a key
            return of_words(self.constant(known), count)
        if count > 1 and value.is_argument:
            return of_words(self.argument(value.name, value.shape[:-1]), count)
        name, function, operands = value.made or (None, None, ())
        if name in MOVES:
            keys = operands if name in JOINS else operands[:1]
            indices = [self.printer.evaluated(each) for each in operands[len(keys):]]
            if all(each is not None for each in indices):
                arrays = zip(*(self.words_of(each).find() for each in keys))
                found = [numpy.asarray(function(*map(jnp.asarray, (*each, *indices)))) for each in arrays]
                return Elements({}, lambda: tuple(found))
        if len(value.shape) != 1:
            raise Unfit("keys are computed in the loss; make them by jax.random.split(), or give them in the batch")
        return of_words(numpy.array(self.number("computed", self.printer.first_name(value)), numpy.int32), count)

    def wrapped(self, elements):
        """The keys of words, all of each in their order."""
        keys, words = elements.find()
        if not keys.ndim or (keys != keys[..., :1]).any() or (words != numpy.arange(words.shape[-1])).any():
            raise Unfit("a key is made of parts of others; make keys by jax.random.split()")
        return keys[..., 0]

    def hashed(self, eqn, operands):
        """threefry2x32: the elements of both results."""
        (first, first_word), (second, second_word) = (self.words(each).find() for each in operands[:2])
        counts = [self.printer.evaluated(each) for each in operands[2:]]
        for each in operands[2:]:
            self.uses(each)
        if first.size != 1 or second.size != 1 or first.item() != second.item() or (first_word.item(), second_word.item()) != (0, 1):
            raise Unfit("the hash threefry2x32 has words of several keys; hash with the two words of one key")
        shape = eqn.outvars[0].aval.shape
        if any(each is None for each in counts):
            raise Unfit("the hash threefry2x32 is of numbers that are not known, so that they may repeat; hash jnp.arange()")
        high, low = (numpy.broadcast_to(each, shape).astype(numpy.uint64).ravel() for each in counts)
        if numpy.unique(high << numpy.uint64(32) | low).size != high.size:
            raise Unfit("the hash threefry2x32 is of numbers that repeat; hash jnp.arange()")
        return [of_draw(first.reshape(()), shape, ("hash", shape), i * high.size) for i in range(2)]


def taken(index, axis, array):
    return numpy.take(numpy.asarray(array), index, axis)


def bound(eqn, i=None):
    """The function that an equation is, or its result i."""
    function = functools.partial(eqn.primitive.bind, **eqn.params)
    return function if i is None else lambda *arrays: function(*map(jnp.asarray, arrays))[i]
