"""What the routers of a mixture of experts choose, and how clearly they do."""

import functools

import torch


class Margin:
    """While open, records the least distance of a score that a router chooses from one that it does not."""

    def __init__(self):
        self.margin = float("inf")

    def __enter__(self):
        self.topk, torch.topk = torch.topk, self._choose
        return self

    def __exit__(self, *_):
        torch.topk = self.topk

    def _choose(self, scores, k, dim=-1, **options):
        if k < scores.shape[dim]:
            best = self.topk(scores.detach(), k + 1, dim=dim).values.unbind(dim)
            self.margin = min(self.margin, float((best[k - 1] - best[k]).min()))
        return self.topk(scores, k, dim=dim, **options)


class Routing(Margin):
    """While open, also records what a model's routers choose in its first pass, and of all passes the loss that balances
    the experts."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.choices, self.count, self.balance = {}, 0, []

    def __enter__(self):
        self.hooks = [module.register_forward_hook(functools.partial(self._record, name))
                      for name, module in self.model.named_modules() if type(module).__name__.endswith("Router")]
        self.hooks.append(self.model.register_forward_hook(self._record_balance))
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        for hook in self.hooks:
            hook.remove()

    def has_idle_expert(self):
        return any(len(experts.unique()) < self.count for key, experts in self.choices.items() if key.endswith("experts"))

    def _record(self, name, _router, _arguments, result):
        logits, weights, experts = result
        self.count = logits.shape[-1]
        layer = name.rsplit(".", 2)[0].removeprefix("model.")
        if layer + ".experts" not in self.choices:
            self.choices[layer + ".experts"] = experts.int()
            self.choices[layer + ".weights"] = weights.detach()

    def _record_balance(self, _model, _arguments, result):
        if getattr(result, "aux_loss", None) is not None:
            self.balance.append(float(result.aux_loss.detach()))
