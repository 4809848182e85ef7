"""Parts of a graph that PyTorch does not differentiate: torch.no_grad() and detach()."""

import torch
from torch.export.graph_signature import InputKind


def trained_nodes(program):
    """The nodes whose values depend on a parameter that is trained, so that a gradient would flow through them."""
    trained = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.PARAMETER}
    found = set()
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            depends = node.name in trained and value.requires_grad
        elif node.target is torch.ops.aten.detach.default:
            depends = False
        else:
            depends = any(each in found for each in node.all_input_nodes)
            depends &= not isinstance(value, torch.Tensor) or value.is_floating_point()
        if depends:
            found.add(node)
    return found


def check_regions(program, fail):
    """Calls fail(node, problem) where a region of the graph would be differentiated that PyTorch leaves out, or computed in
    another type. Other regions are as if they were not there. Returns whether there are some."""
    trained = trained_nodes(program)
    regions = False
    for node in program.graph.nodes:
        name = getattr(node.target, "__name__", "")
        if name == "wrap_with_set_grad_enabled":
            regions = True
            if not node.args[0] and any(each in trained for each in node.all_input_nodes):
                fail(node, "torch.no_grad() is around values that depend on trained parameters, and dtc differentiates all of a "
                           "loss; compute them from frozen parameters or from the batch")
        elif name == "wrap_with_autocast":
            regions = True
            if len(node.args) < 3 or node.args[2]:
                fail(node, "torch.autocast() chooses types of elements, which dtc-compile --dtype does; leave it out")
        elif node.target is torch.ops.aten.detach.default and any(each in trained for each in node.all_input_nodes):
            fail(node, "detach() is of a value that depends on trained parameters, and dtc differentiates all of a loss; compute "
                       "it from frozen parameters or from the batch")
    return regions
