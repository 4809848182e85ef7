#!/usr/bin/env python3
"""Times steps of training on the CPU beside those of torch.compile, in one process and in turn, so that what else the machine does
falls on both alike. The same model of transformers, AdamW, clipping to norm 1, the same batches; PyTorch has its fused AdamW and
scaled-dot-product attention, and in bf16 autocast. Prints the median of the ratios of each turn, dtc's time to PyTorch's: below
1, dtc is faster.

    PYTHONPATH=build/release/python python3 benchmarks/beside-torch.py
    PYTHONPATH=build/release/python python3 benchmarks/beside-torch.py --family llama --dtype bf16 --threads 2
    ... --layers 2 --sequence 128 --turns 3      # a short one

PyTorch and transformers have to be there."""

import argparse
import statistics
import time
import warnings

import torch
import transformers

import dtc


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("layers", 12), ("batch", 4), ("sequence", 512), ("threads", 2), ("turns", 5)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--family", choices=["gpt2", "llama"], default="gpt2", help="GPT-2 of 124M parameters, or a Llama of 110M")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--eager", action="store_true", help="PyTorch without torch.compile")
    return parser.parse_args()


def make_model(arguments):
    if arguments.family == "gpt2":
        config = transformers.GPT2Config(vocab_size=50304, n_layer=arguments.layers, n_positions=arguments.sequence, resid_pdrop=0,
                                         embd_pdrop=0, attn_pdrop=0)
    else:
        config = transformers.LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=2048, num_attention_heads=12,
                                          num_hidden_layers=arguments.layers, num_key_value_heads=12,
                                          max_position_embeddings=arguments.sequence, tie_word_embeddings=True)
    config.use_cache = False
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")


def loss_of(model, batch):
    return model(input_ids=batch["tokens"], labels=batch["labels"]).loss


def torch_step(model, arguments):
    """A function that trains on a batch and returns the loss."""
    compiled = model if arguments.eager else torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def step(batch):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.dtype == "bf16"):
            loss = loss_of(compiled, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def seconds_of(step, batch):
    begin = time.perf_counter()
    value = step(batch)
    return time.perf_counter() - begin, value


def main():
    arguments = parse()
    warnings.simplefilter("ignore")
    torch.set_num_threads(arguments.threads)
    model = make_model(arguments)
    shape = (arguments.batch, arguments.sequence)
    batches = [{"tokens": tokens, "labels": tokens}
               for tokens in (torch.randint(model.config.vocab_size, shape) for _ in range(arguments.turns + 1))]
    compiled = dtc.compile(model, loss_of, batches[0], optimizer=dtc.AdamW(lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, clip=1.0),
                           dtype=arguments.dtype, threads=arguments.threads)
    steps = {"dtc": lambda batch: float(compiled(batch)["loss"]), "PyTorch": torch_step(model, arguments)}
    for step in steps.values():  # the first one compiles, and touches the memory
        step(batches[0])
    print(f"{arguments.family}, {sum(each.numel() for each in model.parameters()) / 1e6:.1f} million parameters, {arguments.dtype}, "
          f"{shape[0]} x {shape[1]} tokens, {arguments.threads} threads, PyTorch {torch.__version__}"
          f"{' without torch.compile' if arguments.eager else ''}", flush=True)
    times = {name: [] for name in steps}
    for turn, batch in enumerate(batches[1:]):
        # Who is first changes from turn to turn.
        for name in sorted(steps, reverse=turn % 2 == 1):
            seconds, value = seconds_of(steps[name], batch)
            times[name].append(seconds)
            print(f"  {name:8} {seconds * 1e3:10.1f} ms  loss {value:.4f}", flush=True)
    ratios = [own / other for own, other in zip(times["dtc"], times["PyTorch"], strict=True)]
    print(f"medians: dtc {statistics.median(times['dtc']) * 1e3:.1f} ms, PyTorch {statistics.median(times['PyTorch']) * 1e3:.1f} ms; "
          f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
