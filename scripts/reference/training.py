"""Training with PyTorch's own losses, optimizers and clipping, as the settings of a case ask for it."""

import dataclasses
import fnmatch

import torch

ADAMW = {
    "lr": 1e-2,
    "beta1": 0.9,
    "beta2": 0.95,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
}


@dataclasses.dataclass
class Case:
    """What a model is trained with: the words of expected.json."""
    loss_options: dict = dataclasses.field(default_factory=dict)
    optimizer: dict = dataclasses.field(default_factory=lambda: dict(ADAMW))
    freeze: list = dataclasses.field(default_factory=list)
    param_groups: list = dataclasses.field(default_factory=list)
    # How the case's samples differ from the model's: a function of the labels and a generator.
    change_labels: object = None

    def settings(self):
        """Those that are not as they are without being asked for."""
        named = {"loss_options": self.loss_options, "freeze": self.freeze,
                 "param_groups": self.param_groups}
        return {name: value for name, value in named.items() if value}

    def changes_gradients(self):
        return bool(self.loss_options or self.freeze or self.change_labels)


class Lion(torch.optim.Optimizer):
    """Chen et al., "Symbolic Discovery of Optimization Algorithms" (arXiv:2302.06675), algorithm 2, line by line."""

    def __init__(self, groups, lr, betas):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            eta, lam = group["lr"], group["weight_decay"]
            for theta in group["params"]:
                g = theta.grad
                m = self.state[theta].setdefault("m", torch.zeros_like(theta))
                c = beta1 * m + (1 - beta1) * g
                theta.copy_(theta - eta * (torch.sign(c) + lam * theta))
                self.state[theta]["m"] = beta2 * m + (1 - beta2) * g


def make_optimizer(model, case):
    """Freezes what the case freezes and makes an optimizer of the rest, each parameter a group of its own."""
    options = case.optimizer
    groups = []
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(fnmatch.fnmatchcase(name, p) for p in case.freeze))
        if not parameter.requires_grad:
            continue
        decay = options["weight_decay"] if parameter.dim() >= 2 else 0.0
        scale = 1.0
        for text in case.param_groups:
            pattern, _, values = text.rpartition(":")
            if fnmatch.fnmatchcase(name, pattern):
                values = dict(value.split("=") for value in values.split(","))
                decay = float(values.get("weight_decay", decay))
                scale = float(values.get("lr_scale", 1.0))
                break
        groups.append({"params": [parameter], "weight_decay": decay, "lr": options["lr"] * scale})
    name, lr = options.get("name", "adamw"), options["lr"]
    if name == "sgd":
        return torch.optim.SGD(groups, lr=lr, momentum=options["momentum"])
    betas = (options["beta1"], options["beta2"])
    if name == "lion":
        return Lion(groups, lr, betas)
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[name]
    return kind(groups, lr=lr, betas=betas, eps=options["eps"])


def outputs_of(model, samples):
    """Of an encoder of text, segments of -1 are padding."""
    if "images" in samples:
        return model(pixel_values=samples["images"].to(model.dtype))
    tokens = samples["tokens"].long()
    if "segments" not in samples:
        return model(input_ids=tokens, use_cache=False)
    return model(input_ids=tokens, attention_mask=(samples["segments"] >= 0).long())


def logits_of(model, samples):
    return outputs_of(model, samples).logits


def loss_of(model, case, samples):
    # The loss is taken from the logits, for transformers would shift the labels once more.
    outputs = outputs_of(model, samples)
    logits = outputs.logits.flatten(0, -2)
    labels = samples["labels"].long().flatten()
    ignored = case.loss_options.get("ignore_index", -100)
    loss = torch.nn.functional.cross_entropy(
        logits, labels, ignore_index=ignored,
        label_smoothing=case.loss_options.get("label_smoothing", 0.0))
    if "z_loss" in case.loss_options:
        squares = torch.logsumexp(logits, dim=-1).square()
        loss = loss + case.loss_options["z_loss"] * squares[labels != ignored].mean()
    # A mixture of experts has a balance loss where its configuration asks for it.
    if getattr(outputs, "aux_loss", None) is not None:
        loss = loss + model.config.router_aux_loss_coef * outputs.aux_loss
    return loss


def batches_of(samples, size):
    for tensors in zip(*(tensor.split(size) for tensor in samples.values())):
        yield dict(zip(samples, tensors))


def train(model, case, samples, batch):
    """Trains for a step on each batch. Returns the losses, the norms of the gradients before clipping, the gradients of
    the first step before clipping and the parameters at the end."""
    optimizer = make_optimizer(model, case)
    model.train()
    losses, norms, gradients = [], [], None
    for batch_of_samples in batches_of(samples, batch):
        loss = loss_of(model, case, batch_of_samples)
        optimizer.zero_grad()
        loss.backward()
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if gradients is None:
            # A parameter that the model does not use has none.
            gradients = {name: p.grad.clone() for name, p in trained.items() if p.grad is not None}
        norms.append(float(
            torch.nn.utils.clip_grad_norm_(trained.values(), case.optimizer["clip_norm"])))
        losses.append(float(loss.detach()))
        optimizer.step()
    parameters = {name: p.detach().clone() for name, p in model.named_parameters()}
    return losses, norms, gradients, parameters


@torch.no_grad()
def evaluate(model, case, samples, batch):
    """The loss of each batch, and how many of its labels count."""
    model.eval()
    ignored = case.loss_options.get("ignore_index", -100)
    return [{"loss": float(loss_of(model, case, batch_of_samples)),
             "counted": int((batch_of_samples["labels"] != ignored).sum())}
            for batch_of_samples in batches_of(samples, batch)]
