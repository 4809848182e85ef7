"""The tiny models that capture.py captures: some written by hand, some of transformers. Each function returns the model, its
loss and an example batch. No two sizes of a model are equal where a mistake could otherwise hide."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from dtc.torch import differentiate

BATCH, SEQ = 4, 8


class Mlp(nn.Module):
    """Two hidden layers, and a buffer that scales the features."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 6), persistent=False)
        self.layers = nn.ModuleList([nn.Linear(6, 10), nn.Linear(10, 14)])
        self.head = nn.Linear(14, 5)

    def forward(self, features):
        x = features * self.scale
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x)


def mlp():
    def loss(model, batch):
        return F.cross_entropy(model(batch["features"]), batch["labels"])
    return Mlp(), loss, {"features": torch.zeros(BATCH, 6), "labels": torch.zeros(BATCH, dtype=torch.long)}


class Norm(nn.Module):
    """An RMS norm as it is written by hand."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Block(nn.Module):
    """One weight for queries, keys and values; attention by its parts in every other layer."""

    def __init__(self, width, heads, by_parts):
        super().__init__()
        self.heads, self.by_parts = heads, by_parts
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 20), nn.Linear(20, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (each.view(split).transpose(1, 2) for each in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        if self.by_parts:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
            hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
            y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Decoder(nn.Module):
    """A decoder with learned positions and a head that is the embedding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(29, 12), nn.Embedding(11, 12)
        self.blocks = nn.ModuleList([Block(12, 2, by_parts) for by_parts in (False, True)])
        self.norm = nn.LayerNorm(12)
        self.head = nn.Linear(12, 29, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def decoder():
    def loss(model, batch):
        logits = model(batch["tokens"])
        return F.cross_entropy(logits.view(-1, logits.size(-1)), batch["labels"].view(-1), ignore_index=-1)
    shape = BATCH, SEQ
    return Decoder(), loss, {"tokens": torch.zeros(shape, dtype=torch.long), "labels": torch.zeros(shape, dtype=torch.long)}


class Operators(nn.Module):
    """One use or more of the operators that other models do not have."""

    def __init__(self):
        super().__init__()
        self.weight, self.table = nn.Parameter(torch.ones(6, 7)), nn.Parameter(torch.ones(9, 7))
        self.scale, self.frozen = nn.Parameter(torch.ones(7)), nn.Parameter(torch.ones(7), requires_grad=False)
        self.origin = nn.Parameter(torch.zeros(7))
        self.register_buffer("shift", torch.ones(7))

    def begin(self):
        """Makes some of the random parameters zero, where activations have two derivatives."""
        with torch.no_grad():
            self.origin[::2] = 0

    def shapes(self, x):
        """[B, 7] -> [B, 7]"""
        x = torch.stack([x, 2 - x, -x], dim=1)          # [B, 3, 7]
        first, rest = x.split([1, 2], dim=1)
        x = torch.cat([rest, first.expand(-1, 2, -1)], dim=1)                   # [B, 4, 7]
        x = x.permute(2, 0, 1).flatten(1).unflatten(1, (-1, 4)).transpose(0, 1)  # [B, 7, 4]
        x = F.pad(x, (1, 2, -1, 0))                                             # [B, 6, 7]
        return torch.einsum("bij,ij->bj", x, self.weight) + x[:, 1::2, 3].sum(-1, keepdim=True) + x[:, -1].squeeze(0)

    def choices(self, x, labels):
        known = torch.arange(7) < 4
        x = torch.where(known & (x > 0), x, 0.5 * x).masked_fill(~known, 0.25)
        x = x.clamp(min=-1.5).clamp(max=torch.tensor(1.25)) + torch.maximum(x, self.scale) - 2 * torch.minimum(x, self.frozen)
        weights = torch.where((labels == 2) | (labels >= 5), labels, 1).unsqueeze(-1)
        return x * weights + (labels.unsqueeze(-1) != 1).sum(-1, keepdim=True)

    def limits(self, x):
        """[B, 7] -> [B, 7], with activations at zero, queries that see no key, and indices from the end."""
        zeros = F.elu(self.origin, 0.5) - F.leaky_relu(self.origin, 0.1) + self.origin.clamp(min=0)
        zeros = zeros + 2 * torch.clamp(self.origin, max=torch.tensor(0.0))
        rows, seen = x.tanh()[:, None, :, None], torch.ones(7, 7, dtype=torch.bool).tril(-1)
        bias = torch.zeros(7, 7, dtype=x.dtype).masked_fill(~seen, float("-inf"))
        y = F.scaled_dot_product_attention(rows, rows, rows, seen) - F.scaled_dot_product_attention(2 * rows, rows, 3 * rows, bias)
        ends = self.table[torch.tensor([0, -1])].sum(0) - 2 * self.table[torch.tensor([-2, -1])].sum(0)
        return x + 0.1 * zeros + y.flatten(1) + ends + 0.1 * x.var(dim=1, unbiased=False, keepdim=True)

    def forward(self, features, labels):
        x = features.matmul(self.weight)
        x = self.shapes(x) * self.shift
        x = self.limits(self.choices(x, labels)) + self.table[labels] + F.embedding(labels, self.table)
        x = F.silu(x) + torch.sigmoid(x) * F.softplus(x) + F.hardswish(x) - F.leaky_relu(x, 0.1) + F.elu(x)
        x = x + (x.pow(2) + 1).pow(-1.5) + torch.exp(-x.abs()) + (x.square() + 1).log() + 1 / (1 + x ** 2)
        x = F.rms_norm(x, (7,), self.scale) + x.softmax(0) + F.normalize(x, dim=-1) + x.std(dim=1, keepdim=True)
        x = x + x.amax(dim=-1, keepdim=True) + x.mean() + torch.logsumexp(x, dim=1, keepdim=True)
        x = x + torch.baddbmm(x.unsqueeze(1), x.unsqueeze(1), self.table[:7].unsqueeze(0).expand(x.shape[0], -1, -1)).squeeze(1)
        return x + x.log_softmax(-1).gather(1, labels.unsqueeze(1))


def operators():
    def loss(model, batch):
        y = model(batch["features"], batch["labels"])
        entropy = F.cross_entropy(y, batch["labels"], label_smoothing=0.1, reduction="sum", ignore_index=6)
        return 0.01 * (entropy + F.mse_loss(y, batch["features"][:, :1].expand(-1, 7)) + F.nll_loss(y.log_softmax(1), batch["labels"]))
    return Operators(), loss, {"features": torch.zeros(BATCH, 6), "labels": torch.zeros(BATCH, dtype=torch.long)}


def draw_mask(shape, generator):
    """A mask of tokens that are no padding: padding is after some of them, before others, and nowhere in the first sample."""
    lengths = torch.randint(2, shape[1], (shape[0], 1), generator=generator)
    lengths[0] = shape[1]
    places = torch.arange(shape[1])
    return torch.where(torch.arange(shape[0])[:, None] % 2 == 0, places < lengths, places >= shape[1] - lengths).int()


def draw_positions(shape, generator):
    """Positions of documents that follow each other in a sample, which each begin with 0."""
    starts = torch.rand(shape, generator=generator) < 0.3
    starts[:, 0] = True
    places = torch.arange(shape[1]).expand(shape)
    return (places - torch.where(starts, places, 0).cummax(1).values).int()


# How inputs are drawn that are no classes, by their names.
DRAWS = {"attention_mask": draw_mask, "position_ids": draw_positions}


def of_transformers(name, kind="CausalLM", attention="sdpa", pad=None, inputs=(), **settings):
    """A model of transformers with its own loss, which shifts the labels of decoders by one. `inputs` are arguments of the model
    that the batch has beside tokens and labels."""
    import transformers

    def make():
        config = getattr(transformers, name + "Config")(
            **settings, bos_token_id=0, eos_token_id=0, pad_token_id=pad)
        config._attn_implementation = attention
        config._experts_implementation = "eager"  # grouped_mm of PyTorch has no f64
        shape = BATCH, SEQ

        def loss(model, batch):
            more = {each: batch[each] for each in inputs}
            return model(input_ids=batch["tokens"], labels=batch["labels"], use_cache=False, **more).loss if more else \
                model(input_ids=batch["tokens"], labels=batch["labels"]).loss
        return getattr(transformers, f"AutoModelFor{kind}").from_config(config), loss, {
            each: torch.zeros(shape, dtype=torch.long) for each in ("tokens", "labels", *inputs)}
    return make


def vit():
    """Images of 3 x 9 x 15 in patches of 3 x 3, and a class for each."""
    import transformers

    config = transformers.ViTConfig(
        hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, image_size=(9, 15), patch_size=3,
        num_labels=5, qkv_bias=False, **NO_DROPOUT)

    def loss(model, batch):
        return F.cross_entropy(model(pixel_values=batch["pixels"]).logits, batch["labels"])
    return transformers.ViTForImageClassification(config), loss, {
        "pixels": torch.zeros(BATCH, 3, 9, 15), "labels": torch.zeros(BATCH, dtype=torch.long)}


def of_images(model, channels=3, size=(24, 19)):
    """A model of transformers that finds a class for each image, and images of no square."""
    def loss(model, batch):
        return F.cross_entropy(model(pixel_values=batch["pixels"]).logits, batch["labels"])
    return model, loss, {"pixels": torch.zeros(BATCH, channels, *size), "labels": torch.zeros(BATCH, dtype=torch.long)}


def resnet(layer_type="basic"):
    """Norms of batches, whose running statistics change, and a maximum over windows that overlap."""
    import transformers

    return of_images(transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=6, hidden_sizes=[8, 12], depths=[2, 1], layer_type=layer_type, num_labels=5)))


def resnet_eval():
    """Norms by running statistics, with bottlenecks."""
    model, loss, batch = resnet("bottleneck")

    def begin():
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name.endswith("running_var"):
                    buffer.abs_().add_(0.2)
    model.begin, model.train = begin, lambda mode=True: model
    for module in model.modules():
        module.training = False
    return model, loss, batch


def convnext():
    """Depthwise convolutions of 7 x 7, and patches."""
    import transformers

    return of_images(transformers.ConvNextForImageClassification(transformers.ConvNextConfig(
        patch_size=2, num_stages=2, hidden_sizes=[6, 10], depths=[1, 2], layer_scale_init_value=0.5, num_labels=5)))


def whisper():
    """The encoder of Whisper on 18 frames of 7 mel bands: convolutions along time alone."""
    import transformers

    config = transformers.WhisperConfig(
        num_mel_bins=7, max_source_positions=9, d_model=16, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=20,
        decoder_layers=1, decoder_attention_heads=4, vocab_size=29, classifier_proj_size=6, num_labels=5, dropout=0.0,
        pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=0)

    def loss(model, batch):
        return F.cross_entropy(model(input_features=batch["features"]).logits, batch["labels"])
    return transformers.WhisperForAudioClassification(config), loss, {
        "features": torch.zeros(BATCH, 7, 18), "labels": torch.zeros(BATCH, dtype=torch.long)}


class Windows(nn.Module):
    """Convolutions and poolings as other models do not have them: groups, dilations, transposed, along one and three dimensions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2))
        self.norm = nn.BatchNorm2d(6, momentum=0.3, eps=1e-3)
        self.plain_norm = nn.BatchNorm2d(6, affine=False, track_running_stats=False)
        self.groups = nn.Conv2d(6, 10, 3, padding="same", groups=2, bias=False)
        self.back = nn.ConvTranspose2d(10, 4, 3, stride=2, padding=1, output_padding=(1, 0), groups=2)
        self.line, self.volume = nn.Conv1d(4, 5, 3, stride=2), nn.Conv3d(1, 2, (2, 3, 3), padding=(0, 1, 1))
        self.head = nn.Linear(10, 5)

    def forward(self, x):
        x = self.first(x)                                                              # [B, 6, 6, 11]
        x = torch.tanh(self.norm(x)) + self.plain_norm(x)
        x = F.max_pool2d(x, 3, stride=2, padding=1) + F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)
        x = self.back(torch.tanh(self.groups(x)))                                      # [B, 4, 6, 11]
        x = F.avg_pool2d(x, (2, 3), stride=1, padding=(1, 1)) + F.avg_pool2d(x, (2, 1), stride=1, padding=(1, 0))
        x = torch.tanh(self.volume(x.unsqueeze(1)))                                    # [B, 2, 3, 7, 11]
        x = F.adaptive_avg_pool2d(x.flatten(1, 2)[:, :4], (7, 1)).squeeze(-1)          # [B, 4, 7]
        x = self.line(F.max_pool1d(x, 2, stride=1, dilation=1) + F.avg_pool1d(x, 2, stride=1))  # [B, 5, 2]
        return self.head(x.flatten(1))


class Ceilings(nn.Module):
    """Poolings whose last windows go beyond the padding."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Conv2d(3, 6, 3), nn.Linear(18, 5)

    def forward(self, x):
        x = torch.tanh(self.first(x))                                                  # [B, 6, 9, 8]
        x = F.max_pool2d(x, 3, stride=(3, 2), padding=1, ceil_mode=True)               # [B, 6, 4, 5]
        y = F.avg_pool2d(x, (3, 2), stride=(3, 2), padding=(1, 0), ceil_mode=True)     # [B, 6, 2, 3]
        y = y + F.avg_pool2d(x, (3, 2), stride=(3, 2), padding=(1, 0), ceil_mode=True, count_include_pad=False)
        y = y + F.avg_pool2d(x, (3, 2), stride=(3, 2), padding=(1, 0), ceil_mode=True, divisor_override=5)
        return self.head(y[:, :, 1].flatten(1) + y[:, :, 0].flatten(1))


def ceilings():
    def loss(model, batch):
        return F.cross_entropy(model(batch["pixels"]), batch["labels"])
    return Ceilings(), loss, {"pixels": torch.zeros(BATCH, 3, 11, 10), "labels": torch.zeros(BATCH, dtype=torch.long)}


def windows():
    def loss(model, batch):
        return F.cross_entropy(model(batch["pixels"]), batch["labels"])
    return Windows(), loss, {"pixels": torch.zeros(BATCH, 3, 11, 9), "labels": torch.zeros(BATCH, dtype=torch.long)}


def t5():
    """An encoder of 8 tokens and a decoder of 6."""
    import transformers

    config = transformers.T5Config(
        vocab_size=29, d_model=16, d_kv=5, d_ff=20, num_layers=2, num_decoder_layers=2, num_heads=4, dropout_rate=0.0,
        relative_attention_num_buckets=6, relative_attention_max_distance=7, feed_forward_proj="gated-gelu",
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, tie_word_embeddings=False)

    def loss(model, batch):
        logits = model(input_ids=batch["tokens"], decoder_input_ids=batch["decoder_tokens"], use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
    return transformers.T5ForConditionalGeneration(config), loss, {
        "tokens": torch.zeros(BATCH, SEQ, dtype=torch.long), "decoder_tokens": torch.zeros(BATCH, SEQ - 2, dtype=torch.long),
        "labels": torch.zeros(BATCH, SEQ - 2, dtype=torch.long)}


class Mixture(nn.Module):
    """Experts written by hand, in two groups: a token goes to experts of one group, by scores that are sigmoids with a bias, and
    a sum of all experts that have an odd number is weighed by how often these were chosen."""

    def __init__(self):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(12), nn.Linear(12, 6)
        self.bias = nn.Parameter(torch.zeros(6), requires_grad=False)
        self.up, self.down = nn.Parameter(torch.ones(6, 10, 12)), nn.Parameter(torch.ones(6, 12, 10))
        self.up_bias = nn.Parameter(torch.ones(6, 10))
        self.head = nn.Linear(12, 5)

    def route(self, x):
        scores = self.gate(x).sigmoid()                                                     # [T, 6]
        ranks = scores + self.bias
        groups = ranks.view(-1, 2, 3).topk(2, dim=-1)[0].sum(dim=-1)                        # [T, 2]
        group = torch.topk(groups, k=1, dim=-1, sorted=False)[1]
        seen = torch.zeros_like(groups).scatter_(1, group, 1)
        seen = seen.unsqueeze(-1).expand(-1, 2, 3).reshape(-1, 6)
        chosen = torch.topk(ranks.masked_fill(~seen.bool(), 0.0), k=2, dim=-1, sorted=False)[1]
        weights = scores.gather(1, chosen)
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-3)
        return chosen, weights * 1.5, scores

    def forward(self, x):
        from dtc.torch import experts

        shape = x.shape
        x = x.reshape(-1, shape[-1])
        chosen, weights, scores = self.route(self.norm(x))
        y = experts(x, chosen, weights, lambda rows, product: F.relu(product(rows, self.up) + self.up_bias[:, None, None]), self.down)
        # One expert after the other, for all tokens.
        for number in range(1, 6, 2):
            weight = (weights * (chosen == number)).sum(-1, keepdim=True)
            y = y + F.linear(torch.tanh(F.linear(x, self.up[number])), self.down[number]) * weight
        counts = torch.histc(chosen.reshape(-1).float(), bins=6, min=0, max=5)
        return self.head(x + y).view(*shape[:-1], 5), (counts * scores.sum(0)).sum() / x.shape[0]


def mixture():
    def loss(model, batch):
        logits, balance = model(batch["features"])
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten()) + 0.01 * balance
    return Mixture(), loss, {"features": torch.zeros(BATCH, 7, 12), "labels": torch.zeros(BATCH, 7, dtype=torch.long)}


SIZES = dict(vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=32)
GEMMA = dict(SIZES, num_key_value_heads=2, head_dim=10, query_pre_attn_scalar=6, sliding_window=5,
             layer_types=["sliding_attention", "full_attention"])
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
LATENT = dict(num_key_value_heads=4, q_lora_rank=10, kv_lora_rank=9, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=5,
              n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=12, n_shared_experts=1, first_k_dense_replace=1)


@differentiate
class Cubed(torch.autograd.Function):
    """The third power, which keeps its operand for backward()."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(context, gradient):
        x, = context.saved_tensors
        return 3 * x ** 2 * gradient


@differentiate
class Scaled(torch.autograd.Function):
    """A product that keeps its factor, in the newer form."""

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(context, inputs, output):
        context.factor = inputs[1]

    @staticmethod
    def backward(context, gradient):
        return context.factor * gradient, None


class Functions(nn.Module):
    """Functions with a backward() of their own, products of complex numbers, and repeated rows."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 8), nn.Linear(16, 5)

    def forward(self, x):
        x = torch.view_as_complex(Scaled.apply(Cubed.apply(self.up(x)), 0.5).unflatten(-1, (4, 2)))
        angles = torch.arange(4, dtype=self.up.weight.dtype)
        turned = torch.polar(torch.full_like(angles, 0.7), angles).to(x.device)[None] * x.conj()
        return self.down(torch.view_as_real(2.0 * turned + x * turned).flatten(1).repeat(1, 2))


def functions():
    return Functions(), mlp()[1], mlp()[2]


class LayerNorm(nn.Module):
    """A layer norm as it is written by hand, in three ways."""

    def __init__(self, width, way):
        super().__init__()
        self.way, self.weight, self.bias = way, nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        if self.way == "distances":
            return self.weight * (x - mean) / torch.sqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-5) + self.bias
        if self.way == "var":
            return (x - mean) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * self.weight + self.bias
        variance = torch.clamp((x * x).mean(-1, keepdim=True) - mean * mean, min=0)
        return self.bias + (x - mean) * (torch.rsqrt(variance + 1e-5) * self.weight)


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(29, 16), nn.Linear(16, 29)
        self.layers = nn.ModuleList([nn.Sequential(LayerNorm(16, way), nn.Linear(16, 16), nn.Tanh())
                                     for way in ("distances", "var", "squares")])

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def norms():
    def loss(model, batch):
        return F.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["labels"].flatten())
    return Norms(), loss, {name: torch.zeros(BATCH, SEQ, dtype=torch.long) for name in ("tokens", "labels")}


class Activations(nn.Module):
    """Activations that are captured by their parts, each on a layer of its own, with values on both sides of their bounds."""

    def __init__(self):
        super().__init__()
        self.functions = (F.relu6, F.hardtanh, F.celu, F.selu, F.mish, F.logsigmoid, F.softsign, F.softshrink, F.hardshrink, F.hardswish,
                          lambda x: x * torch.sign(x), torch.expm1, lambda x: torch.log1p(x.square()), lambda x: F.celu(40 * x, 0.5) / 40,
                          lambda x: x * torch.log1p((x > 0).to(x.dtype) - 1).exp())  # the logarithm of 0
        self.layers = nn.ModuleList(nn.Linear(6, 7) for _ in self.functions)
        self.head = nn.Linear(7, 5)

    def forward(self, features):
        return self.head(sum(function(3 * layer(features)) for function, layer in zip(self.functions, self.layers, strict=True)))


def activations():
    def loss(model, batch):
        return F.cross_entropy(model(batch["features"]), batch["labels"])
    return Activations(), loss, {"features": torch.zeros(BATCH, 6), "labels": torch.zeros(BATCH, dtype=torch.long)}


MODELS = {
    "mlp": mlp,
    "decoder": decoder,
    "operators": operators,
    "activations": activations,
    "gpt2": of_transformers("GPT2", vocab_size=29, n_positions=20, n_embd=16, n_layer=2, n_head=4, n_inner=20,
                            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "llama": of_transformers("Llama", **SIZES, num_key_value_heads=2),
    "qwen3": of_transformers("Qwen3", **SIZES, num_key_value_heads=2, head_dim=10, tie_word_embeddings=True),
    "mistral": of_transformers("Mistral", **SIZES, num_key_value_heads=2, sliding_window=5),
    "phi3": of_transformers("Phi3", **SIZES, num_key_value_heads=2, partial_rotary_factor=0.5, tie_word_embeddings=False),
    # One product gives the queries, keys and values of each head. Half of a head is rotated.
    "gpt_neox": of_transformers("GPTNeoX", **SIZES, rotary_pct=0.5),
    # Soft caps of scores and logits, in attention by its parts.
    "gemma2": of_transformers("Gemma2", attention="eager", **GEMMA, attn_logit_softcapping=3.0, final_logit_softcapping=2.0),
    "gemma3": of_transformers("Gemma3Text", **GEMMA),
    "bert": of_transformers("Bert", kind="MaskedLM", **SIZES, **NO_DROPOUT),
    "roberta": of_transformers("Roberta", kind="MaskedLM", attention="eager", pad=0, **SIZES, **NO_DROPOUT),
    "vit": vit,
    "resnet": resnet,
    "resnet-eval": resnet_eval,
    "convnext": convnext,
    "whisper": whisper,
    "norms": norms,
    "functions": functions,
    "windows": windows,
    "ceilings": ceilings,
    "t5": t5,
    "mixtral": of_transformers("Mixtral", **SIZES, num_key_value_heads=2, num_local_experts=6, num_experts_per_tok=2),
    # The loss of the balance of experts, and a layer without experts.
    "qwen3_moe": of_transformers("Qwen3Moe", **SIZES, num_key_value_heads=2, head_dim=10, num_experts=6, num_experts_per_tok=3,
                                 moe_intermediate_size=12, mlp_only_layers=[0], norm_topk_prob=False,
                                 output_router_logits=True, router_aux_loss_coef=0.1),
    "mixture": mixture,
    # Sinks, windows, and experts with biases whose sides follow each other by turns.
    "gpt_oss": of_transformers("GptOss", attention="eager", **SIZES, num_key_value_heads=2, head_dim=10, num_local_experts=6,
                               num_experts_per_tok=2, sliding_window=5, layer_types=["sliding_attention", "full_attention"]),
    # Latent attention, and experts of the best groups beside one for all tokens.
    "deepseek_v3": of_transformers("DeepseekV3", **SIZES, **LATENT, n_group=3, topk_group=2),
    # Rotary positions of complex numbers, and latent attention without groups of experts.
    "deepseek_v2": of_transformers("DeepseekV2", **SIZES, **(LATENT | {"kv_lora_rank": 10}), topk_method="greedy"),
    # Padding that depends on the batch; and documents that follow each other in a sample.
    "llama-padded": of_transformers("Llama", inputs=("attention_mask",), **SIZES, num_key_value_heads=2),
    "bert-padded": of_transformers("Bert", kind="MaskedLM", inputs=("attention_mask",), **SIZES, **NO_DROPOUT),
    "mixtral-padded": of_transformers("Mixtral", inputs=("attention_mask",), attention="eager", **SIZES, num_key_value_heads=2,
                                      num_local_experts=6, num_experts_per_tok=2),
    # A bias of the distance of positions (ALiBi).
    "mpt": of_transformers("Mpt", attention="eager", vocab_size=29, d_model=16, n_layers=2, n_heads=4, max_seq_len=20),
    # The same, and an activation with a backward() of its own.
    "bloom": of_transformers("Bloom", attention="eager", vocab_size=29, hidden_size=16, n_layer=2, n_head=4, hidden_dropout=0.0,
                             attention_dropout=0.0),
    "mistral-packed": of_transformers("Mistral", inputs=("position_ids",), **SIZES, num_key_value_heads=2, sliding_window=3),
    "qwen3-packed": of_transformers("Qwen3", inputs=("position_ids",), **SIZES, num_key_value_heads=2, head_dim=10),
}


class Tied(nn.Module):
    """A parameter of two modules that is made before them, and a buffer that is not finite."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(2))
        shared = nn.Parameter(torch.ones(4, 4))
        for layer in self.layers:
            layer.weight = shared
        self.register_buffer("hidden", torch.tensor([0.0, 0.0, 0.0, float("-inf")]), persistent=False)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return (x + self.hidden).softmax(-1).square()


class Small(nn.Module):
    """A linear layer, a sum that is not saved, and a step that a refused model takes."""

    def __init__(self, step, dtype=torch.float32):
        super().__init__()
        self.step, self.linear = step, nn.Linear(4, 4, dtype=dtype)
        self.register_buffer("total", torch.zeros(()), persistent=False)

    def forward(self, x):
        return self.step(self, x)


def without_gradient(model, x):
    with torch.no_grad():
        scale = model.linear(x)
    return scale * x


class Reversed(torch.autograd.Function):
    """A gradient of the model's own."""

    @staticmethod
    def forward(context, x):
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        return -gradient


def with_hook(model, x):
    y = model.linear(x)
    y.register_hook(lambda gradient: 0.1 * gradient)
    return y


def detached_in_region(model, x):
    with torch.autocast("cpu", enabled=False):
        return model.linear(x) * model.linear(x).detach_()


def add_in_place(model, x):
    model.total.add_(x.sum())
    return model.linear(x)


HEAD = nn.Linear(4, 2)


# Models that cannot be captured, with a part of the error, and the loss if it is no mean.
REFUSED = {
    "no_grad": (lambda: Small(without_gradient), "torch.no_grad() is around values that depend on trained parameters"),
    "detach": (lambda: Small(lambda model, x: model.linear(x).detach() * model.linear(x)), "detach() is of a value"),
    "counter": (lambda: Small(add_in_place), "changes 'total'"),
    "number": (lambda: Small(lambda model, x: model.linear(x) * model.linear(x).sum().item()), "depends on the data"),
    "branch": (lambda: Small(lambda model, x: model.linear(x) if x.sum() > 0 else x), "needs the elements of a tensor"),
    "loop": (lambda: Small(lambda model, x: model.linear(x)[torch.where(x.topk(2).indices == 1)[0]]), "dtc.torch.experts()"),
    "bf16": (lambda: Small(lambda model, x: model.linear(x.bfloat16()).float(), torch.bfloat16), "capture model.float()"),
    "function": (lambda: Small(lambda model, x: Reversed.apply(model.linear(x))), "'Reversed' is a torch.autograd.Function"),
    "hook": (lambda: Small(with_hook), "register_hook() changes a gradient"),
    "region": (lambda: Small(detached_in_region), "detach() is of a value"),
    "complex": (lambda: Small(lambda model, x: torch.fft.fft(model.linear(x)).abs()), "gives elements of torch.complex64"),
    "modulus": (lambda: Small(lambda model, x: torch.polar(model.linear(x), x).abs()), "'abs' of complex numbers has no rule"),
    "logarithm": (lambda: Small(lambda model, x: torch.log(torch.complex(model.linear(x), x))), "'log' of complex numbers has no rule"),
    "head": (lambda: Small(lambda model, x: model.linear(x)), "used without being a parameter of the model",
             lambda model, batch: HEAD(model(batch["x"])).mean()),
}
