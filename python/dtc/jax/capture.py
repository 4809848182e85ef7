"""Captures a loss of JAX from its jaxpr, as MLIR text in the unregistered dialects `torch` and `aten`: the form in which
dtc-import reads captures of PyTorch too, so that both have one set of rules."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy
from jax import tree_util
from jax._src import source_info_util
from jax.extend import core

from dtc import capture_text as text
from dtc.capture_text import Captured
from dtc.jax import draws, identities, shift as shifts
from dtc.jax.rules import NAMES, SIMPLE, Rules
from dtc.jax.shardings import Shardings
from dtc.jax.values import CaptureError, Value, elements, is_number, scalar_of

VERSION = 1
ELEMENT_TYPES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32",
                 "int16": "i16", "int8": "i8", "uint32": "i64", "uint8": "i16", "bool": "i1"}
# Calls whose body is inlined, and the parameter that has it.
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
         "remat2": "jaxpr", "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr"}


def place_of(eqns):
    """The user's line of the first of some equations that has one."""
    frames = (source_info_util.user_frame(each.source_info.traceback) for each in eqns)
    return next(((text.shortened(each.file_name), each.start_line) for each in frames if each), None)


def path_of(eqn):
    """The named scopes around an equation, such as modules of flax, joined by dots."""
    names = [re.sub(r"^(?:jit|jvp|transpose|vmap|rematted_computation|checkpoint)\((.*)\)$", r"\1", each)
             for each in str(eqn.source_info.name_stack).split("/")]
    return ".".join(each for each in names if re.fullmatch(r"[\w.\-\[\]]+", each)) or "loss"


class Printer(Rules):
    """Writes the equations of a jaxpr as the body of the function @loss."""

    def __init__(self):
        self.lines, self.warnings, self.count = [], [], 0
        self.calls = []  # whose bodies are being printed, the innermost last
        self.firsts, self.first_names = {}, {}  # of values that the same op makes of the same, the name of the first
        self.draws = draws.Draws(self, Value)
        self.shardings, self.argument_names = Shardings(), {}

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
    printer.argument_names = {value.name: name for value, (name, _) in zip(arguments, [*parameters, *inputs], strict=True)}
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
    for i, (name, leaf) in enumerate([*parameters, *inputs]):
        if f"%a{i}" in used and name not in left_out:
            printer.shardings.add_array(name, leaf)
    source = (f"{head}func.func @loss(\n    {signature}) -> {kind} {{\n{body}\n  return {result.name} : {kind} loc(\"loss\")\n}}\n}}\n")
    return Captured(source, printer.warnings, left_out, printer.shardings.mesh, printer.shardings.entries)
