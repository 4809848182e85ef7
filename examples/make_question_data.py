#!/usr/bin/env python3
"""Makes what docs/data.md works with: questions and answers, a tokenizer trained on them, and a small model for it.

Needs the Python package tokenizers. Writes to the current folder questions.jsonl (fields "instruction" and "response"),
articles.jsonl (field "text"), tokenizer.json (byte-level BPE) and config.json (examples/gpt2-tiny with that
vocabulary).
"""

import json
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def write_lines(path, values):
    pathlib.Path(path).write_text("".join(json.dumps(value) + "\n" for value in values))


def make_questions():
    return [{"instruction": f"What is {a} plus {b}?", "response": f" It is {a + b}."} for a in range(12)
            for b in range(12)]


def train_tokenizer(questions):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([each["instruction"] + each["response"] for each in questions], trainer)
    return tokenizer


def main():
    questions = make_questions()
    write_lines("questions.jsonl", questions)
    write_lines("articles.jsonl", [{"text": f"{each['instruction']}{each['response']}\n" * 20} for each in questions])
    tokenizer = train_tokenizer(questions)
    tokenizer.save("tokenizer.json")
    config = json.loads((pathlib.Path(__file__).parent / "gpt2-tiny" / "config.json").read_text())
    config["vocab_size"] = tokenizer.get_vocab_size()
    pathlib.Path("config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
