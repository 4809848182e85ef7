#!/usr/bin/env python3
"""Wrong uses of dtc.compile() and its steps: each has an error of dtc that names the argument, or the operator with its module
and line, and says what is expected. Those of PyTorch are left out where it is missing.

    PYTHONPATH=BUILD/python python3 test/python/wrong_uses.py
"""

import os
import pathlib
import tempfile
import unittest
import warnings

from training import MLP, batch

import dtc

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    torch = None

GOOD = batch([1, 2, 3, 4])
MIXED = pathlib.Path(__file__).resolve().parents[2] / "examples" / "clusters" / "mixed-a100-h100.textproto"


def compiled(**options):
    return dtc.compile(MLP, **options)


# Without PyTorch: what is called, and what the error says.
USES = (
    # Arguments of dtc.compile().
    (lambda: dtc.compile(MLP, lambda model, batch: 0), "mlp.mlir has its loss and the shapes of its batch; leave loss"),
    (lambda: dtc.compile(None), "model is a NoneType, expected a torch.nn.Module, parameters of JAX or the path"),
    (lambda: dtc.compile("."), r"\.: cannot be read: .*Is a directory"),
    (lambda: dtc.compile("empty.mlir"), "empty.mlir:1:1: error: the model has 0 functions, expected one, func.func @loss"),
    (lambda: dtc.compile("newer.mlir"), "newer.mlir.*version"),
    (lambda: dtc.compile("binary.mlir"), "binary.mlir: cannot be read: 'utf-8'"),
    (lambda: compiled(optimizer=dtc.AdamW), "optimizer is a type, expected dtc.AdamW"),
    (lambda: compiled(optimizer=dtc.AdamW(betas=0.9)), "betas is 0.9, expected two numbers"),
    (lambda: compiled(optimizer=dtc.AdamW(eps=-1)), 'eps is "-1", expected a finite number that is not negative'),
    (lambda: compiled(optimizer=dtc.SGD(momentum=2)), 'momentum is "2", expected at least 0 and less than 1'),
    (lambda: compiled(optimizer=dtc.AdamW(weight_decay="a")), 'weight_decay is "a", expected a finite number'),
    (lambda: compiled(mesh={"dp": "two"}), 'mesh is "dp=two", expected axis=size'),
    (lambda: compiled(mesh="dp=2,dp=2"), 'two axes named "dp"'),
    (lambda: compiled(mesh=4), 'mesh is "4", expected axis=size'),
    (lambda: compiled(mesh=["dp=2", "tp=x"]), 'mesh is "tp=x", expected axis=size'),
    # Searches.
    (lambda: compiled(mesh="auot", devices=8), 'mesh is "auot", expected axis=size .*, or "auto", .*; did you mean "auto"\\?'),
    (lambda: compiled(mesh=["auto", "dp=2"], devices=8), 'mesh is "auto" and has axes too, expected one of both'),
    (lambda: compiled(mesh="auto", devices=0), "devices is 0, expected a whole number of at least 1"),
    (lambda: compiled(mesh="auto", devices=-1), "devices is -1, expected a whole number of at least 1"),
    (lambda: compiled(mesh="auto", devices=2.5), "devices is 2.5, expected a whole number of at least 1"),
    (lambda: compiled(mesh="auto", devices="8"), "devices is '8', expected a whole number of at least 1"),
    (lambda: compiled(mesh="auto", devices=True), "devices is True, expected a whole number of at least 1"),
    (lambda: compiled(mesh="auto", devices=2**40), "devices is 1099511627776, expected 1 to 2147483648"),
    (lambda: compiled(devices=8), 'devices is 8, but there is no mesh; give mesh="auto", which searches one'),
    (lambda: compiled(mesh="dp=2,tp=2", devices=8), "devices is 8, but the mesh has 4; leave devices out"),
    (lambda: compiled(mesh="auto", devices=16, cluster=MIXED), 'devices: 16 devices are asked for, the cluster "mixed-a100-h100" has 8'),
    (lambda: compiled(mesh="auto", cluster="nowhere.textproto"), "cluster: nowhere.textproto: cannot open: No such file"),
    (lambda: compiled(mesh="auto", cluster="text"), "cluster: text: line 1, column 1: a Cluster has no field"),
    (lambda: compiled(mesh="auto", cluster="cluster.json"), "cluster: cluster.json: .*devices is empty, expected at least one"),
    (lambda: compiled(mesh="auto", cluster="empty.mlir"), "cluster: empty.mlir: the text is empty; expected a cluster"),
    (lambda: compiled(mesh="auto", cluster=""), "cluster is '', expected the path of a cluster file"),
    (lambda: compiled(mesh="auto", cluster={}), "cluster is {}, expected the path of a cluster file"),
    (lambda: compiled(mesh="dp=2", cluster="nowhere.textproto"), "cluster: nowhere.textproto: cannot open"),
    (lambda: compiled(mesh="dp=4,tp=4", cluster=MIXED), 'cluster: the mesh has 16 devices, the cluster "mixed-a100-h100" has 8'),
    (lambda: dtc.compile("meshed.mlir", mesh="auto", devices=8), 'mesh is "auto", but the model declares a mesh of its own'),
    (lambda: compiled(mesh="auto", devices=8, zero_axes="dp"), "zero_axes: the search chooses the mesh that it would be for; give the"),
    (lambda: compiled(mesh="auto", devices=8, stages="a|b"), "stages: the search chooses the mesh"),
    (lambda: compiled(mesh="auto", devices=8, outer="dp"), "outer.*: the search chooses the mesh"),
    (lambda: compiled(mesh="auto", devices=8, recompute="auto"), 'recompute is "auto", which needs a memory'),
    (lambda: compiled(mesh="auto", devices=8, set="sero=1"), 'set: there is no searched option "sero"; did you mean "zero"'),
    (lambda: compiled(mesh="auto", devices=8, set={"pp": 0}), 'set: pp is "0", expected 1 to'),
    (lambda: compiled(mesh="auto", devices=8, set="zero=1", zero=1), "set: zero is given twice"),
    (lambda: compiled(mesh="auto", devices=8, set="pp=3"), "no strategy with pp=3 divides 8 devices and a batch of 4 samples; leave out"),
    (lambda: compiled(mesh="auto", devices=11, set="pp=1,tp=1"), "no strategy with pp=1, tp=1 divides 11 devices and a batch of 4 samples"),
    (lambda: compiled(mesh="auto", devices=8, alternatives=-1), 'alternatives is "-1", expected 0 to 1048576'),
    (lambda: compiled(mesh="dp=2", set="pp=2"), 'set: nothing is searched; give mesh="auto", or leave it out'),
    (lambda: compiled(mesh="dp=2", alternatives=2), 'alternatives: nothing is searched; give mesh="auto"'),
    (lambda: compiled(mesh="auto", devices=8, memory="lots"), 'memory: "lots" is no number of bytes'),
    (lambda: compiled(mesh="auto", devices=8, memory="1KiB"), "no strategy fits: .* a device has 1.0 KiB that a plan may use"),
    (lambda: compiled(device=8), 'device is 8, expected "cpu", "cuda" or "auto" .devices is the number'),
    (lambda: compiled(device_count=8), 'there is no option "device[-_]count"'),
    (lambda: compiled(memory="lots"), 'memory: "lots" is no number of bytes; expected'),
    (lambda: compiled(dtype="float32"), 'dtype is "float32", expected one of f32, bf16, f16, fp8'),
    (lambda: compiled(accumulate=0), "accumulate is 0, expected a whole number of at least 1"),
    (lambda: compiled(accumulate=True), "accumulate is True, expected a whole number"),
    (lambda: compiled(batch="own"), "batch is 'own', expected \"global\" or \"local\""),
    (lambda: compiled(schedule="1f1b"), 'schedule is given, but the mesh has no axis "pp"'),
    (lambda: compiled(recompute="most"), 'recompute is "most", expected one of none, gathers, elementwise, selective, full, auto'),
    (lambda: compiled(batch_size=3), 'there is no option "batch_size"; the options are those of dtc-compile'),
    (lambda: compiled(mode="forward"), "mode is not an option of dtc.compile"),
    (lambda: compiled(mesh="dp=2", outer="dp")(GOOD), "the replicas of the plan differ between outer steps"),
    (lambda: compiled(threads=-1), "threads is -1, expected a whole number of at least 0"),
    (lambda: compiled(seed="x"), "seed is 'x', expected a whole number of at least 0"),
    (lambda: compiled(microbatches=0), 'microbatches is "0", expected 1 to'),
    # Initial values.
    (lambda: compiled(init=3), "init is a int, expected a state_dict, or paths"),
    (lambda: compiled(init="nowhere.safetensors")(GOOD), "nowhere.safetensors: cannot open"),
    (lambda: compiled(init="text")(GOOD), "text: is no safetensors file"),
    (lambda: compiled(init=".")(GOOD), "the folder has no weights; expected one of model.safetensors"),
    (lambda: compiled(init={})(GOOD), 'the state_dict: has no tensor "layers.0.weight"'),
    (lambda: compiled(init={"head.bias": "x"})(GOOD), '"head.bias" is a str, expected an array'),
    # Steps and batches.
    (lambda: compiled(optimizer=dtc.AdamW(lr="fast"))(GOOD), "the learning rate of step 1 is 'fast', expected a number"),
    (lambda: compiled(optimizer=dtc.AdamW(lr=lambda step: None))(GOOD), "the learning rate of step 1 is None"),
    (lambda: compiled()(GOOD, lr=-1), "the learning rate is -1, expected a finite number of at least 0"),
    (lambda: compiled()(GOOD, lr="x"), "lr is 'x', expected a number"),
    (lambda: compiled()(None), "the batch is a NoneType, expected a dictionary of arrays"),
    (lambda: compiled().evaluate(GOOD["features"]), "the batch is a memoryview, expected a dictionary of arrays"),
    (lambda: compiled().evaluate({}), r'the batch has no "features" \(f32\[4,6\]\); it has nothing'),
    (lambda: compiled()(GOOD | {"features": [[1.0] * 6] * 4}), '"features" is a list, expected an array'),
    (lambda: compiled(accumulate=2)([GOOD]), r"a step takes 2 batches \(accumulate\), but there are 1"),
    (lambda: compiled(accumulate=2)(batch([1, 2, 3])), '"features" of the batch has 3 samples, which are no 2 batches'),
    (lambda: compiled(accumulate=2)([GOOD, batch([1])]), r'batch 1 of the step: "features" of the batch is F32\[1, 6\]'),
    # Files.
    (lambda: compiled().save("text"), "text: is not a folder"),
    (lambda: compiled().save("x", keep=-1), "keep is -1, expected 0"),
    (lambda: compiled().load("nowhere"), "nowhere: has no checkpoint"),
    (lambda: compiled().load("nowhere", allow_change="modle"), 'allow_change has "modle", expected some of '),
    (lambda: compiled().save_weights("no/where/x"), "no/where/x: cannot write"),
    (lambda: compiled().save_plan("no/where/x"), "no/where/x: cannot write"),
    (lambda: compiled().load_state_dict(3), "weights is a int, expected a state_dict"),
    (lambda: compiled().save_pretrained("x"), "save_pretrained is for models of transformers"),
    (lambda: compiled().explain(top=-1), "top is -1, expected a whole number of at least 1"),
)


class WrongUses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("empty.mlir").touch()
        pathlib.Path("newer.mlir").write_text(MLP.read_text().replace("version = 1 ", "version = 2 "))
        pathlib.Path("binary.mlir").write_bytes(b"\xff\xfe\0")
        pathlib.Path("text").write_text("x")
        pathlib.Path("cluster.json").write_text('{"name": "nothing"}')
        pathlib.Path("meshed.mlir").write_text("""dist.mesh @mesh <"dp"=2>
func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %sum = dtc.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}""")

    def check(self, uses):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for use, message in uses:
                with self.subTest(message), self.assertRaisesRegex(dtc.Error, message):
                    use()

    def test_without_torch(self):
        self.check(USES)

    @unittest.skipUnless(torch, "needs PyTorch")
    def test_with_torch(self):
        self.check(uses_of_torch())


def uses_of_torch():
    """The uses of PyTorch: what the model computes between its layer `inner` and its loss, and others."""
    example = {"x": torch.zeros(4, 6), "y": torch.zeros(4, dtype=torch.long)}
    from dtc.torch import differentiate

    class Part(nn.Module):
        def __init__(self, body):
            super().__init__()
            self.body = body

        def forward(self, x):
            return self.body(x)

    class Model(nn.Module):
        def __init__(self, body=lambda x: x):
            super().__init__()
            self.inner, self.part = nn.Linear(6, 5), Part(body)

        def forward(self, x):
            return self.part(self.inner(x))

    class WithStatistics(Model):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros(5), persistent=False)

        def forward(self, x):
            self.steps.add_(1)
            return self.inner(x) + self.steps

    class WithoutElements(Model):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(5, device="meta"))

        def forward(self, x):
            return self.inner(x) + self.scale

    class Changing(Model):
        def forward(self, x):
            with torch.no_grad():
                self.inner.weight.mul_(2)
            return self.inner(x)

    class ChangingData(Model):
        def forward(self, x):
            self.inner.weight.data.mul_(2)
            return self.inner(x)

    class LossWithParameters(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(5, 5)

        def forward(self, model, batch):
            return F.cross_entropy(self.head(model(batch["x"])), batch["y"])

    def make_function():
        class OwnGradient(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        return OwnGradient

    # Another function of the same name, and one that inherits its forward(), are refused all the same.
    OwnGradient, Differentiated = make_function(), differentiate(make_function())

    class Derived(Differentiated):
        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    def loss(model, batch):
        return F.cross_entropy(model(batch["x"]), batch["y"])

    def without_gradients(x):
        with torch.no_grad():
            return 2 * x

    def in_other_types(x):
        with torch.autocast("cpu"):
            return 2 * x

    def changing_input(model, batch):
        batch["x"].mul_(2)
        return loss(model, batch)

    def of(body=None, model=None, loss=loss, example=example):
        return lambda: dtc.compile(model or (Model(body) if body else Model()), loss, example)

    def give_to_experts(x, shape=(5, 5, 3), tokens=slice(None)):
        # Experts of the two largest elements of each row.
        weights, chosen = x[tokens].topk(2)
        return x.sum() + dtc.torch.experts(x[tokens], chosen, weights, lambda rows, product: product(rows, up), torch.ones(shape))

    up = torch.ones(5, 3, 5)
    needs = "needs the elements of a tensor, which a capture does not have; choose between tensors by torch.where"
    here = r"part \(.*wrong_uses.py:\d+\): "
    return (
        (of(lambda x: x.sort(-1).values), f"Model: {here}'aten.sort' has no rule; write this part of the model with other"),
        (of(lambda x: x.cumprod(-1)), f"{here}'aten.cumprod' has no rule"),
        (of(lambda x: x + torch.rand_like(x)), f"{here}'aten.rand_like' has no rule"),
        (of(lambda x: torch.fft.fft(x).real), f"{here}'aten._fft_r2c.default' gives elements of torch.complex64"),
        (of(lambda x: torch.polar(x, x).abs()), f"{here}'abs' of complex numbers has no rule; compute with their real and imaginary"),
        (of(lambda x: torch.log(torch.complex(x, x)).real), f"{here}'log' of complex numbers has no rule"),
        (of(lambda x: torch.polar(x, x).to(torch.complex128).real), rf"{here}to\(\) of complex numbers takes a device alone"),
        (of(lambda x: x * x.sum().item()), f"{here}.*a number that depends on the data cannot be captured"),
        (of(lambda x: x.detach()), f"{here}detach\\(\\) is of a value that depends on trained parameters"),
        (of(without_gradients), r"part: torch.no_grad\(\) is around values that depend on trained parameters"),
        (of(in_other_types), r"part: torch.autocast\(\) chooses types of elements"),
        (of(OwnGradient.apply), "'OwnGradient' is a torch.autograd.Function, whose backward"),
        (of(Derived.apply), "'Derived' is a torch.autograd.Function, whose backward"),
        (of(lambda x: x.register_hook(print) and x), r"register_hook\(\) changes a gradient"),
        (of(lambda x: x if x.sum() > 0 else -x), f"{here}'torch.Tensor.__bool__' {needs}"),
        (of(lambda x: x * float(x.max())), f"{here}'torch.Tensor.__float__' {needs}"),
        (of(lambda x: sum(x for _ in range(int(x.sum())))), f"{here}'torch.Tensor.__int__' {needs}"),
        (of(lambda x: x * x.numpy().size), f"{here}'torch.Tensor.numpy' {needs}"),
        (of(lambda x: x[x.sum(-1) > 0].sum() + x), rf"{here}'aten.index.Tensor' gives a tensor of the shape \(u0, 5\), expected"),
        (of(lambda x: x * x.nonzero().sum()), f"{here}'aten.nonzero.default' gives a tensor of the shape .*torch.where"),
        (of(lambda x: x * torch.unique(x).sum()), f"{here}'aten._unique2.default' gives a tensor of the shape"),
        (of(lambda x: x[torch.where(x.topk(2).indices == 0)[0]].sum() + x), rf"{here}.*expected sizes that are known.*dtc.torch.experts\(\)"),
        (of(lambda x: x.topk(2).values[:, :1] + x), f"{here}'aten.slice' takes the result of torch.topk, .* but not their order"),
        (of(lambda x: x.topk(5).values * torch.arange(5) + x), f"{here}'aten.mul' combines the largest elements of rows with a tensor"),
        (of(lambda x: x.topk(2, largest=False).values.sum() + x), f"{here}'aten.topk' takes the smallest elements"),
        (of(lambda x: give_to_experts(x, shape=(5, 5))), rf"{here}.*experts\(\) has tokens \[4, 5\], experts \[4, 2\], .*expected"),
        (of(lambda x: give_to_experts(x, tokens=slice(3))), f"{here}.*3 tokens go to experts, expected a multiple of the 4 samples"),
        (of(lambda x: torch.cond(x.sum() > 0, lambda y: y, lambda y: -y, (x,))), f"{here}.*takes functions, .*torch.where"),
        (of(lambda x: x @ torch.ones(4, 4)), f"{here}'torch.Tensor.matmul' fails with RuntimeError: a and b must have same"),
        (of(lambda x: x + "a"), f"{here}.* fails with TypeError: unsupported operand.*; try the loss in PyTorch"),
        (of(lambda x: x.missing), f"{here}.* fails with AttributeError: .* no attribute 'missing'; try the loss"),
        (of(model=Changing()), r"model: torch.no_grad\(\) is around values that depend on trained parameters"),
        (of(model=ChangingData()), r"model \(.*wrong_uses.py:\d+\): 'mul_' changes the .data of a tensor of the shape \[5, 6\]"),
        (of(model=WithStatistics()), "changes 'steps' while it computes the loss, .*; register it as a persistent buffer"),
        (of(model=WithoutElements()), r"model \(.*:\d+\): 'torch.Tensor.add' takes tensors of several devices .*empty_weights"),
        (of(model=Model().bfloat16()), r"'inner.weight' has elements of torch.bfloat16.*capture model.float\(\)"),
        (of(model=Model().requires_grad_(False)), "no parameter that trains: all of them are frozen"),
        (of(loss=None), "a torch.nn.Module needs a loss, a function"),
        (of(loss=LossWithParameters()), "the loss has parameters of its own; make it a part of the model"),
        (of(loss=lambda model, batch: model(batch["x"]).sum(0)), r"the loss is a tensor of the shape \[5\].*expected a scalar"),
        (of(loss=lambda model, batch: (loss(model, batch), 1)), "the loss gives 2 values, expected one scalar tensor"),
        (of(loss=lambda model, batch: model(batch["z"]).sum()), r"loss \(.*wrong_uses.py:\d+\): .* fails with KeyError: 'z'"),
        (of(loss=changing_input), "the loss changes the input 'batch_x' in place; copy it first"),
        (of(example={"x": 3}), "'x' of the example batch is a int, expected a tensor"),
        (of(example={}), "the example batch is empty, expected tensors by name"),
        (of(example=example | {"x": torch.zeros(4, 6).half()}), r"inner \(.*\): 'aten.linear' multiplies tensors that are not"),
        (lambda: dtc.compile(Model, loss, example), "model is a type, expected a torch.nn.Module"),
        (lambda: dtc.compile(Model(), loss, example, mesh="dp=8"), "'x': dimension 0 .* has size 4, which .* 8 shards"),
        (lambda: of()().load_state_dict({"inner.weight": torch.zeros(3), "inner.bias": torch.zeros(5)}),
         r'"inner.weight" is F32\[3\], but the parameter "inner.weight" is f32\[5,6\]'),
        (lambda: of()().load_state_dict({"inner.weight": torch.zeros(5, 6)}), 'the state_dict: has no tensor "inner.bias"'),
        (lambda: of()()(example | {"x": torch.zeros(3, 6)}), r'"x" of the batch is F32\[3, 6\], expected f32\[4,6\]'),
        (lambda: of()()(example | {"x": torch.zeros(4, 6, 1)}), r'"x" of the batch is F32\[4, 6, 1\], expected f32\[4,6\]'),
        (lambda: of()()(example | {"y": torch.zeros(4)}), '"y" of the batch'),
        (lambda: of()()({"x": example["x"]}), r'the batch has no "y" \(i32\[4\]\); it has "x"'),
        (lambda: of()()(example | {"y": example["y"] + 7}), '"y".*element 0 is 7; expected an index from 0 to 4'),
        (lambda: of()()(example | {"x": example["x"].to(torch.complex64)}), '"x" .*'),
        (lambda: of()().save_pretrained("x"), "save_pretrained is for models of transformers"),
    )


if __name__ == "__main__":
    unittest.main()
