"""A tokenizer.json and the special tokens that go with it."""

import hashlib
import os
import pathlib

import documents
from problem import Problem


class Vocabulary:
    """A tokenizer as Hugging Face stores it, run by the package tokenizers.

    threads: how many encode at once; None for as many as there are cores."""

    def __init__(self, path, threads=None):
        if threads is not None:
            os.environ["RAYON_NUM_THREADS"] = str(threads)
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise Problem(f"the Python package tokenizers cannot be imported ({error}); install it, such as by: "
                          "python3 -m pip install tokenizers") from error
        self.path = pathlib.Path(path)
        if self.path.is_dir():
            self.path = self.path / "tokenizer.json"
        try:
            text = self.path.read_bytes()
        except OSError as error:
            raise Problem(f"{self.path}: {error.strerror}; --tokenizer takes a tokenizer.json, or a folder that has "
                          "one") from error
        try:
            self.tokenizer = Tokenizer.from_str(text.decode("utf-8"))
        except Exception as error:  # the package raises Exception itself
            raise Problem(f"{self.path}: it is no tokenizer.json: {error}") from error
        # A file may ask for padding or a largest length, which samples of a training must not have.
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.checksum = hashlib.sha256(text).hexdigest()

    @property
    def size(self):
        """All tokens are below it."""
        return 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)

    def find(self, flag, token):
        """The number of a token that a flag names."""
        number = self.tokenizer.token_to_id(token)
        if number is None:
            raise Problem(f'{flag}: {self.path} has no token "{token}"')
        return number

    def end(self, given, is_needed=True):
        """The token after a document: what --end says ("none": no token), or the eos_token of tokenizer_config.json."""
        if given == "none":
            return None
        if given is not None:
            return self.find("--end", given)
        name = self.special_tokens().get("eos_token")
        if name is None and not is_needed:
            return None
        if name is None:
            raise Problem(f"which token of {self.path} ends a document? {self.path.with_name('tokenizer_config.json')} "
                          "names no eos_token; name it with --end, such as --end '<|endoftext|>', or none with --end none")
        return self.find("eos_token of tokenizer_config.json", name)

    def config(self):
        """tokenizer_config.json, or nothing where there is none."""
        path = self.path.with_name("tokenizer_config.json")
        try:
            config = documents.parse_json(path.read_text(encoding="utf-8"), path)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise Problem(f"{path}: {error}") from error
        return config if isinstance(config, dict) else {}

    def special_tokens(self):
        """The texts of the special tokens that tokenizer_config.json names, by name: bos_token, eos_token, ..."""
        texts = {name: value.get("content") if isinstance(value, dict) else value for name, value in self.config().items()
                 if name.endswith("_token")}
        return {name: text for name, text in texts.items() if isinstance(text, str)}

    def encode(self, texts):
        """The tokens of each text, without special tokens around them; ones that a text spells are special tokens."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_with_places(self, texts):
        """The same, and with each token the part of the text that it stands for: its first character and the one after it."""
        return [(encoding.ids, encoding.offsets) for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def decode(self, tokens):
        """The text of tokens, special ones included."""
        return self.tokenizer.decode(tokens, skip_special_tokens=False)
