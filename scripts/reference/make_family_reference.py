#!/usr/bin/env python3
"""Makes the reference data of the parity tests of families of models with PyTorch and Hugging Face transformers.

For each model of families.py it writes a folder below test/parity/data (see the README there), as
make_parity_reference.py does for its models: what three steps of training must give, and what the model goes on with
from a prompt; of encoders and of models of images the former alone, of odd configurations, which are tested in f64 alone, the losses and the gradients. The models are
transformers' own. Everything is computed in f64, what transformers computes in f32 too,
so that the losses and the gradients, which are stored in f64, are exact to about 1e-13.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/make_family_reference.py
"""

import argparse
import os

import torch

import generation
import models
from families import FAMILIES, IDLE, ODD, ODD_THAT_GENERATE, everything_in_f64, is_decoder, is_encoder, reads_images
from make_parity_reference import BATCH, ROUNDING, SEQ, STEPS, distances, save, write_json
from routing import Routing
from training import ADAMW, Case, train

# The gradients of small models are small.
CASE = Case(optimizer=ADAMW | {"clip_norm": 0.5})
# Weights large enough that scores leave the linear part of caps, and that generation does not repeat itself.
SPREAD = 0.4
# How far PyTorch's own f32 may be from f64, relative to a tensor's largest element: a fifth of the tests' bound.
MOST_NOISE = 2e-5
# How far a router's score that is chosen is at least from one that is not: another order of sums must not choose another
# expert.
LEAST_MARGIN = 1e-5


def as_saved(model, results):
    """What training gives, by the names of weights files: there, each expert has tensors of its own."""
    losses, norms, *tensors = results
    return losses, norms, *(models.named_as_saved(model, each) for each in tensors)


def noise_of(double, single):
    """How far the results in f32 are from those in f64, as expected.json says it."""
    losses, norms, gradients, parameters = double
    return {
        "loss": max(abs(a - b) for a, b in zip(losses, single[0])),
        "grad_norm": max(abs(a - b) for a, b in zip(norms, single[1])),
        "gradients": distances(gradients, single[2]),
        "parameters": distances(parameters, single[3], gradients),
    }


def is_quiet(double, noise):
    # A softmax does not change with the bias of keys: all of its gradient is rounding.
    return all(distance < MOST_NOISE * double[3][name].abs().max() for name, distance in noise["parameters"].items()
               if not name.endswith("key.bias"))


def draw_images(config, count, generator):
    size = config.image_size
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    return {"images": torch.randn((count, config.num_channels, height, width), generator=generator),
            "labels": torch.randint(0, config.num_labels, (count,), generator=generator, dtype=torch.int32)}


def draw_samples(name, config, generator):
    """Of decoders the text and the text one token later; of encoders padded text, of which some tokens are to be
    found; of others images and their classes."""
    if reads_images(name):
        return draw_images(config, STEPS * BATCH, generator), {}
    shape = (STEPS * BATCH, SEQ)
    if not is_encoder(name):
        text = torch.randint(0, config.vocab_size, (shape[0], SEQ + 1), generator=generator, dtype=torch.int32)
        return {"tokens": text[:, :-1], "labels": text[:, 1:]}, {}
    text = torch.randint(0, config.vocab_size - 1, shape, generator=generator, dtype=torch.int32)
    text += text >= config.pad_token_id  # padding is no token of a text
    positions = torch.arange(SEQ, dtype=torch.int32).expand(shape)
    lengths = torch.randint(SEQ // 2, SEQ + 1, (shape[0], 1), generator=generator)
    counts = (torch.rand(shape, generator=generator) < 0.4) & (positions < lengths)
    is_text = positions < lengths
    return {"tokens": torch.where(is_text, text, config.pad_token_id),
            "labels": torch.where(counts, text.roll(1, 1), -100),
            "segments": torch.where(is_text, 0, -1).int(),
            "positions": torch.where(is_text, positions, 0)}, {"packed": True}


def make(name, folder, seed):
    """The data of one model; False if this seed's training magnifies rounding too much, or hides it."""
    generator = torch.Generator().manual_seed(seed)
    model = FAMILIES[name]()
    models.randomize(model, generator, SPREAD)
    initial = models.saved_tensors(model)
    samples, loss_options = draw_samples(name, model.config, generator)
    single = as_saved(model, train(model, CASE, samples, BATCH))
    with everything_in_f64(), Routing(model := FAMILIES[name]().double()) as routing:
        models.restore(model, initial)
        double = as_saved(model, train(model, CASE, samples, BATCH))
    losses, norms, gradients, parameters = double
    noise = noise_of(double, single)
    # Rounding that happens to be 0 would pass for an element that no sample reaches.
    if any((gradient == 0).any() for key, gradient in gradients.items() if key.endswith("key.bias")):
        return False
    if routing.margin < LEAST_MARGIN or routing.has_idle_expert() != (name in IDLE):
        return False
    # Every step clips.
    if not is_quiet(double, noise) or any(norm < 1.5 * CASE.optimizer["clip_norm"] for norm in norms):
        return False
    generates = is_decoder(name) and (name not in ODD or name in ODD_THAT_GENERATE)
    if generates:
        with everything_in_f64():
            models.restore(model, initial)
            generated = generation.generate(model, generator)
    model.generation_config = None

    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, "config.json"), models.configuration(model))
    weights = models.named_as_saved(model, initial)
    unused = sorted(parameters.keys() - gradients.keys())
    save(os.path.join(folder, "weights.safetensors"), weights)
    save(os.path.join(folder, "samples.safetensors"), samples)
    save(os.path.join(folder, "gradients.safetensors"), gradients)
    if routing.choices:
        save(os.path.join(folder, "routing.safetensors"),
             {key: value.unflatten(0, (BATCH, SEQ)) for key, value in routing.choices.items()})
    if name not in ODD:
        parameters = {key: value for key, value in parameters.items() if key not in unused}
        save(os.path.join(folder, "parameters.safetensors"), parameters, torch.float32)
    if generates:
        write_json(os.path.join(folder, "generation.json"), generated)
    write_json(os.path.join(folder, "expected.json"), {
        "batch": BATCH,
        **({} if reads_images(name) else {"seq": SEQ}),
        "steps": STEPS,
        "exact": True,
        **({"loss_options": loss_options} if loss_options else {}),
        "optimizer": CASE.optimizer,
        "loss": losses,
        "grad_norm": norms,
        "rounding": ROUNDING,
        "f32_noise": noise,
        # Saved by transformers, which computes with none of them.
        **({"unused_tensor": unused[0]} if unused else {}),
        **({"balance_loss": routing.balance} if routing.balance else {}),
        **({"routing_margin": routing.margin} if routing.choices else {}),
    })
    print(f"{name}: seed {seed}, loss {losses}, gradient norm {norms}")
    return True


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=os.path.join(root, "test", "parity", "data"),
                        help="the folder to write to (default: test/parity/data)")
    parser.add_argument("models", nargs="*", choices=[[], *FAMILIES], default=[],
                        help="the models to make the data of (default: all)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in arguments.models or FAMILIES:
        # AdamW magnifies the rounding of gradients near 0, for some weights more than the tests allow.
        if not any(make(name, os.path.join(arguments.output, name), seed) for seed in range(20)):
            raise SystemExit(f"{name}: f32 is too far from f64 with every seed")


if __name__ == "__main__":
    main()
