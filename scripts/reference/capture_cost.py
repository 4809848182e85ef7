#!/usr/bin/env python3
"""Measures what dtc.compile() takes for Llamas of 1B and 70B parameters on the device meta, each in a process of its own, and what
Python adds to a step of some 50 ms. It fails where a bound below is exceeded.

    PYTHONPATH=BUILD/python venv/bin/python scripts/reference/capture_cost.py
"""

import multiprocessing
import resource
import statistics
import time

import torch
import transformers

import dtc

# The sizes of Llama 3.2 1B and of Llama 3 70B, the layout, and the bounds: seconds of one core, and GiB of the process.
MODELS = {
    "1B": (dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                num_key_value_heads=8, tie_word_embeddings=True), {"mesh": "dp=2,tp=2"}, 15, 8),
    "70B": (dict(vocab_size=128256, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64,
                 num_key_value_heads=8, tie_word_embeddings=False), {"mesh": "dp=2,tp=2,pp=2", "microbatches": 4}, 60, 8),
}
BATCH, SEQ = 8, 2048
SMALL = dict(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2)
STEPS, WARMUP, MOST_ADDED = 100, 10, 0.01


def loss(model, batch):
    return model(input_ids=batch["tokens"], labels=batch["labels"]).loss


def model_of(settings):
    return transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**settings))


def batch_of(batch, seq, vocabulary):
    return {name: torch.randint(vocabulary, (batch, seq)) for name in ("tokens", "labels")}


def compile_in_process(name, results):
    settings, layout, _, _ = MODELS[name]
    cpu, wall = time.process_time(), time.monotonic()
    with torch.device("meta"):
        model = model_of(settings)
    step = dtc.compile(model, loss, batch_of(BATCH, SEQ, 512), **layout)
    spent = time.process_time() - cpu, time.monotonic() - wall
    parameters = sum(each.numel() for each in model.parameters())
    results.put((parameters, *spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, len(step.plan_bytes)))


def compiles_in_bounds(name):
    """Whether a model is captured and compiled within its bounds."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=compile_in_process, args=(name, results))
    process.start()
    process.join()
    if process.exitcode != 0:
        print(f"{name}: failed with {process.exitcode}", flush=True)
        return False
    parameters, cpu, wall, memory, size = results.get()
    _, layout, seconds, gigabytes = MODELS[name]
    print(f"{name}: {parameters / 1e9:.2f}B parameters, {layout}: {cpu:.1f} s of one core (at most {seconds}), {wall:.1f} s of the clock, "
          f"{memory:.2f} GiB (at most {gigabytes}), a plan of {size / 2**20:.1f} MiB", flush=True)
    return cpu <= seconds and memory <= gigabytes


def adds_little():
    """Whether a call of a step takes hardly longer than the step."""
    torch.manual_seed(0)
    batch = batch_of(4, 256, SMALL["vocab_size"])
    step = dtc.compile(model_of(SMALL), loss, batch, threads=1)
    steps, added = [], []
    for count in range(WARMUP + STEPS):
        begin = time.perf_counter()
        metrics = step(batch)
        whole = time.perf_counter() - begin
        if count >= WARMUP:
            steps.append(metrics["step_seconds"])
            added.append(whole - metrics["step_seconds"])
    took, more = statistics.median(steps), statistics.median(added)
    share = more / 0.05
    print(f"Python adds {1e3 * more:.3f} ms to a step of {1e3 * took:.1f} ms (medians of {STEPS}): {share:.2%} of 50 ms, at most "
          f"{MOST_ADDED:.0%}", flush=True)
    return share <= MOST_ADDED


if __name__ == "__main__":
    if not all([*(compiles_in_bounds(name) for name in MODELS), adds_little()]):
        raise SystemExit("a bound is exceeded")
