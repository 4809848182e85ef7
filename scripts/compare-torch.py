#!/usr/bin/env python3
"""Trains a GPT-2 or a Llama with PyTorch as fast as it can without code of one's own, to compare: torch.compile, scaled-dot-product
attention, fused AdamW; in bf16, f32 parameters under autocast. The last line is "N tokens/s".

    compare-torch.py --layers 12 --heads 12 --width 768 --batch 32
    compare-torch.py --family llama --layers 16 --heads 32 --key-value-heads 8 --width 2048 --intermediate 8192 \
        --vocabulary 128256 --sequence 2048 --batch 8
    compare-torch.py --layers 48 --heads 25 --width 1600 --batch 8 --accumulate 8    # 8 batches for each step
    compare-torch.py --device cpu --dtype f32 --batch 4 --sequence 512 --steps 5    # beside dtc-benchmark-train-gpt2

The host waits for a GPU after every fifth step only. Where a GPU's memory is too small, the batch is halved until it
fits. Exits with 77 where there is no PyTorch or no such
device."""

import argparse
import gc
import statistics
import sys
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("layers", 12), ("heads", 12), ("width", 768), ("batch", 32), ("sequence", 1024),
                          ("vocabulary", 50304), ("steps", 20), ("key-value-heads", 8), ("intermediate", 8192),
                          ("accumulate", 1)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--family", choices=["gpt2", "llama"], default="gpt2",
                        help="--key-value-heads and --intermediate are of a llama")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--threads", type=int, default=2, help="of a CPU")
    return parser.parse_args()


def main():
    arguments = parse()
    try:
        import torch
        from torch import nn
        from torch.nn import functional
    except ImportError as error:
        print(f"no PyTorch: {error}")
        return 77
    on_gpu = arguments.device == "cuda"
    if on_gpu and not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 77
    if not on_gpu:
        torch.set_num_threads(arguments.threads)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            width = arguments.width
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            shape = (x.shape[0], x.shape[1], arguments.heads, x.shape[2] // arguments.heads)
            query, key, value = (part.view(shape).transpose(1, 2) for part in
                                 self.c_attn(self.ln_1(x)).split(x.shape[2], dim=2))
            heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.c_proj(heads.transpose(1, 2).reshape(x.shape))
            return x + self.mlp_proj(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(arguments.vocabulary, arguments.width)
            self.wpe = nn.Embedding(arguments.sequence, arguments.width)
            self.layers = nn.ModuleList(Layer() for _ in range(arguments.layers))
            self.ln_f = nn.LayerNorm(arguments.width)
            for table in [self.wte, self.wpe]:
                nn.init.normal_(table.weight, std=0.02)

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
            for layer in self.layers:
                x = layer(x)
            logits = functional.linear(self.ln_f(x), self.wte.weight)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    class LlamaLayer(nn.Module):
        def __init__(self):
            super().__init__()
            width, inner = arguments.width, arguments.intermediate
            shared = width // arguments.heads * arguments.key_value_heads
            self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
            self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
            self.key, self.value = (nn.Linear(width, shared, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
            self.down = nn.Linear(inner, width, bias=False)

        def forward(self, x, cos, sin):
            def heads(y):
                return y.view(x.shape[0], x.shape[1], -1, x.shape[2] // arguments.heads).transpose(1, 2)

            def rotate(y):
                first, second = y.chunk(2, dim=3)
                return y * cos + torch.cat([-second, first], dim=3) * sin

            y = self.norm_1(x)
            result = functional.scaled_dot_product_attention(
                rotate(heads(self.query(y))), rotate(heads(self.key(y))), heads(self.value(y)), is_causal=True,
                enable_gqa=True)
            x = x + self.out(result.transpose(1, 2).reshape(x.shape))
            y = self.norm_2(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(arguments.vocabulary, arguments.width)
            self.layers = nn.ModuleList(LlamaLayer() for _ in range(arguments.layers))
            self.norm = nn.RMSNorm(arguments.width, eps=1e-5)
            nn.init.normal_(self.embedding.weight, std=0.02)
            # The scaling of llama3 changes the values of these, not the work of a step.
            size = arguments.width // arguments.heads
            angles = torch.outer(torch.arange(arguments.sequence), 500000.0 ** (-torch.arange(0, size, 2) / size))
            dtype = torch.bfloat16 if arguments.dtype == "bf16" else torch.float32
            self.register_buffer("cos", torch.cat([angles.cos()] * 2, dim=1).to(dtype))
            self.register_buffer("sin", torch.cat([angles.sin()] * 2, dim=1).to(dtype))

        def forward(self, tokens, targets):
            x = self.embedding(tokens)
            for layer in self.layers:
                x = layer(x, self.cos, self.sin)
            logits = functional.linear(self.norm(x), self.embedding.weight)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def times_of_steps(batch):
        torch.manual_seed(0)
        model = {"gpt2": Gpt2, "llama": Llama}[arguments.family]().to(arguments.device)
        step_model = torch.compile(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        tokens = torch.randint(arguments.vocabulary, (batch, arguments.sequence + 1), device=arguments.device)

        def step():
            for _ in range(arguments.accumulate):
                with torch.autocast(arguments.device, dtype=torch.bfloat16, enabled=arguments.dtype == "bf16"):
                    loss = step_model(tokens[:, :-1], tokens[:, 1:]) / arguments.accumulate
                loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        def finish():
            if on_gpu:
                torch.cuda.synchronize()

        together = 5 if on_gpu else 1
        for _ in range(together):
            step()
        finish()
        times = []
        for _ in range(max(1, arguments.steps // together)):
            begin = time.perf_counter()
            for _ in range(together):
                step()
            finish()
            times.append((time.perf_counter() - begin) / together)
        return times

    torch.set_float32_matmul_precision("high" if arguments.dtype == "bf16" else "highest")
    batch, times = arguments.batch, None
    while times is None:
        try:
            times = times_of_steps(batch)
        except torch.OutOfMemoryError:
            if batch == 1:
                raise
        if times is None: # the tensors of the error are free now
            print(f"the memory is too small for a batch of {batch}", flush=True)
            batch //= 2
            gc.collect()
            torch.compiler.reset()
            torch.cuda.empty_cache()
    if on_gpu:
        print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}, batch {batch}, "
              f"{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB at most")
    else:
        print(f"PyTorch {torch.__version__}, {arguments.threads} threads, median of {arguments.steps} steps: "
              f"{1000 * statistics.median(times):.0f} ms")
    print(f"{batch * arguments.accumulate * arguments.sequence / statistics.median(times):.0f} tokens/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
