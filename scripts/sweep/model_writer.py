"""Writes random models in model IR, for models.py."""

import collections
import math

# Values of shape [...] whose dimension `batch` is that of the samples, or None where it depends on no sample.
Value = collections.namedtuple("Value", "name shape batch")

MEANS = ("mean", "weighted mean", "mean and penalty")  # of a step's samples, whatever its batches
SUMS = (*MEANS, "sum")
OTHERS = ("log of a sum", "root of a sum", "maximum", "product of sums", "logsumexp")
UNARY = ("tanh", "sigmoid", "silu", "gelu tanh", "gelu none", "softplus", "abs", "relu", "neg")


def tensor(shape, element="f64"):
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def numbers(values):
    return "[" + ", ".join(map(str, values)) + "]"


class Writer:
    """A model for batches of `batch` samples. Drawn by `choose`, whose draws do not depend on the batch."""

    def __init__(self, choose, batch):
        self.choose, self.batch = choose, batch
        self.arguments, self.body, self.values = [], [], []
        self.parameters, self.inputs, self.metrics = {}, {}, []
        self.constants = {}
        self.draws = self.mixes = False
        self.loss_kind = choose.choice(SUMS * 2 + OTHERS)
        may_mix = choose.random() < 0.15
        for name in ("x", "y")[:choose.randint(1, 2)]:
            self.input(name, tuple(choose.choice((1, 2, 3, 5, 6)) for _ in range(choose.randint(1, 3))))
        steps = [getattr(self, name) for name in dir(self) if name.startswith("op_")]
        for _ in range(choose.randint(5, 14)):
            choose.choice(steps)()
        if may_mix:
            self.mix()
        self.finish()

    # Pieces

    def size(self):
        return self.choose.choice((1, 2, 3, 4, 5, 7, 8))

    def add(self, text, shape, batch, results=1):
        name = f"%v{len(self.body)}"
        self.body.append(f"  {name}{f':{results}' if results > 1 else ''} = dtc.{text}")
        value = Value(name + ("#0" if results > 1 else ""), tuple(shape), batch)
        self.values.append(value)
        return value

    def axes(self, shape):
        return numbers(f'"{name}"' for name in ("batch", *[""] * (len(shape) - 1)))

    def input(self, name, sample, limit=None):
        """An input of floats, or of indices less than `limit`."""
        shape = (self.batch, *sample)
        self.inputs[name] = (sample, limit)
        self.arguments.append(f"%{name}: {tensor(shape, 'i32' if limit else 'f64')} "
                              f'{{dtc.input = "{name}", dtc.axes = {self.axes(shape)}}}')
        value = Value(f"%{name}", shape, 0)
        if not limit:
            self.values.append(value)
        return value

    def indices(self, sample, limit):
        same = [name for name, each in self.inputs.items() if each == (sample, limit)]
        if same and self.choose.random() < 0.7:
            return Value(f"%{same[0]}", (self.batch, *sample), 0)
        return self.input(f"ids{len(self.inputs)}", sample, limit)

    def parameter(self, shape, trains=False):
        """A parameter of that shape, often one that is used already; a new one that is not frozen if it has to train."""
        shape = tuple(shape)
        same = [name for name, each in self.parameters.items() if each == shape and not trains]
        if same and self.choose.random() < 0.5:
            value = Value(f"%{self.choose.choice(same)}", shape, None)
        else:
            name = f"p{len(self.parameters)}"
            self.parameters[name] = shape
            initial = self.choose.choice(("#dtc.normal<0.5>", "#dtc.normal<0.5>", "#dtc.uniform<0.7>", "#dtc.ones"))
            frozen = ", dtc.frozen" if not trains and self.choose.random() < 0.1 else ""
            self.arguments.append(f'%{name}: {tensor(shape)} {{dtc.param = "{name}", dtc.init = {initial}{frozen}}}')
            value = Value(f"%{name}", shape, None)
        if shape and self.choose.random() < 0.3:
            value = self.rearranged(value)
        return value

    def rearranged(self, value):
        """A value of the same shape that is made of parts or all of a parameter."""
        kind = self.choose.choice(("unary", "turned", "halves", "scaled"))
        if kind == "turned" and len(value.shape) > 1:
            order = self.choose.sample(range(len(value.shape)), len(value.shape))
            other = self.transposed(value, order)
            back = self.add(f"tanh {other.name} : {tensor(other.shape)}", other.shape, None)
            return self.transposed(back, [order.index(dim) for dim in range(len(order))])
        if kind == "halves" and value.shape[0] > 1:
            cut = self.choose.randint(1, value.shape[0] - 1)
            parts = [self.sliced(value, 0, begin, end) for begin, end in ((cut, value.shape[0]), (0, cut))]
            return self.joined(*parts, 0)
        if kind == "scaled":
            return self.binary(self.choose.choice(("mul", "add")), value, self.constant(value.shape))
        return self.add(f"tanh {value.name} : {tensor(value.shape)}", value.shape, None)

    def constant(self, shape):
        """A constant, one op for all its uses or one for each."""
        shape, kind = tuple(shape), self.choose.choice(("splat", "dense", "integers"))
        key = (shape, kind)
        if key in self.constants and self.choose.random() < 0.6:
            return self.constants[key]
        if kind == "integers":
            whole = self.add(f"constant dense<2> : {tensor(shape, 'i32')}", shape, None)
            self.values.pop()
            value = self.add(f"convert {whole.name} : ({tensor(shape, 'i32')}) -> {tensor(shape)}", shape, None)
        else:
            count = math.prod(shape)
            text = "0.5" if kind == "splat" or not shape or count > 60 else self.nested(shape, iter(range(count)))
            value = self.add(f"constant dense<{text}> : {tensor(shape)}", shape, None)
        self.constants[key] = value
        return value

    def nested(self, shape, counter):
        if not shape:
            return f"0.{next(counter) % 7 + 1}"
        return "[" + ", ".join(self.nested(shape[1:], counter) for _ in range(shape[0])) + "]"

    def any(self, rank=1, last=False):
        """A value of samples with at least `rank` dimensions, of which the last is not the batch if `last`."""
        fitting = [value for value in self.values if value.batch is not None and len(value.shape) >= rank
                   and not (last and value.batch == len(value.shape) - 1) and math.prod(value.shape) <= self.batch * 600]
        return self.choose.choice(fitting) if fitting else None

    def like(self, value):
        """Another value of the shape: one that is there, or made of a parameter or a constant."""
        same = [each for each in self.values if (each.shape, each.batch) == (value.shape, value.batch)]
        if same and self.choose.random() < 0.5:
            return self.choose.choice(same)
        dims = [dim for dim in range(len(value.shape)) if dim != value.batch and self.choose.random() < 0.7]
        shape = [value.shape[dim] for dim in dims]
        part = self.parameter(shape) if self.choose.random() < 0.7 else self.constant(shape)
        return self.broadcast(part, dims, value.shape, value.batch)

    def broadcast(self, value, dims, shape, batch):
        return self.add(f"broadcast {value.name} dims {numbers(dims)} : ({tensor(value.shape)}) -> {tensor(shape)}", shape, batch)

    def binary(self, op, one, other):
        return self.add(f"{op} {one.name}, {other.name} : {tensor(one.shape)}", one.shape,
                        one.batch if one.batch is not None else other.batch)

    def transposed(self, value, order):
        shape = [value.shape[dim] for dim in order]
        batch = None if value.batch is None else order.index(value.batch)
        return self.add(f"transpose {value.name} permutation {numbers(order)} : ({tensor(value.shape)}) -> {tensor(shape)}", shape,
                        batch)

    def sliced(self, value, dim, begin, end):
        offsets, sizes = [0] * len(value.shape), list(value.shape)
        offsets[dim], sizes[dim] = begin, end - begin
        return self.add(f"slice {value.name} offsets {numbers(offsets)} sizes {numbers(sizes)} : ({tensor(value.shape)}) -> "
                        f"{tensor(sizes)}", sizes, value.batch)

    def joined(self, one, other, dim):
        shape = list(one.shape)
        shape[dim] += other.shape[dim]
        return self.add(f"concat {one.name}, {other.name} dim {dim} : ({tensor(one.shape)}, {tensor(other.shape)}) -> "
                        f"{tensor(shape)}", shape, one.batch)

    def reduced(self, kind, value, dims):
        left = [dim for dim in range(len(value.shape)) if dim not in dims]
        batch = left.index(value.batch) if value.batch in left else None
        shape = [value.shape[dim] for dim in left]
        return self.add(f"reduce {kind} {value.name} dims {numbers(dims)} : ({tensor(value.shape)}) -> {tensor(shape)}", shape, batch)

    def product(self, one, left, other, right, out):
        """einsum "left,right->out", with the batch of `one` or `other` where it is in `out`."""
        sizes = dict(zip(left + right, one.shape + other.shape))
        batch = [out.find(letters[value.batch]) for letters, value in ((left, one), (right, other)) if value.batch is not None]
        shape = [sizes[letter] for letter in out]
        return self.add(f'einsum "{left},{right}->{out}" {one.name}, {other.name} : ({tensor(one.shape)}, {tensor(other.shape)}) -> '
                        f"{tensor(shape)}", shape, batch[0] if batch and batch[0] >= 0 else None)

    # Steps

    def op_unary(self):
        value = self.any()
        self.add(f"{self.choose.choice(UNARY)} {value.name} : {tensor(value.shape)}", value.shape, value.batch)

    def op_binary(self):
        value = self.any()
        self.binary(self.choose.choice(("add", "sub", "mul", "maximum", "minimum")), value, self.like(value))

    def op_divide(self):
        value = self.any()
        other = self.like(value)
        soft = self.add(f"exp {self.add(f'tanh {other.name} : {tensor(other.shape)}', other.shape, other.batch).name} : "
                        f"{tensor(other.shape)}", other.shape, other.batch)
        self.binary("div", value, soft)

    def op_select(self):
        value = self.any()
        other, third = self.like(value), self.like(value)
        mask = self.add(f"compare lt {value.name}, {other.name} : {tensor(value.shape)}", value.shape, value.batch)
        self.values.pop()
        self.add(f"select {mask.name}, {other.name}, {third.name} : {tensor(value.shape)}", value.shape, value.batch)

    def op_linear(self):
        """A product with a parameter over some dimensions, which stay, go or come."""
        value = self.any()
        letters = "abcdefgh"[:len(value.shape)]
        inner = [letter for dim, letter in enumerate(letters) if dim != value.batch and self.choose.random() < 0.6]
        kept = [letter for letter in inner if self.choose.random() < 0.3]
        new = ["z"] if len(value.shape) - len(inner) + len(kept) < 4 and self.choose.random() < 0.7 else []
        right = self.choose.sample(inner + new, len(inner + new))
        out = [letter for letter in letters if letter not in inner] + kept + new
        out = "".join(self.choose.sample(out, len(out)) if self.choose.random() < 0.3 else out)
        sizes = dict(zip(letters, value.shape), z=self.size())
        weight = self.parameter([sizes[letter] for letter in right])
        self.product(value, letters, weight, "".join(right), out)

    def op_linear_again(self):
        self.op_linear()

    def op_scores(self):
        """Products of rows of a sample with each other, and their softmax."""
        value = self.any(rank=3, last=True)
        if value and value.batch == 0 and len(value.shape) == 3:
            scores = self.product(value, "bsi", value, "bti", "bst")
            weights = self.add(f"softmax {scores.name} {{scale = 5.0e-1 : f64}} : {tensor(scores.shape)}", scores.shape, 0)
            self.product(weights, "bst", value, "bti", "bsi")

    def op_reduce(self):
        value = self.any(rank=2)
        if value:
            dims = [dim for dim in range(len(value.shape)) if dim != value.batch and self.choose.random() < 0.6]
            if dims:
                self.reduced(self.choose.choice(("sum", "sum", "max", "min")), value, self.choose.sample(dims, len(dims)))

    def op_reshape(self):
        value = self.any(rank=2)
        if value and value.batch == 0:
            inner = math.prod(value.shape[1:])
            factors = [n for n in (1, 2, 3, 5) if inner % n == 0]
            first = self.choose.choice(factors)
            shape = self.choose.choice(((self.batch, inner), (self.batch, first, inner // first), (self.batch, inner // first, first)))
            self.add(f"reshape {value.name} : ({tensor(value.shape)}) -> {tensor(shape)}", shape, 0)

    def op_transpose(self):
        value = self.any(rank=2)
        if value:
            self.transposed(value, self.choose.sample(range(len(value.shape)), len(value.shape)))

    def op_broadcast(self):
        value = self.any()
        if len(value.shape) < 4:
            at = self.choose.randint(0, len(value.shape))
            shape = [*value.shape[:at], self.size(), *value.shape[at:]]
            dims = [dim for dim in range(len(shape)) if dim != at]
            self.broadcast(value, dims, shape, dims[value.batch])

    def op_slice(self):
        value = self.any(rank=2)
        if value:
            dim = self.choose.choice([dim for dim in range(len(value.shape)) if dim != value.batch])
            begin = self.choose.randint(0, value.shape[dim] - 1)
            self.sliced(value, dim, begin, self.choose.randint(begin + 1, value.shape[dim]))

    def op_pad(self):
        value = self.any(rank=2)
        if value:
            low, high = ([0 if dim == value.batch else self.choose.randint(0, 2) for dim in range(len(value.shape))] for _ in range(2))
            shape = [size + a + b for size, a, b in zip(value.shape, low, high)]
            self.add(f"pad {value.name} low {numbers(low)} high {numbers(high)} value {self.choose.choice(('0.0', '0.5'))} : "
                     f"({tensor(value.shape)}) -> {tensor(shape)}", shape, value.batch)

    def op_concat(self):
        value = self.any(rank=2)
        if value:
            self.joined(value, self.like(value), self.choose.choice([d for d in range(len(value.shape)) if d != value.batch]))

    def op_norm(self):
        value = self.any(rank=2, last=True)
        if value:
            row, leading = tensor(value.shape[-1:]), tensor(value.shape[:-1])
            gamma, whole = self.parameter(value.shape[-1:]), tensor(value.shape)
            if self.choose.random() < 0.5:
                beta = self.parameter(value.shape[-1:])
                self.add(f"layer_norm {value.name}, {gamma.name}, {beta.name} {{eps = 1.0e-1 : f64}} : ({whole}, {row}, {row}) -> "
                         f"({whole}, {leading}, {leading})", value.shape, value.batch, results=3)
            else:
                self.add(f"rms_norm {value.name}, {gamma.name} {{eps = 1.0e-1 : f64}} : ({whole}, {row}) -> ({whole}, {leading})",
                         value.shape, value.batch, results=2)

    def op_softmax(self):
        value = self.any(rank=2, last=True)
        if value:
            self.add(f"softmax {value.name} : {tensor(value.shape)}", value.shape, value.batch)

    def op_lookup(self):
        """Rows of a parameter, or of a part of one."""
        rows, width, sample = self.choose.choice((3, 5, 8)), self.size(), (self.choose.randint(1, 4),)
        table, ids = self.parameter((rows, width)), self.indices(sample, rows)
        self.add(f"embedding {table.name}, {ids.name} : ({tensor(table.shape)}, {tensor(ids.shape, 'i32')}) -> "
                 f"{tensor((*ids.shape, width))}", (*ids.shape, width), 0)

    def op_rows_of_samples(self):
        value = self.any(rank=3)
        if value and value.batch == 0 and len(value.shape) == 3:
            ids = self.indices((self.choose.randint(1, 3),), value.shape[1])
            shape = (*ids.shape, value.shape[2])
            self.add(f"embedding {value.name}, {ids.name} : ({tensor(value.shape)}, {tensor(ids.shape, 'i32')}) -> {tensor(shape)}",
                     shape, 0)

    def op_cross_entropy(self):
        value = self.any(rank=2, last=True)
        if value and value.batch == 0:
            ids = self.indices(value.shape[1:-1], value.shape[-1])
            leading, types = value.shape[:-1], f"({tensor(value.shape)}, {tensor(ids.shape, 'i32')}) -> "
            if self.choose.random() < 0.5:
                self.add(f"pick {value.name}, {ids.name} : {types}{tensor(leading)}", leading, 0)
            else:
                self.add(f"cross_entropy {value.name}, {ids.name} : {types}({tensor(leading)}, {tensor(leading)})", leading, 0,
                         results=2)

    def op_dropout(self):
        if self.choose.random() < 0.5:
            value = self.any()
            if not self.draws:
                self.arguments.append('%key: tensor<2xi32> {dtc.scalar = "random_key"}')
            self.draws = True
            self.add(f"dropout {value.name}, %key {{number = {len(self.body)}, rate = 2.5e-1}} : ({tensor(value.shape)}, "
                     f"tensor<2xi32>) -> {tensor(value.shape)}", value.shape, value.batch)

    def op_penalty(self):
        """A value that depends on no sample, which joins the samples by a broadcast."""
        value, weight = self.any(), self.parameter((self.size(), self.size()))
        squares = self.product(weight, "ab", weight, "ab", "") if self.choose.random() < 0.5 else \
            self.reduced("max", weight, [1, 0])
        self.binary("mul", value, self.broadcast(squares, [], value.shape, value.batch))

    # The end

    def mix(self):
        """Makes samples depend on each other."""
        value = self.any(rank=2)
        if not value or value.batch != 0 or len(value.shape) != 2:
            return
        self.mixes = True
        kind = self.choose.choice(("scores", "centered", "reversed"))
        if kind == "scores":
            scores = self.product(value, "bi", value, "ci", "bc")
            weights = self.add(f"softmax {scores.name} {{scale = 1.0e-1 : f64}} : {tensor(scores.shape)}", scores.shape, 0)
            self.product(weights, "bc", value, "ci", "bi")
        elif kind == "centered":
            total = self.reduced(self.choose.choice(("sum", "max")), value, [0])
            self.binary("sub", value, self.broadcast(total, [1], value.shape, 0))
        else:
            self.binary("mul", value, self.joined(self.sliced(value, 0, 1, self.batch), self.sliced(value, 0, 0, 1), 0))

    def of_each_sample(self):
        """A loss of each sample, [batch], that depends on whatever nothing else uses."""
        text = "\n".join(self.body)
        unused = [value for value in self.values if value.batch is not None
                  and text.count(value.name.partition("#")[0] + ",") + text.count(value.name.partition("#")[0] + " ")
                  + text.count(value.name.partition("#")[0] + "#") == (0 if value.name in ("%x", "%y") else 1)]
        weight = self.parameter((3,), trains=True)
        result = self.broadcast(self.reduced("sum", weight, [0]), [], (self.batch,), 0)
        for value in unused:
            bounded = self.add(f"tanh {value.name} : {tensor(value.shape)}", value.shape, value.batch)
            dims = [dim for dim in range(len(value.shape)) if dim != value.batch]
            result = self.binary("add", result, self.reduced("sum", bounded, dims) if dims else bounded)
        return result

    def scalar(self, number):
        return self.add(f"constant dense<{number!r}> : tensor<f64>", (), None)

    def loss(self, each):
        kind, whole = self.loss_kind, tensor(each.shape)
        total = self.reduced("sum", each, [0])
        mean = lambda: self.binary("mul", total, self.scalar(1.0 / self.batch))
        squares = lambda: self.binary("add", self.product(each, "b", each, "b", ""), self.scalar(1.0))
        if kind == "weighted mean":
            counts = self.input("weights", (), None)
            counts = self.add(f"sigmoid {counts.name} : {whole}", each.shape, 0)
            return self.binary("div", self.product(each, "b", counts, "b", ""), self.reduced("sum", counts, [0]))
        if kind == "mean and penalty":
            weight = self.parameter((2, 3))
            return self.binary("add", mean(), self.product(weight, "ab", weight, "ab", ""))
        if kind in ("log of a sum", "root of a sum"):
            return self.add(f"{'log' if kind == 'log of a sum' else 'sqrt'} {squares().name} : tensor<f64>", (), None)
        if kind == "maximum":
            return self.reduced("max", each, [0])
        if kind == "product of sums":
            return self.binary("mul", mean(), squares())
        if kind == "logsumexp":
            small = self.add(f"tanh {each.name} : {whole}", each.shape, 0)
            powers = self.add(f"exp {small.name} : {whole}", each.shape, 0)
            return self.add(f"log {self.reduced('sum', powers, [0]).name} : tensor<f64>", (), None)
        return mean() if kind == "mean" else total

    def finish(self):
        each = self.of_each_sample()
        self.results = [(self.loss(each), "")]
        if self.choose.random() < 0.3:
            self.metrics.append("total")
            self.results.append((self.reduced("sum", each, [0]), ' {dtc.metric = "total"}'))

    def text(self):
        types = ", ".join(tensor(value.shape) + attribute for value, attribute in self.results)
        names = ", ".join(value.name for value, _ in self.results)
        plain = ", ".join(tensor(value.shape) for value, _ in self.results)
        return (f"func.func @loss(\n    " + ",\n    ".join(self.arguments) + f") -> ({types}) {{\n" + "\n".join(self.body)
                + f"\n  return {names} : {plain}\n}}\n")

    def samples(self, count):
        """Random tensors for `count` samples, by input."""
        def draw(shape, limit):
            if not shape:
                return self.choose.randrange(limit) if limit else self.choose.gauss(0, 1)
            return [draw(shape[1:], limit) for _ in range(shape[0])]
        return {name: draw((count, *sample), limit) for name, (sample, limit) in self.inputs.items()}
