"""Captures a module and its loss with torch.export, as MLIR text in the unregistered dialects `torch` and `aten`."""

import re

import torch
import torch.export
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export.graph_signature import InputKind, OutputKind

from dtc.capture_text import Captured
from dtc.errors import Error
from dtc.torch import gradients, mixtures, pairs, refusals, text, weights
from dtc.torch.operators import decompositions, is_converted

VERSION = 1
# Arguments that say nothing of the values that an operator gives.
IGNORED = ("pin_memory", "non_blocking", "copy", "implicit", "sparse", "sparse_grad", "cudnn_enable")


class CaptureError(Error):
    """The model cannot be captured; the text says why, where, and what to do."""


class Loss(torch.nn.Module):
    """The loss as a module, for torch.export takes no function."""

    def __init__(self, model, loss, mode):
        super().__init__()
        self.model, self.loss, self.mode = model, loss, mode

    def forward(self, batch):
        with self.mode:
            return self.loss(self.model, batch)


def named_inputs(batch):
    """{name: tensor} of a batch that is a dictionary, or a tuple or list, whose tensors are called input0, input1... Arrays of
    other libraries, such as numpy, become tensors."""
    named = dict(batch) if isinstance(batch, dict) else {f"input{i}": each for i, each in enumerate(batch)}
    for name, tensor in named.items():
        if not isinstance(tensor, torch.Tensor) and hasattr(tensor, "__dlpack__"):
            try:
                named[name] = tensor = torch.from_dlpack(tensor)
            except (BufferError, RuntimeError, TypeError) as error:
                raise CaptureError(f"'{name}' of the example batch is an array of {getattr(tensor, 'dtype', 'unknown elements')}, "
                                   f"which PyTorch does not take; convert it to an array of numbers ({error})") from None
        if not isinstance(tensor, torch.Tensor):
            raise CaptureError(f"'{name}' of the example batch is a {type(tensor).__name__}, expected a tensor; give the "
                               "loss what is no tensor in another way, such as by functools.partial")
        if not isinstance(name, str) or not name:
            raise CaptureError(f"the example batch has the key {name!r}, expected a name")
    if not named:
        raise CaptureError("the example batch is empty, expected tensors by name")
    return named


def place_of(node):
    """(file, line) of the user's line: the innermost that is neither PyTorch's nor of this package."""
    return refusals.last_place(node.meta.get("stack_trace"))


def module_of(node):
    """The path of the module that a node belongs to, or "loss" for a node outside of the model."""
    stack = node.meta.get("nn_module_stack") or {}
    path = list(stack.values())[-1][0] if stack else ""
    path = re.sub(r"^L\['self'\]\.?", "", path)
    if path == "model":
        return "model"
    return path.removeprefix("model.") if path.startswith("model.") else "loss"


def where(node):
    place = place_of(node)
    return f"{module_of(node)} ({place[0]}:{place[1]})" if place else module_of(node)


# Operators that check values and give none.
CHECKS = ("_assert_async", "_assert_scalar", "_assert_tensor_metadata")


class Printer:
    """Prints an exported program as the function @loss."""

    def __init__(self, program, names, values, inputs):
        self.program, self.names, self.values, self.inputs = program, names, values, inputs
        self.warnings, self.lines, self.arguments = [], [], []
        self.results = {}  # the text of each node's value, or of each of its values

    def print(self):
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        groups = {"parameter": [], "buffer": [], "input": []}
        loss, self.updates, counters = self.outputs()
        self.left_out = needed_by(counters) - needed_by([loss, *self.updates.values()])
        # A tied parameter has a placeholder for each of its names, and only one of them is used.
        self.used = {self.name_of(specs[node.name]) for node in self.program.graph.nodes
                     if node.op == "placeholder" and node.users and specs[node.name].target}
        for node in self.program.graph.nodes:
            if node in self.left_out:
                continue
            if node.op == "placeholder":
                self.add_placeholder(node, specs[node.name], groups)
            elif node.op == "call_function":
                self.add_call(node)
            elif node.op == "output":
                self.add_return(loss)
            else:
                refuse(node, f"the graph has a node '{node.op}', which cannot be captured")
        self.arguments = [each for group in groups.values() for each in group]
        head = (f"module attributes {{torch.capture = {{version = {VERSION} : i64, "
                f"torch = {text.quoted(torch.__version__.partition('+')[0])}}}}} {{\n")
        signature = ",\n    ".join(self.arguments)
        return f"{head}func.func @loss(\n    {signature}) -> {self.result_type} {{\n" + "\n".join(self.lines) + "\n}\n}\n"

    def add_placeholder(self, node, spec, groups):
        tensor = node.meta["val"]
        self.results[node] = f"%{node.name}"
        if spec.kind != InputKind.USER_INPUT and is_empty(node):
            return
        if spec.kind == InputKind.USER_INPUT:
            name = self.inputs[len(groups["input"])]
            self.add_argument(groups["input"], node, "input", name)
        elif not node.users:
            if spec.kind == InputKind.PARAMETER and self.name_of(spec) not in self.used:
                self.warnings.append(f"the loss does not depend on the parameter '{self.name_of(spec)}'; it is left out")
        elif spec.kind == InputKind.PARAMETER:
            self.add_argument(groups["parameter"], node, "parameter", self.name_of(spec))
        elif self.initial_of(spec, tensor) or self.name_of(spec) in self.updates:
            self.add_argument(groups["buffer"], node, "buffer", self.name_of(spec))
        else:
            self.add_constant(node, spec)

    def initial_of(self, spec, tensor):
        """Of a buffer that weights files have and dtc can initialize, "zeros" or "ones". Others are constants: a mask that was
        zeros until the weights are read would be a wrong one."""
        if spec.kind != InputKind.BUFFER or not spec.persistent or not tensor.is_floating_point():
            return None
        return self.uniform_value(spec.target.removeprefix("model."))

    def uniform_value(self, name):
        """"zeros" or "ones" where all elements of a buffer are that."""
        value = self.values.get(name)
        if value is None or value.is_meta or value.numel() == 0:
            return None
        first = value.flatten()[0].item()
        return {0.0: "zeros", 1.0: "ones"}.get(first) if bool((value == first).all()) else None

    def name_of(self, spec):
        return self.names.get(spec.target, spec.target.removeprefix("model."))

    def add_argument(self, group, node, kind, name):
        attributes = {f"torch.{kind}": text.quoted(name)}
        if kind == "buffer":
            attributes["torch.init"] = text.quoted(self.uniform_value(name) or "zeros")
            if not self.uniform_value(name):
                self.warnings.append(f"the buffer '{name}' begins with zeros where no weights file gives its elements")
        if kind == "parameter" and not node.meta["val"].requires_grad:
            attributes["torch.frozen"] = "unit"
        group.append(f"%{node.name}: {self.type_of(node, node.meta['val'])}{text.attributes(attributes)} "
                     f"loc({text.quoted(name)})")

    def add_constant(self, node, spec):
        """A tensor whose elements are a part of the model, not of its state."""
        name = spec.target.removeprefix("model.")
        value = self.values.get(name)
        if value is None:
            value = self.program.constants.get(spec.target)
        if value is None:
            value = self.program.state_dict.get(spec.target)
        if isinstance(value, FakeTensor):
            raise CaptureError(f"'{name}' is a value that the model computes and then takes out of the computation, such as by "
                               ".data, which cannot be captured")
        if value is None or value.is_meta:
            raise CaptureError(f"the buffer '{name}' has no elements, as the model was made on the device \"meta\"; make it "
                               "in `with dtc.torch.empty_weights():` instead, where buffers keep theirs")
        try:
            elements = text.elements(value)
        except ValueError as error:
            raise CaptureError(f"the buffer '{name}' cannot be written: {error}") from None
        if spec.kind == InputKind.BUFFER and spec.persistent:
            self.warnings.append(f"the buffer '{name}' is a constant of the captured model: its elements in weights files are "
                                 "not read")
        kind = self.type_of(node, value)
        self.lines.append(f'  %{node.name} = "torch.constant"() {{value = {elements} : {kind}}} : () -> {kind} '
                          f"loc({text.quoted(name)})")

    def type_of(self, node, value):
        if not isinstance(value, torch.Tensor):
            refuse(node, f"'{node.target}' gives a {type(value).__name__}, expected a tensor; a number that depends on the "
                            "data cannot be captured; leave it as a tensor")
        if value.dtype not in text.ELEMENT_TYPES:
            refuse(node, f"'{node.target}' gives elements of {value.dtype}, expected one of "
                            f"{', '.join(map(str, text.ELEMENT_TYPES))}; write this part with tensors of these, such as a complex "
                            "product by its real and imaginary parts")
        check_sizes(node, value)
        return text.tensor_type(value)

    def add_call(self, node):
        if is_empty(node) and all(has_empty_place(user) for user in node.users):
            return
        if getattr(node.target, "__name__", "") == "getitem":
            self.results[node] = self.results[node.args[0]][node.args[1]]
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            refuse(node, f"'{node.target}' cannot be captured: it is no operator of PyTorch, but takes functions; write the "
                            "part of the model without it")
        namespace, name = node.target._schema.name.split("::")
        if name in CHECKS or name == "sym_constrain_range_for_size":
            return
        if namespace not in ("aten", "dtc"):
            refuse(node, f"'{namespace}::{name}' is an operator that PyTorch does not decompose into its own; write it in terms "
                            "of PyTorch's operators")
        if name == "native_dropout":
            self.add_dropout(node)
            return
        # Of what no gradient flows through, by the checks of decompose().
        name = "alias" if name in ("detach", "detach_") else name
        operands, attributes = self.split_arguments(node)
        if operands:
            attributes["operands"] = "[" + ", ".join(text.quoted(each) for each, _ in operands) + "]"
        values = node.meta.get("val")
        if values is None:
            refuse(node, f"'{node.target}' gives nothing that a capture could use; write the part of the model without it")
        several = isinstance(values, (list, tuple))
        if name == "_native_batch_norm_legit_no_training":
            values = values[:1]  # its statistics are empty
        types = [self.type_of(node, each) for each in (values if several else [values])]
        self.results[node] = [f"%{node.name}#{i}" for i in range(len(types))] if several else f"%{node.name}"
        result = f"%{node.name}:{len(types)}" if several else f"%{node.name}"
        arguments = ", ".join(self.results[each] for _, each in operands)
        sources = ", ".join(self.operand_type(each) for _, each in operands)
        to = f"({', '.join(types)})" if several else types[0]
        dialect = "aten" if namespace == "aten" else "torch"
        self.lines.append(f'  {result} = "{dialect}.{name}"({arguments}){text.attributes(attributes)} : ({sources}) -> {to} '
                          f"{text.location(module_of(node), place_of(node))}")

    def add_dropout(self, node):
        """What decompositions make of dropout, which gives its mask as well, without the mask."""
        if any(user.args[1] != 0 for user in node.users):
            refuse(node, "the mask of dropout is used, which cannot be captured")
        operands, attributes = self.split_arguments(node)
        source = operands[0][1]
        attributes["operands"] = '["input"]'
        kind = self.operand_type(source)
        self.results[node] = [f"%{node.name}"]
        self.lines.append(f'  %{node.name} = "aten.dropout"({self.results[source]}){text.attributes(attributes)} : ({kind}) -> '
                          f"{kind} {text.location(module_of(node), place_of(node))}")

    def operand_type(self, node):
        return self.type_of(node, node.meta["val"])

    def split_arguments(self, node):
        """The tensors of a call, [(name in the schema, node)], and its other arguments as attributes. Element i of a list
        is called name.i."""
        operands, attributes = [], {}
        for i, argument in enumerate(node.target._schema.arguments):
            if i < len(node.args) and not argument.kwarg_only:
                value = node.args[i]
            else:
                value = node.kwargs.get(argument.name, argument.default_value)
            if isinstance(value, torch.fx.Node):
                operands.append((argument.name, value))
            elif isinstance(value, (list, tuple)) and any(isinstance(each, torch.fx.Node) for each in value):
                kept = [each for each in value if not is_empty(each)] if has_empty_place(node) else value
                operands += [(f"{argument.name}.{j}", each) for j, each in enumerate(kept) if each is not None]
            elif "ScalarType" in str(argument.type) and value is not None:
                attributes[argument.name] = text.attribute(value)
            elif argument.name not in IGNORED and value is not None and (written := text.attribute(value)) is not None:
                attributes[argument.name] = written
        return operands, attributes

    def outputs(self):
        """The loss, the new values of buffers by their names, and those of integer buffers, which count batches."""
        losses, updates, counters = [], {}, {}
        saved = {spec.target for spec in self.program.graph_signature.input_specs
                 if spec.kind == InputKind.BUFFER and spec.persistent}
        results = next(node for node in self.program.graph.nodes if node.op == "output").args[0]
        for spec, result in zip(self.program.graph_signature.output_specs, results, strict=True):
            name = (spec.target or "").removeprefix("model.")
            if spec.kind == OutputKind.BUFFER_MUTATION and spec.target in saved:
                if result.meta["val"].is_floating_point():
                    updates[name] = result
                else:
                    counters[name] = result
            elif spec.kind in (OutputKind.BUFFER_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None)):
                raise CaptureError(f"the model changes '{name}' while it computes the loss, which dtc can do with buffers that "
                                   "are saved alone; register it as a persistent buffer")
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                raise CaptureError(f"the loss changes the input '{spec.target}' in place; copy it first")
            elif spec.kind != OutputKind.TOKEN:
                losses.append(result)
        if len(losses) != 1 or not isinstance(losses[0], torch.fx.Node):
            raise CaptureError(f"the loss gives {len(losses)} values, expected one scalar tensor")
        if counters:
            self.warnings.append(f"the model counts batches in {len(counters)} buffers such as '{next(iter(counters))}', which dtc leaves as "
                                 "they are")
        return losses[0], updates, counters.values()

    def add_return(self, loss):
        value = loss.meta["val"]
        if value.dim() != 0 or not value.is_floating_point():
            raise CaptureError(f"the loss is a tensor of the shape {list(value.shape)} and the type {value.dtype}, expected a "
                               "scalar float, such as the mean of it")
        types = [self.type_of(loss, value)]
        types += [self.type_of(each, each.meta["val"]) for each in self.updates.values()]
        marks = [""] + [text.attributes({"torch.updates": text.quoted(name)}) for name in self.updates]
        several = ", ".join(f"{kind}{mark}" for kind, mark in zip(types, marks, strict=True))
        self.result_type = f"({several})" if self.updates else types[0]
        values = ", ".join(self.results[each] for each in (loss, *self.updates.values()))
        self.lines.append(f'  return {values} : {", ".join(types)} loc("loss")')


def needed_by(nodes):
    """The nodes that these are computed from, and themselves."""
    needed, pending = set(), list(nodes)
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    return needed


def is_empty(node):
    """Whether a node is a tensor without elements, such as the part of a head that is not rotated where all of it is."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and any(isinstance(size, int) and size == 0 for size in value.shape)


def has_empty_place(node):
    """Whether an op is the same without its empty operands."""
    return node.target is torch.ops.aten.cat.default or (is_empty(node) and node.op == "call_function")


def check_sizes(node, value):
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, torch.Tensor) and any(not isinstance(size, int) for size in each.shape):
            refuse(node, f"'{node.target}' gives a tensor of the shape {tuple(each.shape)}, expected sizes that are known; choose "
                         f"elements by torch.where, which leaves all of them where they are; {refusals.OF_EXPERTS}")


def refuse(node, problem):
    raise CaptureError(f"{where(node)}: {problem}")


def fail(problem):
    raise CaptureError(problem)


def decompose(program):
    """The program with functional operators. torch decomposes those that have no rule in dtc-import."""
    for node in program.graph.nodes:
        check_sizes(node, node.meta.get("val"))
    gradients.check_regions(program, refuse)
    regions = gradients.inline_regions(program.graph_module)
    operators = {node.target for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)}
    ignored = (*CHECKS, "detach_")  # detach_() changes no element
    if not regions and all(is_converted(each) or each._schema.name.partition("::")[2] in ignored for each in operators):
        return program
    table = torch.export.default_decompositions()
    table = {each: rule for each, rule in dict(table.items()).items()
             if isinstance(each, torch._ops.OpOverload) and not is_converted(each)}
    return program.run_decompositions(table | decompositions(torch.ops.aten))


def check_weights(model):
    for name, tensor in model.named_parameters():
        if tensor.dtype not in (torch.float32, torch.float64):
            raise CaptureError(f"the parameter '{name}' has elements of {tensor.dtype}, expected torch.float32 or "
                               "torch.float64; capture model.float(), and let dtc-compile --dtype choose what to compute in")


def capture(model, loss, example_batch):
    """Captures loss(model, batch), a scalar. The example batch, a dictionary or a tuple of tensors, gives the names, types and
    shapes of the inputs; neither its elements nor the model's parameters are read. Raises CaptureError."""
    check_weights(model)
    if isinstance(loss, torch.nn.Module) and any(True for _ in loss.parameters()):
        raise CaptureError("the loss has parameters of its own; make it a part of the model")
    inputs = named_inputs(example_batch)
    gradients.check_hooks(model, fail)
    values = {name: buffer for name, buffer in model.named_buffers(remove_duplicate=False) if not buffer.is_meta}
    values |= weights.values_without_memory(model)
    state = weights.state_names(model)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with weights.faked(model, mode) as originals:
        targets = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            targets[f"model.{name}"] = state[id(originals[id(parameter)])]
        with mode:
            fakes = {name: torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu") for name, tensor in inputs.items()}
        batch = fakes if isinstance(example_batch, dict) else tuple(fakes.values())
        watch = refusals.Watch(model)

        def fail_here(problem):
            fail(f"{watch.here()}: {problem}")
        try:
            samples = next(iter(inputs.values())).shape[:1]
            with gradients.refused(fail_here), refusals.quiet(), pairs.captured(fail_here), \
                    mixtures.captured(samples[0] if samples else 1):
                traced = Loss(model, loss, gradients.Foreign(fail_here, watch.failed))
                exported = torch.export.export(traced, (batch,), strict=False)
                program = decompose(exported)
        except CaptureError:
            raise
        except Exception as error:
            raise CaptureError(watch.describe(error)) from error
        printer = Printer(program, targets, values, list(inputs))
        return Captured(printer.print(), printer.warnings)
