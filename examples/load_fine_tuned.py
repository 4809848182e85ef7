#!/usr/bin/env python3
"""Loads what docs/fine-tuning.md makes with PEFT and transformers, and says what they make of it.

Needs torch, transformers and peft. Reads from the current folder model, adapters, merged and held-out.safetensors, and
prints for the model with the adapters and for the merged weights the mean loss of the held-out samples and an answer.
"""

import peft
import torch
import transformers
from safetensors.torch import load_file

QUESTION = "What is 3 plus 4?"


@torch.no_grad()
def report(name, model, tokenizer):
    model.eval()
    samples = load_file("held-out.safetensors")
    logits = model(input_ids=samples["tokens"].long()).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), samples["labels"].long().flatten())
    prompt = tokenizer(QUESTION, return_tensors="pt")["input_ids"]
    tokens = model.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False,
                            pad_token_id=tokenizer.eos_token_id)
    answer = tokenizer.decode(tokens[0, prompt.shape[1]:], skip_special_tokens=True)
    print(f"{name}: held-out loss {loss:.4f}, answer:{answer}")


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained("model")
    base = transformers.AutoModelForCausalLM.from_pretrained("model")
    report("PEFT", peft.PeftModel.from_pretrained(base, "adapters"), tokenizer)
    merged, information = transformers.AutoModelForCausalLM.from_pretrained("merged", output_loading_info=True)
    if any(information.values()):
        raise SystemExit(f"error: transformers finds the merged weights incomplete: {information}")
    report("transformers", merged, tokenizer)


if __name__ == "__main__":
    main()
