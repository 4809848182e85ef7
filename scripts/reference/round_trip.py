#!/usr/bin/env python3
"""Takes weights of every family of models from transformers to dtc and back, and adapters from dtc to PEFT and back.

For each model of families.py, small and random, with dtc's programs:

 1. transformers saves the model, in several files with an index, and in bf16; dtc-run trains it for two steps on dp=2,
    tp=2 and saves it. transformers loads what was saved, with no tensor missing or unexpected, and has the loss that
    dtc's evaluation has. It saves it again, and dtc loads and saves the same bits.
 2. dtc-run trains adapters of all linear layers and saves them, alone and merged into the weights. PEFT loads the
    adapters and has the loss that dtc's evaluation has; so has the merged model in transformers, whose weights are those
    that PEFT merges. PEFT saves the adapters again, and dtc loads and saves the same bits.

    venv/bin/pip install -r scripts/reference/requirements-lora.txt
    venv/bin/python scripts/reference/round_trip.py --bin build/release/bin [model...]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import warnings

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import models
from families import FAMILIES, is_encoder, is_mixture, reads_images
from make_family_reference import draw_images
from make_parity_reference import BATCH, SEQ, STEPS
from training import logits_of

# The tolerance of losses, and of weights relative to a tensor's largest element.
CLOSE = 2e-6
STRATEGY = ["--mesh", "dp=2,tp=2"]
# With transformers 5, PEFT 0.21.2 leaves out adapters of experts, or of other layers of the same names.
LEFT_OUT_BY_PEFT = ("qwen2_moe_", "qwen3_moe_", "deepseek_")


class Case:
    """One model, in a folder of its own."""

    def __init__(self, name, bin_folder, folder):
        self.name, self.bin, self.folder = name, bin_folder, folder
        generator = torch.Generator().manual_seed(0)
        self.model = FAMILIES[name]()
        models.randomize(self.model, generator)
        self.samples = (draw_images(self.model.config, STEPS * BATCH, generator) if reads_images(name)
                        else self.draw_tokens(generator))
        save_file(self.samples, folder / "samples.safetensors")
        self.model.save_pretrained(folder / "base", max_shard_size="8KB")
        assert (folder / "base" / "model.safetensors.index.json").exists()

    def draw_tokens(self, generator):
        tokens = torch.randint(0, self.model.config.vocab_size, (STEPS * BATCH, SEQ + 1), generator=generator,
                               dtype=torch.int32)
        if is_encoder(self.name):  # no padding, and any labels do
            tokens[tokens == self.model.config.pad_token_id] += 1
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def dtc(self, program, *arguments):
        done = subprocess.run([self.bin / program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, (program, arguments, done.stderr)
        return done

    def compile(self, plan, *flags):
        options = [] if reads_images(self.name) else ["--seq", SEQ]
        if is_mixture(self.name):
            options += ["--balance-loss", "none"]  # the loss is that of the tokens alone
        self.dtc("dtc-import", "base/config.json", "--batch", BATCH, *options, *flags, "-o", "model.mlir")
        self.dtc("dtc-compile", "model.mlir", *STRATEGY, "-o", plan)

    def train(self, plan, init, lr, *flags):
        """The loss of all samples after two steps."""
        starts = [word for path in init for word in ("--init", path)]
        done = self.dtc("dtc-run", plan, *starts, "--data", "samples.safetensors", "--eval-data", "samples.safetensors",
                        "--steps", 2, "--lr", lr, "--warmup", 0, "--lr-schedule", "constant", "--metrics",
                        "metrics.jsonl", *flags)
        assert "not used" not in done.stderr + done.stdout and "other names" not in done.stderr + done.stdout, done
        lines = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        return [line["eval_loss"] for line in lines if line.get("eval_loss") is not None][-1]

    def copy(self, plan, init, *flags):
        """Loads and saves."""
        starts = [word for path in init for word in ("--init", path)]
        done = self.dtc("dtc-run", plan, *starts, "--data", "samples.safetensors", "--steps", 0, *flags)
        assert "note" not in done.stderr + done.stdout, done

    def folder_of(self, name):
        """A folder with the model's configuration, for weights."""
        (self.folder / name).mkdir()
        shutil.copy(self.folder / "base" / "config.json", self.folder / name)
        return name + "/model.safetensors"

    @torch.no_grad()
    def loss(self, model):
        model.eval()
        segments = {"segments": torch.zeros_like(self.samples["tokens"])} if is_encoder(self.name) else {}
        logits = logits_of(model, self.samples | segments)
        return float(torch.nn.functional.cross_entropy(logits.flatten(0, -2), self.samples["labels"].long().flatten()))

    def load(self, name):
        """By transformers; every tensor of the file is the model's, and the reverse."""
        kind = (transformers.AutoModelForImageClassification if reads_images(self.name) else
                transformers.AutoModelForMaskedLM if is_encoder(self.name) else transformers.AutoModelForCausalLM)
        options = {"experts_implementation": "eager"} if is_mixture(self.name) else {}
        model, information = kind.from_pretrained(
            self.folder / name, output_loading_info=True, attn_implementation="eager", **options)
        assert not any(information.values()), information
        return model

    def tensors(self, path):
        return load_file(self.folder / path)

    def expect_loss(self, what, model, expected):
        loss = self.loss(model)
        assert abs(loss - expected) < CLOSE * expected, (self.name, what, loss, expected)

    def weights(self):
        self.compile("train.plan")
        loss = self.train("train.plan", ["base"], 1e-2, "--save", self.folder_of("trained"))
        model = self.load("trained")
        self.expect_loss("trained weights", model, loss)
        model.save_pretrained(self.folder / "again", max_shard_size="8KB")
        self.copy("train.plan", ["again"], "--save", "back.safetensors")
        expect_same(self.tensors("trained/model.safetensors"), self.tensors("back.safetensors"))
        self.model.bfloat16().save_pretrained(self.folder / "rounded")
        self.copy("train.plan", ["rounded"], "--save", "back.safetensors")
        rounded = {name: tensor.float() for name, tensor in self.tensors("rounded/model.safetensors").items()}
        expect_same(rounded, self.tensors("back.safetensors"))

    def adapters(self):
        self.compile("lora.plan", "--lora", "rank=2,alpha=3,target=all-linear")
        loss = self.train("lora.plan", ["base"], 5e-2, "--save-adapters", "adapters", "--save-merged",
                          self.folder_of("merged"))
        self.expect_loss("merged weights", self.load("merged"), loss)
        if self.name.startswith(LEFT_OUT_BY_PEFT):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # such as of keys that are missing
            model = peft.PeftModel.from_pretrained(self.load("base"), self.folder / "adapters")
        self.expect_loss("adapters", model, loss)
        if is_mixture(self.name):
            self.folder_of("merged-by-peft")
            model.merge_and_unload().save_pretrained(self.folder / "merged-by-peft")
            self.compile("base.plan")
            self.copy("base.plan", ["merged-by-peft"], "--save", "back.safetensors")
            merged = self.tensors("back.safetensors")
        else:
            model.save_pretrained(self.folder / "adapters-again")
            self.copy("lora.plan", ["base", "adapters-again"], "--save-adapters", "adapters-back")
            expect_same(self.tensors("adapters/adapter_model.safetensors"),
                        self.tensors("adapters-back/adapter_model.safetensors"))
            merged = dict(model.merge_and_unload().named_parameters())
        for name, tensor in self.tensors("merged/model.safetensors").items():
            distance = float((tensor - merged[name]).abs().max() / merged[name].abs().max())
            assert distance < CLOSE, (self.name, name, distance)


def expect_same(before, after):
    assert before.keys() == after.keys(), before.keys() ^ after.keys()
    for name, tensor in before.items():
        assert tensor.dtype == after[name].dtype and torch.equal(tensor, after[name]), name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of dtc's programs")
    parser.add_argument("models", nargs="*", choices=[[], *FAMILIES], default=[], help="default: all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for name in arguments.models or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            case = Case(name, arguments.bin.resolve(), pathlib.Path(folder))
            case.adapters()
            case.weights()
        print(f"{name}: weights and adapters are the same there and back", flush=True)


if __name__ == "__main__":
    main()
