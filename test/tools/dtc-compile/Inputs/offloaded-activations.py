"""Checks the memory of plans of wide-gpt2.json with a batch of 8 x 32, without and with --offload activations."""

import json

TOKENS, WIDTH, LAYERS, VOCABULARY = 8 * 32, 256, 6, 512
# A layer keeps inputs and outputs of its norms, the inputs of attention (three times the width) and its output, and before and
# after GELU four times the width.
LAYER = 4 * TOKENS * WIDTH * (4 + 3 + 1 + 4 + 4)
LOSS = 4 * TOKENS * (2 * WIDTH + VOCABULARY)  # the last norm's input and output, and the logits


def memory(name):
    with open(name + ".json") as file:
        return json.load(file)["memory"]


def onHost(name):
    kept = memory(name)["host"]["peak_bytes"]
    assert kept["activations"] == kept["total"] == memory(name)["host"]["arena_bytes"], kept
    return kept["activations"]


assert "host" not in memory("plain")
assert onHost("ahead-0") == LAYERS * LAYER + LOSS, onHost("ahead-0")
assert onHost("ahead-1") == LAYERS * LAYER, onHost("ahead-1")
assert onHost("ahead-2") == (LAYERS - 1) * LAYER, onHost("ahead-2")
half = (LAYERS * LAYER + LOSS) / 2
assert half <= onHost("part") < half + 4 * 4 * TOKENS * WIDTH, onHost("part")
# The device has at most two layers at a time: one that is used, and one that is fetched.
saved = memory("plain")["peak_bytes"]["activations"] - memory("ahead-1")["peak_bytes"]["activations"]
assert saved >= (LAYERS - 2) * LAYER, saved
