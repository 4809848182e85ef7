#!/usr/bin/env python3
"""DP-SGD of dtc beside Opacus, in f64 without noise, and what it spends beside dp-accounting.

    PYTHONPATH=BUILD/python venv/bin/python scripts/reference/dp_sgd.py

A model with an embedding, a norm of layers and two linear layers takes steps on batches of sequences with SGD; the parameters after
each step are compared with those of Opacus' DPOptimizer, for a clip by which some samples are scaled and one by which all are, on
several meshes. It needs torch, opacus and dp-accounting.
"""

import warnings

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer

import dtc
import dtc.privacy

BATCH, LENGTH, VOCABULARY, WIDTH, HIDDEN, STEPS, RATE = 8, 5, 11, 8, 12, 4, 0.5
MESHES = (None, "dp=2", "tp=2", "dp=2,tp=2", "dp=8", "fsdp=2")
TOLERANCE = 1e-9


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.hidden = torch.nn.Linear(WIDTH, HIDDEN)
        self.head = torch.nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, tokens):
        return self.head(torch.tanh(self.hidden(self.norm(self.embedding(tokens)))))


def loss_of(model, batch):
    return torch.nn.functional.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["labels"].flatten())


def batches():
    generator = torch.Generator().manual_seed(7)
    draw = lambda: torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=generator)
    return [{"tokens": draw(), "labels": draw()} for _ in range(STEPS)]


def model_of(weights=None):
    torch.manual_seed(3)
    model = Model().double()
    if weights is not None:
        model.load_state_dict(weights)
    return model


def opacus(clip, weights):
    """The parameters after each step, and how many samples were clipped."""
    model = GradSampleModule(model_of(weights), loss_reduction="mean")
    optimizer = DPOptimizer(torch.optim.SGD(model.parameters(), lr=RATE), noise_multiplier=0.0, max_grad_norm=clip,
                            expected_batch_size=BATCH)
    found, clipped = [], 0
    for batch in batches():
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        norms = torch.stack([p.grad_sample.flatten(1).norm(dim=1) for p in model.parameters()]).norm(dim=0)
        clipped += int((norms > clip).sum())
        optimizer.step()
        found.append({name.removeprefix("_module."): value.detach().clone() for name, value in model.state_dict().items()})
    return found, clipped


def compare(clip):
    weights = model_of().state_dict()
    expected, clipped = opacus(clip, weights)
    worst = 0.0
    for mesh in MESHES:
        options = {"zero": 3} if mesh == "fsdp=2" else {}
        step = dtc.compile(model_of(weights), loss_of, batches()[0], mesh=mesh, threads=1, dp_sgd=f"clip={clip},noise=0",
                           optimizer=dtc.SGD(lr=RATE, momentum=0.0, weight_decay=0.0), **options)
        for batch, wanted in zip(batches(), expected):
            step(batch)
            for name, value in step.state_dict().items():
                worst = max(worst, float((value - wanted[name]).abs().max()))
    print(f"clip {clip}: {clipped} of {BATCH * STEPS} samples are clipped; {len(MESHES)} meshes differ by {worst:.2g} at most")
    assert worst < TOLERANCE, worst


def check_epsilon():
    import dp_accounting

    for noise, batch, samples, delta, steps in ((1.1, 256, 60000, 1e-5, 1000), (0.9, 100, 5000, 1e-4, 50), (2.0, 64, 64, 1e-5, 30)):
        accountant = dtc.privacy.Accountant(noise, batch, samples, delta)
        reference = dp_accounting.rdp.RdpAccountant()
        for _ in range(steps):
            reference.compose(dp_accounting.PoissonSampledDpEvent(batch / samples, dp_accounting.GaussianDpEvent(noise)))
        found, wanted = accountant.epsilon(steps), reference.get_epsilon(delta)
        print(f"noise {noise}, {batch} of {samples}, {steps} steps: epsilon {found:.6f}, dp-accounting step by step {wanted:.6f}")
        assert abs(found - wanted) < 1e-9 * wanted


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    check_epsilon()
    for clip in (1.3, 0.05):
        compare(clip)
