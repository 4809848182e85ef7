"""Captures a loss of JAX from its jaxpr, as MLIR text in the unregistered dialects `torch` and `aten`: the form in which
dtc-import reads captures of PyTorch too, so that both have one set of rules."""

import functools
import math
import operator
import re

import jax
import jax.numpy as jnp
import numpy
from jax import tree_util
from jax._src import source_info_util
from jax.extend import core

from dtc import capture_text as text
from dtc.capture_text import Captured
from dtc.errors import Error
from dtc.jax import draws, identities, shift as shifts

VERSION = 1
ELEMENT_TYPES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32",
                 "int16": "i16", "int8": "i8", "uint32": "i64", "uint8": "i16", "bool": "i1"}
# Calls whose body is inlined, and the parameter that has it.
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
         "remat2": "jaxpr", "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr"}


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


def place_of(eqns):
    """The user's line of the first of some equations that has one."""
    frames = (source_info_util.user_frame(each.source_info.traceback) for each in eqns)
    return next(((text.shortened(each.file_name), each.start_line) for each in frames if each), None)


def path_of(eqn):
    """The named scopes around an equation, such as modules of flax, joined by dots."""
    names = [re.sub(r"^(?:jit|jvp|transpose|vmap|rematted_computation|checkpoint)\((.*)\)$", r"\1", each)
             for each in str(eqn.source_info.name_stack).split("/")]
    return ".".join(each for each in names if re.fullmatch(r"[\w.\-\[\]]+", each)) or "loss"


class Printer:
    """Writes the equations of a jaxpr as the body of the function @loss."""

    def __init__(self):
        self.lines, self.warnings, self.count = [], [], 0
        self.calls = []  # whose bodies are being printed, the innermost last
        self.firsts, self.first_names = {}, {}  # of values that the same op makes of the same, the name of the first
        self.draws = draws.Draws(self, Value)

    def place(self, eqn):
        """The user's line of an equation; those of functions of JAX have none of their own."""
        return place_of([eqn, *reversed(self.calls)])

    def fail(self, eqn, problem):
        place = self.place(eqn)
        raise CaptureError(f"{path_of(eqn)} ({place[0]}:{place[1]}): {problem}" if place else f"{path_of(eqn)}: {problem}")

    # The text of values.

    def type_of(self, aval, eqn=None):
        element = ELEMENT_TYPES.get(str(aval.dtype))
        if element is None:
            message = f"a value has elements of {aval.dtype}, expected floats, integers or truth values"
            if eqn:
                self.fail(eqn, message)
            raise CaptureError(message)
        return "tensor<" + "".join(f"{size}x" for size in aval.shape) + element + ">"

    def emit(self, eqn, op, operands, attributes=None, aval=None):
        """The name of the result of an op. `operands`: {name in the operator's schema: Value}."""
        aval = aval if aval is not None else eqn.outvars[0].aval
        name = f"%v{self.count}"
        self.count += 1
        written = {key: text.attribute(value) for key, value in (attributes or {}).items()}
        assert None not in written.values(), f"{op} has the attributes {attributes}"
        named = {key: self.named(eqn, each) for key, each in operands.items()}
        if named:
            written["operands"] = "[" + ", ".join(text.quoted(key) for key in named) + "]"
        sources = ", ".join(self.type_of(each.aval, eqn) for each in named.values())
        if op != "dropout":
            same = (op, *map(self.first_name, named.values()), str(written), self.type_of(aval, eqn))
            self.first_names[name] = self.firsts.setdefault(same, name)
        self.lines.append(f'  {name} = "aten.{op}"({", ".join(each.name for each in named.values())}){text.attributes(written)}'
                          f" : ({sources}) -> {self.type_of(aval, eqn)} {text.location(path_of(eqn), self.place(eqn))}")
        return Value(name, aval)

    def named(self, eqn, value):
        """The value, written as a tensor where it is a known number."""
        if value.drawn:
            self.draws.fail(eqn)
        if value.problem:
            self.fail(eqn, value.problem)
        if value.known is None and value.name is None:
            self.fail(eqn, f"the primitive '{value.origin[0]}' has no rule; write it with others, such as jnp.where")
        if value.known is None:
            return value
        return self.emit(eqn, "full", {}, {"size": (), "fill_value": scalar_of(value)}, value.aval)

    def first_name(self, value):
        """The name of the first value that is computed as this one is."""
        while value.problem:
            value = value.origin[1][0]
        return self.first_names.get(value.name, value.name) if value.known is None else str(value.known)

    def evaluated(self, value):
        """The array that a value is; None where it depends on arguments, or is drawn."""
        if value.known is not None:
            return value.known
        if value.array is None and value.made and value.fixed and not value.drawn:
            _, function, operands = value.made
            arrays = [self.evaluated(each) for each in operands]
            if all(each is not None for each in arrays):
                value.array = numpy.asarray(function(*map(jnp.asarray, arrays)))
        return value.array

    def constant(self, array):
        if draws.is_key(jax.typeof(array)):
            return self.draws.constant_key(array)
        array = numpy.asarray(array)
        if array.ndim == 0:
            return Value(None, jax.typeof(array), known=array)
        aval = jax.core.ShapedArray(array.shape, array.dtype)
        name, kind = f"%v{self.count}", self.type_of(aval)
        self.count += 1
        self.lines.append(f'  {name} = "torch.constant"() {{value = {elements(array)} : {kind}}} : () -> {kind} loc("loss")')
        value = Value(name, aval)
        value.array = array
        return value

    def names_of_keys(self, result):
        """The names of values of which only keys are made, when the loss is printed; removes what computes them."""
        def needed_by(names):
            names, lines = set(names), []
            for line in reversed(self.lines):
                name, *operands = re.findall(r"%[av]\d+\b", line)
                if name in names:
                    names.update(operands)
                    lines.append(line)
            return names, lines[::-1]
        if not self.draws.keys.sources:
            return set()
        names, lines = needed_by([result])
        keys = needed_by(self.draws.keys.sources)[0] - names
        self.lines = lines
        return keys

    # Equations.

    def run(self, jaxpr, constants, arguments):
        """The results of a jaxpr for arguments."""
        values = dict(zip(jaxpr.constvars, constants, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))

        def read(atom):
            if isinstance(atom, core.Literal):
                return Value(None, atom.aval, known=numpy.asarray(atom.val, dtype=atom.aval.dtype))
            return values[atom]

        for eqn in needed(jaxpr):
            results = self.equation(eqn, [read(each) for each in eqn.invars])
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(each) for each in jaxpr.outvars]

    def closed(self, closed, arguments):
        return self.run(closed.jaxpr, [self.constant(each) for each in closed.consts], arguments)

    def equation(self, eqn, operands):
        name = eqn.primitive.name
        if name in CALLS or name == "scan":
            self.calls.append(eqn)
            results = self.scan(eqn, operands) if name == "scan" else self.call(eqn, operands)
            self.calls.pop()
            return results
        if draws.is_random(eqn, operands):
            return self.draws.results(eqn, operands)
        if name == "split":
            return self.split(eqn, *operands)
        if name == "unstack":
            return [self.element(eqn, operands[0], i, eqn.params["axis"]) for i in range(len(eqn.outvars))]
        if all(each.known is not None for each in operands) and operands and not eqn.primitive.multiple_results \
                and not eqn.outvars[0].aval.shape:
            found = eqn.primitive.bind(*[jnp.asarray(each.known) for each in operands], **eqn.params)
            return [Value(None, eqn.outvars[0].aval, known=numpy.asarray(found))]
        if problem := self.problem_of_integers(eqn, operands):
            return [self.keys_alone(eqn, operands, problem)]
        rule = getattr(self, f"on_{name}", None)
        if rule is None and name not in SIMPLE:
            self.fail(eqn, f"the primitive '{name}' has no rule; write it with others, such as those that docs/python.md lists")
        value = rule(eqn, *operands) if rule else self.emit(eqn, SIMPLE[name], dict(zip(NAMES, operands)))
        return [self.finished(eqn, value, operands)]

    def problem_of_integers(self, eqn, operands):
        """Integers of few bits or without a sign are computed in wider ones with a sign, which do not wrap around as they do."""
        kind = eqn.outvars[0].aval.dtype
        if str(kind) not in ("uint8", "uint32", "int8", "int16"):
            return None
        name = eqn.primitive.name
        if name in WRAPPING or (name == "convert_element_type" and not numpy.can_cast(operands[0].aval.dtype, kind, "safe")):
            return f"'{name}' gives {kind}, which may wrap around; convert to int32 or to floats first"
        return None

    def keys_alone(self, eqn, operands, problem):
        """An integer that was converted to one without a sign, as jax.random.fold_in() does; any other use is an error."""
        if eqn.primitive.name != "convert_element_type" or str(eqn.outvars[0].aval.dtype) != "uint32" or operands[0].is_float:
            self.fail(eqn, problem)
        result = Value(None, eqn.outvars[0].aval)
        result.problem, result.origin, result.fixed = problem, (eqn.primitive.name, operands), operands[0].fixed
        result.made = (eqn.primitive.name, identities.bound(eqn), operands)
        return result

    def finished(self, eqn, value, operands):
        """The result of an equation with what is known of it."""
        name = eqn.primitive.name
        result = Value(value.name, eqn.outvars[0].aval, value.known)
        self.mark(result, operands)
        result.trained &= name != "stop_gradient"
        result.shift = value.shift if name in ("stop_gradient", "gather", "reshape", "squeeze", "expand_dims") else None
        if name not in ("stop_gradient", "gather", "reshape", "squeeze", "expand_dims") and any(each.shift for each in operands):
            try:
                result.shift = shifts.result(name, [each.shift for each in operands], eqn.params, operands[0].ndim)
            except shifts.Mixed:
                self.fail_stopped(eqn)
        if not result.is_float or result.name is None or result.fixed or name in ("mul", "div"):
            result.origin = (name, operands)
        if name not in CALLS:
            result.made = (name, identities.bound(eqn), operands)
        return result

    @staticmethod
    def mark(result, operands):
        result.trained = any(each.trained for each in operands) and result.is_float
        result.fixed = all(each.fixed for each in operands)

    def fail_stopped(self, eqn):
        self.fail(eqn, "the value depends on what stop_gradient() was given, which depends on trained parameters, and dtc "
                       "differentiates all of a loss; only what cancels, as the maximum in a softmax does, can be stopped")

    def call(self, eqn, operands):
        name = eqn.params.get("name", "")
        body = eqn.params[CALLS[eqn.primitive.name]]
        body = body if isinstance(body, core.ClosedJaxpr) else core.ClosedJaxpr(body, [])
        if eqn.primitive.name == "custom_jvp_call":
            return [self.finished(eqn, self.custom(eqn, operands), operands)]
        if name == "silu" and is_silu(body.jaxpr) and not operands[0].shift:
            return [self.finished(eqn, self.emit(eqn, "silu", {"self": operands[0]}), operands)]
        return self.closed(body, operands)

    def custom(self, eqn, operands):
        """A function of JAX whose derivative is its own, where it is one of those with an operator."""
        tensors = [each for each in operands if each.known is None]
        for function, op in ((jax.nn.relu, "relu"), (lambda x: jnp.logaddexp(x, 0.0), "softplus")):
            own = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((), jnp.float32)).jaxpr.eqns
            while own[0].primitive.name in ("jit", "pjit"):
                own = own[0].params["jaxpr"].jaxpr.eqns
            zeros = all(is_number(each, 0) for each in operands if each.known is not None)
            if source_of(own[0]) == source_of(eqn) and len(tensors) == 1 and zeros:
                return self.emit(eqn, op, {"self": tensors[0]})
        return self.fail(eqn, f"{source_of(eqn)} has a derivative of its own (jax.custom_jvp), which is not captured; write it with "
                              "primitives whose derivatives JAX has")

    def scan(self, eqn, operands):
        """The steps one after another."""
        count, carried = eqn.params["num_consts"], eqn.params["num_carry"]
        constants, carry, stacked = operands[:count], operands[count:count + carried], operands[count + carried:]
        length, body = eqn.params["length"], eqn.params["jaxpr"]
        outputs = []
        for step in reversed(range(length)) if eqn.params["reverse"] else range(length):
            slices = [self.element(eqn, each, step) for each in stacked]
            results = self.closed(body, constants + carry + slices)
            carry = results[:carried]
            outputs.append(results[carried:])
        if eqn.params["reverse"]:
            outputs.reverse()
        joined = []
        for i, variable in enumerate(eqn.outvars[carried:]):
            parts = [each[i] for each in outputs]
            if any(each.shift for each in parts):
                self.fail_stopped(eqn)
            value = self.emit(eqn, "stack", {f"tensors.{j}": each for j, each in enumerate(parts)}, {"dim": 0}, variable.aval)
            self.mark(value, parts)
            joined.append(value)
        return carry + joined

    def element(self, eqn, value, index, dim=0):
        if value.drawn:
            return self.draws.part(eqn, value, index, value.aval.update(shape=value.shape[:dim] + value.shape[dim + 1:]))
        if value.shift:
            self.fail_stopped(eqn)
        aval = value.aval.update(shape=value.shape[:dim] + value.shape[dim + 1:])
        found = self.emit(eqn, "select", {"self": value}, {"dim": dim, "index": index}, aval)
        self.mark(found, [value])
        found.made = ("unstack", functools.partial(identities.taken, index, dim), [value])
        return found

    def splat_of(self, value):
        """The number that all elements are; None where they differ or are not known."""
        if value.known is not None:
            return scalar_of(value)
        name, operands = value.origin or (None, ())
        if name in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims"):
            return self.splat_of(operands[0])
        numbers = [self.splat_of(each) for each in operands] if name in ("add", "sub", "mul") else [None]
        if None in numbers:
            return None
        return {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[name](*numbers)

    def factor_of(self, value):
        """(y, number) of a value that is y times a number, as the last equation says."""
        name, operands = value.origin or (None, ())
        x, *others = operands or [value]
        if name == "div" and (divisor := self.splat_of(others[0])):
            return x, 1 / divisor
        for y, other in ((x, *others), (*others, x)) if name == "mul" else ():
            if (number := self.splat_of(other)) is not None:
                return y, number
        return value, 1

    # Arithmetic.

    def with_number(self, eqn, x, y, op, reversed_op=None):
        """x op y, where one may be a number."""
        if y.known is not None:
            return self.emit(eqn, op, {"self": x}, {"other": scalar_of(y)})
        if x.known is not None and reversed_op:
            return self.emit(eqn, reversed_op, {"self": y}, {"other": scalar_of(x)})
        return self.emit(eqn, op, {"self": x, "other": y})

    def on_add(self, eqn, x, y):
        return self.with_number(eqn, x, y, "add", "add")

    def on_sub(self, eqn, x, y):
        return self.with_number(eqn, x, y, "sub", "rsub")

    def on_mul(self, eqn, x, y):
        return self.with_number(eqn, x, y, "mul", "mul")

    def on_div(self, eqn, x, y):
        if not x.is_float:
            self.fail(eqn, "integers are divided, for which there is no rule")
        return self.with_number(eqn, x, y, "div")

    def on_max(self, eqn, x, y):
        for number, other in ((x, y), (y, x)):
            if number.known is not None and number.is_float and number.known == -numpy.inf:
                return other
        return self.emit(eqn, "maximum", {"self": x, "other": y})

    def on_integer_pow(self, eqn, x):
        return self.emit(eqn, "pow", {"self": x}, {"exponent": float(eqn.params["y"])})

    def on_pow(self, eqn, x, y):
        if x.fixed and y.fixed:
            return self.emit(eqn, "pow", {"self": x, "exponent": y})
        if y.known is None:
            self.fail(eqn, "the exponent is no number; write exp(exponent * log(x))")
        return self.emit(eqn, "pow", {"self": x}, {"exponent": float(y.known)})

    def on_log1p(self, eqn, x):
        # log(u) + (x - (u - 1)) / u with u = 1 + x: the second term restores the loss from the rounding of u.
        u = self.emit(eqn, "add", {"self": x}, {"other": 1.0})
        lost = self.emit(eqn, "sub", {"self": x, "other": self.emit(eqn, "sub", {"self": u}, {"other": 1.0})})
        return self.emit(eqn, "add", {"self": self.emit(eqn, "log", {"self": u}),
                                      "other": self.emit(eqn, "div", {"self": lost, "other": u})})

    def on_exp2(self, eqn, x):
        return self.emit(eqn, "exp", {"self": self.emit(eqn, "mul", {"self": x}, {"other": math.log(2)})})

    def on_sin(self, eqn, x):
        if not x.fixed:
            self.fail(eqn, f"the primitive '{eqn.primitive.name}' has a rule for values that are known alone, such as rotary angles")
        return self.emit(eqn, eqn.primitive.name, {"self": x})

    on_cos = on_sin

    def on_expm1(self, eqn, x):
        # tanh(x / 2) (exp(x) + 1), which loses nothing near 0.
        half = self.emit(eqn, "tanh", {"self": self.emit(eqn, "mul", {"self": x}, {"other": 0.5})})
        return self.emit(eqn, "mul", {"self": half, "other": self.emit(eqn, "add", {"self": self.emit(eqn, "exp", {"self": x})},
                                                                       {"other": 1.0})})

    def on_abs(self, eqn, x):
        # The derivative at 0 is 1, as JAX has it, and not that of the operator.
        if not x.trained:
            return self.emit(eqn, "abs", {"self": x})
        positive = self.emit(eqn, "ge", {"self": x}, {"other": 0.0}, x.aval.update(dtype=numpy.dtype(bool)))
        return self.emit(eqn, "where", {"condition": positive, "self": x, "other": self.emit(eqn, "neg", {"self": x})})

    def on_sign(self, eqn, x):
        # logsumexp() computes it and does not use it.
        return Value(None, eqn.outvars[0].aval)

    def on_clamp(self, eqn, low, x, high):
        if low.known is None or high.known is None:
            self.fail(eqn, "a bound of lax.clamp() is no number; use jnp.minimum() and jnp.maximum()")
        return self.emit(eqn, "clamp", {"self": x}, {"min": scalar_of(low), "max": scalar_of(high)})

    def on_and(self, eqn, x, y):
        return self.logic(eqn, "logical_and", {"self": x, "other": y})

    def on_or(self, eqn, x, y):
        return self.logic(eqn, "logical_or", {"self": x, "other": y})

    def on_not(self, eqn, x):
        return self.logic(eqn, "logical_not", {"self": x})

    def logic(self, eqn, op, operands):
        if eqn.outvars[0].aval.dtype != numpy.bool_:
            self.fail(eqn, f"the primitive '{eqn.primitive.name}' is of the bits of integers, for which there is no rule")
        return self.emit(eqn, op, operands)

    def on_select_n(self, eqn, which, *cases):
        if which.known is not None:
            return cases[int(which.known)]
        if len(cases) != 2 or which.aval.dtype != numpy.bool_:
            self.fail(eqn, f"a choice among {len(cases)} cases has no rule; write it with jnp.where")
        return self.emit(eqn, "where", {"condition": which, "self": cases[1], "other": cases[0]})

    def on_scatter(self, eqn, x, _, update):
        if x.shape or update.shape:
            self.fail(eqn, "elements of a tensor are set (.at[].set()), which has no rule; choose between tensors by jnp.where")
        return update

    def on_is_finite(self, eqn, x):
        infinity = Value(None, jax.core.ShapedArray((), x.aval.dtype), known=numpy.asarray(numpy.inf, x.aval.dtype))
        return self.emit(eqn, "lt", {"self": self.emit(eqn, "abs", {"self": x}, aval=x.aval), "other": infinity})

    def on_stop_gradient(self, eqn, x):
        if not x.trained:
            return x
        if x.shift:
            self.fail_stopped(eqn)
        self.count += 1
        return Value(x.name, x.aval, shift=shifts.of_stopped(self.count, x.shape))

    def on_convert_element_type(self, eqn, x):
        return x if x.aval.dtype == eqn.outvars[0].aval.dtype else self.emit(eqn, "_to_copy", {"self": x})

    def on_copy(self, eqn, x):
        return x

    on_name = on_copy  # of jax.ad_checkpoint.checkpoint_name()

    # Shapes.

    def view(self, eqn, x, shape):
        return x if x.shape == tuple(shape) else self.emit(eqn, "view", {"self": x}, {"size": ints(shape)},
                                                           x.aval.update(shape=tuple(shape)))

    def on_broadcast_in_dim(self, eqn, x, *rest):
        shape, places = eqn.params["shape"], eqn.params["broadcast_dimensions"]
        if x.known is not None:
            return self.emit(eqn, "full", {}, {"size": ints(shape), "fill_value": scalar_of(x)})
        return self.spread(eqn, x, shape, places)

    def spread(self, eqn, x, shape, places):
        """x with its dimensions at some places of a shape."""
        x = self.view(eqn, x, [x.shape[places.index(i)] if i in places else 1 for i in range(len(shape))])
        return x if x.shape == tuple(shape) else self.emit(eqn, "expand", {"self": x}, {"size": ints(shape)},
                                                           x.aval.update(shape=tuple(shape)))

    def reshaped(self, eqn, x, shape):
        """A reshape; only one that adds or removes dimensions of size 1 keeps a shift."""
        value = self.view(eqn, x, shape)
        result = Value(value.name, value.aval, value.known)
        if x.shift:
            if [each for each in x.shape if each != 1] != [each for each in shape if each != 1]:
                self.fail_stopped(eqn)
            left = iter([i for i, each in enumerate(x.shape) if each != 1])
            result.shift = shifts.moved(x.shift, [next(left) if each != 1 else None for each in shape])
        return result

    def on_reshape(self, eqn, x, *_):
        if eqn.params.get("dimensions") is not None:
            self.fail(eqn, "a reshape with an order of dimensions has no rule; transpose first")
        return self.reshaped(eqn, x, eqn.outvars[0].aval.shape)

    def on_squeeze(self, eqn, x):
        return self.reshaped(eqn, x, eqn.outvars[0].aval.shape)

    on_expand_dims = on_squeeze

    def on_transpose(self, eqn, x):
        return self.emit(eqn, "permute", {"self": x}, {"dims": ints(eqn.params["permutation"])})

    def on_concatenate(self, eqn, *parts):
        return self.emit(eqn, "cat", {f"tensors.{i}": each for i, each in enumerate(parts)},
                         {"dim": int(eqn.params["dimension"])})

    def on_stack(self, eqn, *parts):
        return self.emit(eqn, "stack", {f"tensors.{i}": each for i, each in enumerate(parts)}, {"dim": int(eqn.params["axis"])})

    def on_tile(self, eqn, x):
        pairs = list(zip(eqn.params["reps"], x.shape, strict=True))
        x = self.view(eqn, x, [each for _, size in pairs for each in (1, size)])
        wide = x.aval.update(shape=tuple(each for pair in pairs for each in pair))
        return self.view(eqn, self.emit(eqn, "expand", {"self": x}, {"size": ints(wide.shape)}, wide), eqn.outvars[0].aval.shape)

    def on_slice(self, eqn, x):
        strides = eqn.params["strides"] or (1,) * x.ndim
        for dim, (begin, end, stride) in enumerate(zip(eqn.params["start_indices"], eqn.params["limit_indices"], strides)):
            if (begin, end, stride) != (0, x.shape[dim], 1):
                shape = list(x.shape)
                shape[dim] = (end - begin + stride - 1) // stride
                x = self.emit(eqn, "slice", {"self": x}, {"dim": dim, "start": int(begin), "end": int(end), "step": int(stride)},
                              x.aval.update(shape=tuple(shape)))
        return x

    def on_dynamic_slice(self, eqn, x, *begins):
        if any(each.known is None for each in begins):
            self.fail(eqn, "a slice begins at an index that depends on data, which has no rule")
        for dim, (begin, size) in enumerate(zip(begins, eqn.params["slice_sizes"])):
            first = min(max(int(begin.known), 0), x.shape[dim] - size)
            if size != x.shape[dim]:
                x = self.emit(eqn, "slice", {"self": x}, {"dim": dim, "start": first, "end": first + size, "step": 1},
                              x.aval.update(shape=x.shape[:dim] + (size,) + x.shape[dim + 1:]))
        return x

    def split(self, eqn, x):
        parts, begin = [], 0
        for i, (size, variable) in enumerate(zip(ints(eqn.params["sizes"]), eqn.outvars)):
            if x.shift:
                self.fail_stopped(eqn)
            part = self.emit(eqn, "slice", {"self": x}, {"dim": int(eqn.params["axis"]), "start": begin, "end": begin + size,
                                                         "step": 1}, variable.aval)
            self.mark(part, [x])
            part.made = ("split", identities.bound(eqn, i), [x])
            parts.append(part)
            begin += size
        return parts

    def on_pad(self, eqn, x, value):
        low, high, inner = zip(*eqn.params["padding_config"])
        if any(inner) or value.known is None:
            self.fail(eqn, "a tensor is padded between elements, or with what is no number, for which there is no rule")
        amounts = [each for pair in reversed(list(zip(low, high))) for each in pair]
        return self.emit(eqn, "pad", {"self": x}, {"pad": ints(amounts), "mode": "constant", "value": float(value.known)})

    def on_iota(self, eqn, *_):
        shape, dim = eqn.params["shape"], eqn.params["dimension"]
        aval = eqn.outvars[0].aval
        row = self.emit(eqn, "arange", {}, {"end": int(shape[dim])}, aval.update(shape=(shape[dim],)))
        row = self.view(eqn, row, [size if i == dim else 1 for i, size in enumerate(shape)])
        return row if row.shape == tuple(shape) else self.emit(eqn, "expand", {"self": row}, {"size": ints(shape)})

    # Reductions, products and lookups.

    def reduction(self, eqn, x, op):
        return self.emit(eqn, op, {"self": x}, {"dim": ints(eqn.params["axes"]), "keepdim": False}) if eqn.params["axes"] else x

    def on_reduce_sum(self, eqn, x):
        return self.reduction(eqn, x, "sum")

    def on_reduce_max(self, eqn, x):
        return self.reduction(eqn, x, "amax")

    def on_reduce_min(self, eqn, x):
        return self.reduction(eqn, x, "amin")

    def on_dot_general(self, eqn, x, y):
        if x.shift or y.shift:
            self.fail_stopped(eqn)
        (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        first, second = [None] * x.ndim, [None] * y.ndim
        for i, j in [*zip(left_batch, right_batch), *zip(left, right)]:
            first[i] = second[j] = next(letters)
        first, second = ([each or next(letters) for each in term] for term in (first, second))
        result = ([first[i] for i in left_batch] + [each for i, each in enumerate(first) if i not in (*left, *left_batch)]
                  + [each for i, each in enumerate(second) if i not in (*right, *right_batch)])
        kind = eqn.outvars[0].aval
        x, y = (self.converted(eqn, each, kind.dtype) for each in (x, y))
        equation = f"{''.join(first)},{''.join(second)}->{''.join(result)}"
        return self.emit(eqn, "einsum", {"tensors.0": x, "tensors.1": y}, {"equation": equation})

    def converted(self, eqn, x, dtype):
        return x if x.aval.dtype == dtype else self.emit(eqn, "_to_copy", {"self": x}, aval=x.aval.update(dtype=dtype))

    def on_gather(self, eqn, x, indices):
        numbers, sizes = eqn.params["dimension_numbers"], tuple(eqn.params["slice_sizes"])
        result = eqn.outvars[0].aval
        last = x.ndim - 1
        place = source_of_shape(indices) if indices.shape == (1,) else indices
        if place.known is not None and not place.shape and len(numbers.start_index_map) == 1 \
                and numbers.collapsed_slice_dims == numbers.start_index_map:
            return self.select(eqn, x, numbers.start_index_map[0], int(place.known), sizes)
        if len(numbers.start_index_map) > 1 and numbers.start_index_map[0] == 0 and sizes == (1, *x.shape[1:]) \
                and not numbers.collapsed_slice_dims and not numbers.operand_batching_dims and not x.shift \
                and (column := first_column(indices)) is not None \
                and numbers.offset_dims == tuple(range(column.ndim - 1, len(result.shape))):
            # Rows, as jax.vmap leaves them: the other indices are 0, the begin of all of a dimension.
            table = self.emit(eqn, "embedding", {"weight": x, "indices": self.not_negative(eqn, column, x.shape[0],
                                                                                           column.shape[:-1])},
                              aval=x.aval.update(shape=(*column.shape[:-1], *x.shape[1:])))
            return self.view(eqn, table, result.shape)
        rows = self.view(eqn, indices, indices.shape[:-1]) if indices.known is None else None
        if rows is not None and not numbers.operand_batching_dims and numbers.start_index_map == (0,) \
                and numbers.collapsed_slice_dims == (0,) and sizes == (1, *x.shape[1:]) \
                and numbers.offset_dims == tuple(range(rows.ndim, len(result.shape))) and not x.shift:
            return self.emit(eqn, "embedding", {"weight": x, "indices": self.not_negative(eqn, indices, x.shape[0], rows.shape)})
        if rows is not None and numbers.start_index_map == numbers.collapsed_slice_dims == (last,) and not numbers.offset_dims \
                and numbers.operand_batching_dims == numbers.start_indices_batching_dims == tuple(range(last)) \
                and rows.shape == (*x.shape[:-1], 1):
            value = self.emit(eqn, "gather", {"self": x, "index": self.not_negative(eqn, indices, x.shape[last], rows.shape)},
                              {"dim": last})
            if x.shift and x.shift.dims[last] is not None:
                self.fail_stopped(eqn)
            return Value(value.name, value.aval, shift=x.shift)
        return self.fail(eqn, "elements are looked up in a way that has no rule; expected table[indices] of rows, or "
                              "jnp.take_along_axis(x, indices[..., None], axis=-1)")

    def select(self, eqn, x, axis, index, sizes):
        """One element of a dimension, which is removed, and all of the others."""
        if sizes != x.shape[:axis] + (1,) + x.shape[axis + 1:] or not 0 <= index < x.shape[axis]:
            self.fail(eqn, f"element {index} of dimension {axis} is looked up in a way that has no rule")
        value = self.emit(eqn, "select", {"self": x}, {"dim": axis, "index": index})
        if x.shift and x.shift.dims[axis] is not None:
            self.fail_stopped(eqn)
        value.shift = x.shift and shifts.moved(x.shift, [i for i in range(x.ndim) if i != axis])
        return value

    def not_negative(self, eqn, indices, size, shape):
        """The indices. Where they are an input, without the change of negative ones to count from the end: dtc refuses data with
        such."""
        source = source_of_shape(indices)
        if source.origin and source.origin[0] == "select_n":
            which, same, wrapped = source.origin[1]
            if which.origin and which.origin[0] == "lt" and which.origin[1][0] is same and is_number(which.origin[1][1], 0) \
                    and wrapped.origin and wrapped.origin[0] == "add" and wrapped.origin[1][0] is same \
                    and is_number(wrapped.origin[1][1], size) and source_of_shape(same).is_argument:
                return self.view(eqn, same, shape)
        return self.view(eqn, indices, shape)


SIMPLE = {"exp": "exp", "log": "log", "tanh": "tanh", "logistic": "sigmoid", "sqrt": "sqrt", "rsqrt": "rsqrt", "neg": "neg",
          "square": "square", "min": "minimum", "eq": "eq", "ne": "ne", "lt": "lt",
          "le": "le", "gt": "gt", "ge": "ge"}
NAMES = ("self", "other")
# Those whose results may not fit the type of their operands.
WRAPPING = ("abs", "add", "dot_general", "integer_pow", "mul", "neg", "pow", "reduce_sum", "square", "sub")


def needed(jaxpr):
    """The equations on which the results of a jaxpr depend."""
    wanted, found = {each for each in jaxpr.outvars if not isinstance(each, core.Literal)}, []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not wanted.isdisjoint(eqn.outvars):
            found.append(eqn)
            wanted.update(each for each in eqn.invars if not isinstance(each, core.Literal))
    return found[::-1]


def is_silu(jaxpr):
    """Whether a function of x is x logistic(x)."""
    if len(jaxpr.invars) != 1 or [each.primitive.name for each in jaxpr.eqns] != ["logistic", "mul"]:
        return False
    [x], (gate, product) = jaxpr.invars, jaxpr.eqns
    factors = [each for each in product.invars if not isinstance(each, core.Literal)]
    return gate.invars == [x] and len(factors) == 2 and set(factors) == {x, gate.outvars[0]} and jaxpr.outvars == product.outvars


def source_of(eqn):
    """The name, file and line of a function that has a derivative of its own. Others may compute the same and differ in it."""
    return eqn.params["call_jaxpr"].jaxpr.debug_info.func_src_info


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


def named_leaves(tree, what, default):
    """[(name, leaf)] of a pytree, by the keys on the way to each."""
    found = []
    for path, leaf in tree_util.tree_flatten_with_path(tree)[0]:
        name = tree_util.keystr(path, simple=True, separator=".") or default
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise CaptureError(f"'{name}' of {what} is a {type(leaf).__name__}, expected an array or a jax.ShapeDtypeStruct; "
                               "give the loss what is no array in another way, such as by functools.partial")
        found.append((name, leaf))
    if not found:
        raise CaptureError(f"{what} is empty, expected arrays")
    return found


def named(params):
    """{name: array} of a pytree of parameters, by the names that a capture gives them."""
    return dict(named_leaves(params, "the parameters", "parameter"))


def abstract(tree):
    return tree_util.tree_map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def capture(params, loss, example_batch):
    """Captures loss(params, batch), a scalar. `params`, a pytree of arrays or of jax.ShapeDtypeStruct, gives the names, types and
    shapes of the parameters, the example batch, a dictionary or a tuple of the same, those of the inputs; elements are not
    read. Inputs that are keys of random numbers alone are none of the captured loss (`left_out`). Raises CaptureError."""
    batch = dict(example_batch) if isinstance(example_batch, dict) else \
        {f"input{i}": each for i, each in enumerate(example_batch)}
    parameters = named_leaves(params, "the parameters", "parameter")
    inputs = named_leaves(batch, "the example batch", "input")
    for name, leaf in parameters:
        if str(leaf.dtype) not in ("float32", "float64"):
            raise CaptureError(f"the parameter '{name}' has elements of {leaf.dtype}, expected float32 or float64; "
                               "dtc-compile --dtype chooses what to compute in")

    def flat(first, second):
        return loss(first, second if isinstance(example_batch, dict) else tuple(second[name] for name in batch))
    try:
        traced = jax.make_jaxpr(flat)(abstract(params), abstract(batch))
    except Exception as error:
        raise CaptureError(f"JAX cannot trace the loss: {type(error).__name__}: {error}") from error
    results = traced.out_avals
    if len(results) != 1 or results[0].shape or not jnp.issubdtype(results[0].dtype, jnp.floating):
        raise CaptureError(f"the loss gives {', '.join(map(str, results))}, expected one scalar float")
    printer = Printer()
    arguments, signature = [], []
    for i, (name, _) in enumerate([*parameters, *inputs]):
        value = Value(f"%a{i}", traced.in_avals[i])
        value.trained, value.fixed = i < len(parameters), False
        if draws.is_key(value.aval):
            value.drawn = printer.draws.input_key(name, value.aval)
        arguments.append(value)
        kind = "parameter" if i < len(parameters) else "input"
        signature.append("" if value.drawn else f"%a{i}: {printer.type_of(value.aval)} {{torch.{kind} = {text.quoted(name)}}} loc({text.quoted(name)})")
    [result] = printer.closed(traced, arguments)
    if result.drawn:
        raise CaptureError(f"the loss is drawn: {draws.WHAT_TO_DO}")
    if result.known is None and result.name is None:
        raise CaptureError(f"the loss is a result of '{result.origin[0]}', which has no rule")
    if result.shift:
        raise CaptureError("the loss depends on what stop_gradient() was given; only what cancels can be stopped")
    if result.known is not None or not result.trained:
        raise CaptureError("the loss does not depend on the parameters")
    keys = printer.names_of_keys(result.name)
    left_out = [name for i, (name, _) in enumerate(inputs, len(parameters)) if arguments[i].drawn or f"%a{i}" in keys]
    body, kind = "\n".join(printer.lines), printer.type_of(result.aval)
    head = (f"module attributes {{torch.capture = {{version = {VERSION} : i64, "
            f"jax = {text.quoted(jax.__version__)}}}}} {{\n")
    used = set(re.findall(r"%a\d+\b", body + result.name))
    for i, (name, _) in enumerate(parameters):
        if f"%a{i}" not in used:
            printer.warnings.append(f"the loss does not depend on the parameter '{name}'; it is left out")
    signature = ",\n    ".join(each for i, (each, (name, _)) in enumerate(zip(signature, [*parameters, *inputs], strict=True))
                               if (f"%a{i}" in used if i < len(parameters) else name not in left_out))
    source = (f"{head}func.func @loss(\n    {signature}) -> {kind} {{\n{body}\n  return {result.name} : {kind} loc(\"loss\")\n}}\n}}\n")
    return Captured(source, printer.warnings, left_out)
