"""What torch.export does not capture of gradients, or differentiates otherwise than dtc: torch.no_grad(), detach(), hooks and
torch.autograd.Function."""

import contextlib
import functools
import weakref

import torch
from torch.export.graph_signature import InputKind
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

DETACHED = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default, torch.ops.aten.detach_copy.default)
CHANGES = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__")
REGIONS = ("wrap_with_set_grad_enabled", "wrap_with_autocast")


def trained_nodes(graph, trained):
    """The nodes whose values depend on a parameter that is trained, so that a gradient would flow through them. `trained`
    names the placeholders that do."""
    found = set()
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            depends = node.name in trained
        elif node.target in DETACHED:
            depends = False
        else:
            depends = any(each in found for each in node.all_input_nodes)
            depends &= not isinstance(value, torch.Tensor) or value.is_floating_point()
        if depends:
            found.add(node)
    return found


def region_of(owner, node):
    """The module of a region of the graph, and the values that its placeholders stand for."""
    at = next(i for i, each in enumerate(node.args) if isinstance(each, torch.fx.Node) and each.op == "get_attr")
    return getattr(owner, node.args[at].target), node.args[at + 1:]


def is_region(node):
    return node.op == "call_function" and getattr(node.target, "__name__", "") in REGIONS


def check_graph(owner, trained, fail):
    """check_regions() of a graph and of the graphs of its regions."""
    found = trained_nodes(owner.graph, trained)
    for node in owner.graph.nodes:
        name = getattr(node.target, "__name__", "")
        depends = any(each in found for each in node.all_input_nodes)
        if name == "wrap_with_set_grad_enabled" and not node.args[0] and depends:
            fail(node, "torch.no_grad() is around values that depend on trained parameters, and dtc differentiates all of a "
                       "loss; compute them from frozen parameters or from the batch")
        elif name == "wrap_with_autocast" and (len(node.args) < 3 or node.args[2]):
            fail(node, "torch.autocast() chooses types of elements, which dtc-compile --dtype does; leave it out")
        elif node.target in DETACHED and depends:
            fail(node, "detach() is of a value that depends on trained parameters, and dtc differentiates all of a loss; compute "
                       "it from frozen parameters or from the batch")
        if is_region(node):
            body, values = region_of(owner, node)
            places = [each for each in body.graph.nodes if each.op == "placeholder"]
            check_graph(body, {place.name for place, each in zip(places, values)
                               if isinstance(each, torch.fx.Node) and each in found}, fail)


def check_regions(program, fail):
    """Calls fail(node, problem) where a region of the graph would be differentiated that PyTorch leaves out, or computed in
    another type. Other regions are as if they were not there."""
    parameters = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.PARAMETER}
    trained = {node.name for node in program.graph.nodes
               if node.op == "placeholder" and node.name in parameters and node.meta["val"].requires_grad}
    check_graph(program.graph_module, trained, fail)


def inline_regions(owner):
    """Puts the nodes of regions into the graph around them, after check_regions(). A region that has tensors of its own stays.
    Returns whether one stays."""
    graph, stays = owner.graph, False
    for node in [each for each in graph.nodes if is_region(each)]:
        body, values = region_of(owner, node)
        if inline_regions(body) or any(each.op == "get_attr" for each in body.graph.nodes):
            stays = True
            continue
        given, copies = iter(values), {}
        with graph.inserting_before(node):
            for each in body.graph.nodes:
                if each.op == "placeholder":
                    copies[each] = next(given)
                elif each.op != "output":
                    copies[each] = graph.node_copy(each, copies.__getitem__)
        results = next(each for each in body.graph.nodes if each.op == "output").args[0]
        for user in list(node.users):  # each takes one result of the region
            user.replace_all_uses_with(copies[results[user.args[1]]])
            graph.erase_node(user)
        graph.erase_node(node)
    graph.eliminate_dead_code(lambda node: node.op != "get_attr")
    return stays


def check_hooks(model, fail):
    """Calls fail(problem) where gradients of parameters have hooks, which torch.export does not see."""
    for name, parameter in model.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            fail(f"the parameter '{name}' has a hook of its gradient, which is not captured; remove it")


class Foreign(TorchFunctionMode):
    """Calls fail(problem) where an operator takes a trained tensor that is not one of the model's parameters, which torch.export
    would turn into a constant, and where one changes a parameter by its .data, which torch.export does not see. Calls
    failed(operator, error) with each exception of an operator."""

    def __init__(self, fail, failed):
        super().__init__()
        self.fail, self.failed = fail, failed
        self.data = {}  # the .data of tensors that have gradients, by id

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for each in pytree.tree_leaves((args, kwargs or {})):
            if type(each) in (torch.Tensor, torch.nn.Parameter) and each.requires_grad:
                self.fail(f"a tensor of the shape {list(each.shape)} has a gradient but is used without being a parameter of the "
                          "model: a constant would not be trained; make the module that it belongs to a part of the model, "
                          "take parameters from their modules, or freeze it with requires_grad_(False)")
        name = getattr(func, "__name__", "")
        if args and id(args[0]) in self.data and (name.endswith("_") and not name.endswith("__") or name in CHANGES):
            self.fail(f"'{name}' changes the .data of a tensor of the shape {list(args[0].shape)}, such as of a parameter, while "
                      "the loss is computed; change parameters between steps, by step.load_state_dict()")
        try:
            result = func(*args, **(kwargs or {}))
        except Exception as error:
            self.failed(func, error)
            raise
        if func == torch.Tensor.data.__get__ and args[0].requires_grad:
            self.data[id(result)] = result
        return result


# Functions whose backward() gives the derivatives of forward(): those of libraries by their names, and others, which may share
# one, as when a function makes several.
KNOWN_DIFFERENTIATED = {"transformers.models.bloom.modeling_bloom.GeLUFunction"}
DIFFERENTIATED = weakref.WeakSet()


def differentiate(function):
    """Says that the backward() of a torch.autograd.Function gives the derivatives of its forward(), as one that saves memory does: a
    capture takes forward(), and dtc differentiates it. Nothing checks it. Returns the function, as a decorator does."""
    DIFFERENTIATED.add(function)
    return function


def is_differentiated(function):
    return function in DIFFERENTIATED or f"{function.__module__}.{function.__qualname__}" in KNOWN_DIFFERENTIATED


class Context:
    """Takes what a forward() keeps for its backward()."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def set_materialize_grads(self, value):
        pass


def call_forward(function, *args):
    """What a torch.autograd.Function computes, with operators that are differentiated."""
    has_context = function.setup_context is torch.autograd.Function.setup_context
    return function.forward(*([Context()] if has_context else []), *args)


def subclasses(cls):
    """All classes that are derived from a class."""
    return {each for child in cls.__subclasses__() for each in (child, *subclasses(child))}


@contextlib.contextmanager
def refused(fail):
    """In this context fail(problem) is called where a model has gradients of its own. autocast(enabled=False), in which
    torch.export does not see torch.no_grad(), is left out."""
    function, register = torch.autograd.Function.__dict__["apply"], torch.Tensor.register_hook
    enter, leave = torch.autocast.__enter__, torch.autocast.__exit__
    left_out = set()

    def enter_autocast(region):
        if not region._enabled and not torch.is_autocast_enabled(region.device):
            left_out.add(id(region))
            return region
        return enter(region)

    def leave_autocast(region, *error):
        if id(region) not in left_out:
            return leave(region, *error)
        left_out.discard(id(region))
        return False

    def refuse(cls, *_, **__):
        fail(f"'{cls.__name__}' is a torch.autograd.Function, whose backward() is not captured; write it with operators whose "
             "derivatives PyTorch has, or, if it gives the derivatives of forward(), say so by dtc.torch.differentiate()")

    def apply(cls, *args):
        return call_forward(cls, *args) if is_differentiated(cls) else refuse(cls)

    def register_hook(*_):
        fail("register_hook() changes a gradient, which is not captured; leave it out")

    # apply() may be bound already (`apply = MyFunction.apply`), and then is not looked up, but forward() is, also that of a class
    # that it is derived from.
    forwards = [(each, each.__dict__.get("forward")) for each in subclasses(torch.autograd.Function)
                if each.forward is not torch.autograd.Function.forward and not is_differentiated(each)]
    for each, _ in forwards:
        each.forward = staticmethod(functools.partial(refuse, each))
    torch.autograd.Function.apply, torch.Tensor.register_hook = classmethod(apply), register_hook
    torch.autocast.__enter__, torch.autocast.__exit__ = enter_autocast, leave_autocast
    try:
        yield
    finally:
        torch.autograd.Function.apply, torch.Tensor.register_hook = function, register
        for each, forward in forwards:
            if forward is None:
                del each.forward
            else:
                each.forward = forward
        torch.autocast.__enter__, torch.autocast.__exit__ = enter, leave
