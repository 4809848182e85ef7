"""Tests of dtc-data with tokenizers that they train themselves. Usage: DtcDataTest.py folder-of-programs"""

import array
import gzip
import hashlib
import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import unittest

try:
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
except ImportError:
    # 77 is what CTest takes as skipped.
    print("the Python package tokenizers is not installed")
    sys.exit(77)

from command_test import PROGRAMS, ROOT, CommandTest  # noqa: E402

END = "<|endoftext|>"


def sample_text(size, seed):
    """Words, numbers, code and letters of several scripts."""
    generator = random.Random(seed)
    words = ["the", "model", "trains", "don't", "  x_1 = f(y);", "\n\n", "naïve", "Übung", "数据", "данные", "🙂", "é", "\t",
             "1234", "3.14", "Hello,", "world!", END]
    parts = []
    while sum(map(len, parts)) < size:
        parts.append(generator.choice(words) + generator.choice([" ", " ", "", "\n"]))
    return "".join(parts)


def train_tokenizer(kind, path):
    """gpt2: byte-level BPE; llama3: the same after a split by a pattern; sentencepiece: BPE of letters with bytes for others."""
    special = [END, "<s>"]
    if kind == "sentencepiece":
        tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
        special = ["<unk>"] + special + [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    else:
        tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
        pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+"
        from tokenizers import Regex
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if kind == "gpt2" else (
            pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([sample_text(20000, 1).replace(END, "")], trainer)
    tokenizer.save(str(path))
    return Tokenizer.from_file(str(path))


def import_jinja2():
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise unittest.SkipTest("the Python package jinja2 is not installed") from error


class DtcData(CommandTest):
    def write_lines(self, name, values):
        self.write(name, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def numbers(self, name, code):
        return array.array(code, (self.folder / name).read_bytes()).tolist()

    def tokenizer(self, kind="gpt2"):
        return train_tokenizer(kind, self.folder / "tokenizer.json")

    # Tokens of documents

    def test_tokens_are_those_of_the_package(self):
        for kind in ("gpt2", "llama3", "sentencepiece"):
            with self.subTest(kind):
                tokenizer = self.tokenizer(kind)
                texts = [sample_text(size, size) for size in (1, 100, 5000, 50000)]
                self.write_lines("a.jsonl", [{"text": text, "other": 1} for text in texts])
                self.write("b.txt", texts[2])
                printed = self.run_program("tokens", "b.txt", "a.jsonl", "--tokenizer", "tokenizer.json", "--end", END, "-o",
                                           "out.bin", "--restart")
                expected, starts = [], []
                for text in texts + [texts[2]]: # sorted by path
                    starts.append(len(expected))
                    expected += tokenizer.encode(text, add_special_tokens=False).ids + [tokenizer.token_to_id(END)]
                self.assertEqual(self.numbers("out.bin", "H"), expected)
                self.assertEqual(self.numbers("out.bin.documents", "Q"), starts + [len(expected)])
                self.assertIn(f"out.bin: {len(expected)} tokens of 5 documents", printed)
                # Back to text.
                self.write("one.txt", texts[2])
                self.run_program("tokens", "one.txt", "--tokenizer", "tokenizer.json", "--end", "none", "-o", "one.u32",
                                 "--restart")
                self.assertEqual(self.run_program("decode", "one.u32", "--tokenizer", "tokenizer.json"),
                                 tokenizer.decode(self.numbers("one.u32", "I"), skip_special_tokens=False) + "\n")
                if kind != "sentencepiece":
                    self.assertEqual(self.run_program("decode", "one.u32", "--tokenizer", "tokenizer.json"), texts[2] + "\n")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if "partial" in path.name or "state" in path.name),
                         [])

    def test_compressed_files_and_the_end_of_the_configuration(self):
        tokenizer = self.tokenizer()
        (self.folder / "x").mkdir()
        for number in range(3):
            with gzip.open(self.folder / "x" / f"{number}.jsonl.gz", "wt") as file:
                file.write(json.dumps({"content": f"text {number}"}) + "\n\n")
        self.write("tokenizer_config.json", json.dumps({"eos_token": {"content": END}}))
        self.run_program("tokens", "x/*.gz", "--field", "content", "--begin", "<s>", "--tokenizer", ".", "-o", "out.u32")
        expected = []
        for number in range(3):
            expected += [tokenizer.token_to_id("<s>"), *tokenizer.encode(f"text {number}").ids, tokenizer.token_to_id(END)]
        self.assertEqual(self.numbers("out.u32", "I"), expected)

    def test_an_interrupted_command_goes_on(self):
        self.tokenizer()
        for name in ("a", "b"):
            self.write_lines(f"{name}.jsonl", [{"text": sample_text(3000, seed)} for seed in range(300)])
        arguments = ["tokens", "a.jsonl", "b.jsonl", "--tokenizer", "tokenizer.json", "--end", END]
        self.run_program(*arguments, "-o", "whole.bin")
        stops = 0
        interruptions = 10 # of commands that may have made no progress
        for attempt in range(interruptions + 1):
            process = self.start(*arguments, "-o", "parts.bin")
            # It has begun when its files are there, or when it has said that it goes on.
            if attempt:
                self.assertIn("going on after", process.stdout.readline())
            while process.poll() is None and not (self.folder / "parts.bin.partial").exists():
                time.sleep(0.01)
            if attempt < interruptions:
                process.send_signal(signal.SIGINT if attempt % 2 else signal.SIGTERM)
            out, error = process.communicate(timeout=100)
            if attempt == 1: # what a kill leaves after the last state
                with open(self.folder / "parts.bin.partial", "ab") as file:
                    file.write(b"12345")
            if process.returncode == 0:
                break
            self.assertIn("the same command goes on from there", error)
            stops += 1
        self.assertGreater(stops, 0)
        for suffix in ("", ".documents"):
            self.assertEqual((self.folder / f"parts.bin{suffix}").read_bytes(), (self.folder / f"whole.bin{suffix}").read_bytes())

    def test_going_on_needs_the_same_command(self):
        self.tokenizer()
        self.write_lines("a.jsonl", [{"text": "a b", "other": "c"}])
        arguments = ["tokens", "a.jsonl", "--tokenizer", "tokenizer.json", "-o", "out.bin"]
        size = (self.folder / "a.jsonl").stat().st_size
        self.write("out.bin.state", json.dumps({"request": {"input": [["a.jsonl", size]], "field": "other"}}))
        self.assertIn("had another field; give that again to go on, or --restart to begin again",
                      self.run_program(*arguments, "--end", END, status=1))
        self.write("out.bin.state", "{")
        self.assertIn("--restart begins again", self.run_program(*arguments, "--end", END, status=1))
        self.run_program(*arguments, "--end", END, "--restart")
        self.assertFalse((self.folder / "out.bin.state").exists())

    def test_errors(self):
        self.tokenizer()
        self.write_lines("a.jsonl", [{"text": "one"}, {"body": "two", "n": 3}])
        self.write("bad.jsonl", '{"text": "one"}\n{"text": \n')
        self.write("list.jsonl", "[1]\n")
        self.write("number.jsonl", '{"text": 3}\n')
        self.write("empty.txt", "")
        (self.folder / "latin.txt").write_bytes(b"caf\xe9 x")
        self.write("no.json", "{}")
        big = Tokenizer(models.WordLevel({str(number): number for number in range(70000)}, unk_token="0"))
        big.save(str(self.folder / "big.json"))

        def refused(expected, *arguments, output="out.bin", tokenizer="tokenizer.json", end=("--end", END)):
            error = self.run_program("tokens", *arguments, "--tokenizer", tokenizer, *end, "-o", output, "--restart", status=1)
            self.assertIn(f"error: {expected}", error)
            self.assertNotIn("Traceback", error)

        refused('a.jsonl: line 2: there is no field "text"; its fields are body, n', "a.jsonl")
        refused("bad.jsonl: line 2: it is no JSON", "bad.jsonl")
        refused("list.jsonl: line 1: expected an object", "list.jsonl")
        refused('number.jsonl: line 1: "text" is no text', "number.jsonl")
        refused("the input has no tokens", "empty.txt")
        refused("latin.txt: the text: byte 3 of it is no UTF-8", "latin.txt")
        refused("none.txt: there is no such file", "none.txt")
        refused("a.jsonl is given twice", "a.jsonl", "*.jsonl")
        refused("no.json: it is no tokenizer.json", "a.jsonl", tokenizer="no.json")
        refused("none.json: No such file", "a.jsonl", tokenizer="none.json")
        refused("which token of tokenizer.json ends a document?", "a.jsonl", end=())
        refused('--end: tokenizer.json has no token "</s>"', "a.jsonl", end=("--end", "</s>"))
        refused("out.txt: the name of a file of tokens ends with .bin (16 bits each) or .u32", "a.jsonl", output="out.txt")
        refused("out.bin: big.json has 70000 tokens, and 16 bits tell 65536 apart; name the file out.u32", "a.jsonl",
                tokenizer="big.json", end=("--end", "none"))
        refused("none/out.bin.partial: No such file", "a.jsonl", output="none/out.bin")

    def test_json_under_any_name(self):
        tokenizer = self.tokenizer()
        values = [{"text": "the model", "n": 1}, {"text": "a\nb ü"}, {"text": ""}]
        lines = "".join(json.dumps(value) + "\n" for value in values)
        expected = [[*tokenizer.encode(value["text"]).ids, tokenizer.token_to_id(END)] for value in values]
        contents = {"a.jsonl": lines, "a.JSONL": lines, "a.json": lines, "a.ndjson": "\n \n" + lines, "part-00000": lines,
                    "a.txt": lines, "b.jsonl": "\ufeff" + lines, "array.json": json.dumps(values),
                    "indented.json": json.dumps(values, indent=2), "bom.json": "\ufeff" + json.dumps(values)}
        for name, content in contents.items():
            for packed, field in ((False, ()), (True, ()), (False, ("--field", "text"))):
                with self.subTest(name, packed=packed, field=field):
                    path = self.folder / (name + ".gz" if packed and name != "part-00000" else name)
                    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
                    self.run_program("tokens", path.name, *field, "--tokenizer", "tokenizer.json", "--end", END, "-o", "o.bin")
                    self.assertEqual(self.numbers("o.bin", "H"), sum(expected, []))
                    self.assertEqual(len(self.numbers("o.bin.documents", "Q")), 4)
        # One object over several lines is one document.
        self.write("one.json", json.dumps(values[0], indent=1))
        self.run_program("tokens", "one.json", "--tokenizer", "tokenizer.json", "--end", END, "-o", "o.bin")
        self.assertEqual(self.numbers("o.bin", "H"), expected[0])
        # Text stays text.
        for text in ("[Music] the model\nb", "{x} = {1}\nb", '{"a": 1, the model\n', "the model\n" + lines):
            self.write("a.txt", text)
            self.run_program("tokens", "a.txt", "--tokenizer", "tokenizer.json", "--end", "none", "-o", "o.bin")
            self.assertEqual(self.numbers("o.bin", "H"), tokenizer.encode(text).ids)

    def test_what_is_no_text_is_refused(self):
        self.tokenizer()
        self.write("a.txt", "[Music] the model")
        self.write("words.json", "the model")
        self.write("cut.json", '[{"text": "a"}, {"text": ')
        self.write("numbers.json", '[{"text": "a"}, 3]')
        self.write("data.json", '{"data": [{"text": "a"}]}')
        self.write("lfs.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        self.write("plain.gz", "the model")
        self.write("deep.jsonl", '{"text": "a"}\n' + '{"text": ' + "[" * 100000)
        self.write("deep.json", "[" * 100000)
        self.write("digits.jsonl", '{"text": ' + "1" * 10000 + "}")
        self.write("long.jsonl", json.dumps({"n" * 1000000: 1, "\x1b[31m": 2, **{str(number): 3 for number in range(1000)}}))
        for name, content in (("zeros.dat", b"a\0b\0"), ("t.zst", b"\x28\xb5\x2f\xfd\4"), ("t.parquet", b"PAR1\0"),
                              ("t.npy", b"\x93NUMPY\1"), ("cut.jsonl.gz", gzip.compress(b'{"text": "a"}' * 1000)[:30]),
                              ("bad.jsonl.gz", gzip.compress(b"")[:10] + b"\xff" * 100)):
            (self.folder / name).write_bytes(content)

        def refused(expected, *arguments):
            before = sorted(path.name for path in self.folder.iterdir())
            error = self.run_program("tokens", *arguments, "--tokenizer", "tokenizer.json", "--end", END, "-o", "o.bin", status=1)
            self.assertTrue(error.startswith(f"error: {expected}"), error[:500])
            self.assertEqual(error.count("\n"), 1, error[:500])
            self.assertLess(len(error), 1000)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before) # nothing is left

        field = ("--field", "text")
        refused("a.txt: it is no JSON: Expecting value", "a.txt", *field)
        refused("words.json: --field names a field of JSON, and the file is none: it begins with neither { nor [", "words.json",
                *field)
        refused("cut.json: it is no JSON: Expecting value: line 1", "cut.json")
        refused("numbers.json: element 1: expected an object", "numbers.json")
        refused('data.json: line 1: there is no field "text"; its fields are data', "data.json")
        refused("lfs.txt: is a pointer of Git LFS and not the file that it stands for; fetch that", "lfs.txt")
        refused("plain.gz: has the name of a compressed file (.gz) and not its first bytes", "plain.gz")
        refused("deep.jsonl: line 2: it is nested too deep", "deep.jsonl")
        refused("deep.json: it is nested too deep", "deep.json")
        refused("digits.jsonl: line 1: it is no JSON", "digits.jsonl")
        refused('long.jsonl: line 1: there is no field "text"; its fields are nnn', "long.jsonl")
        refused("zeros.dat: the text: byte 1 of it is 0, which no text has", "zeros.dat")
        refused("t.zst: is compressed (zstd); unpack it", "t.zst")
        refused("t.parquet: is a Parquet file", "t.parquet")
        refused("t.npy: is a NumPy file", "t.npy")
        refused("cut.jsonl.gz: ", "cut.jsonl.gz")
        refused("bad.jsonl.gz: ", "bad.jsonl.gz")

    def test_halves_of_characters_are_replaced(self):
        tokenizer = self.tokenizer()
        self.write("a.jsonl", '{"text": "a\\ud800b", "prompt": "\\udfff", "answer": "x\\ud83d"}\n'
                              '{"text": "\\ud83d\\ude42", "prompt": "x", "answer": "\\ud83d\\ude42"}\n')
        common = ("--tokenizer", "tokenizer.json", "--end", "none")
        self.run_program("tokens", "a.jsonl", *common, "-o", "o.bin")
        self.assertEqual(self.numbers("o.bin", "H"), tokenizer.encode("a\ufffdb").ids + tokenizer.encode("🙂").ids)
        self.run_program("answers", "a.jsonl", *common, "--seq", "16", "-o", "a.safetensors")
        for row, texts in zip(self.read_samples("a.safetensors")["tokens"], (("\ufffd", "x\ufffd"), ("x", "🙂"))):
            expected = [token for text in texts for token in tokenizer.encode(text).ids]
            self.assertEqual(row, expected + [0] * (16 - len(expected)))
        # Of the command line, bytes that are no text.
        for arguments in (("encode", b"a\xff", "-o", "p.bin"), ("answers", "a.jsonl", "--prompt", b"\xff", "--seq", "4", "-o", "p")):
            process = subprocess.run([sys.executable, PROGRAMS / "dtc-data", *arguments, "--tokenizer", "tokenizer.json"],
                                     cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(process.returncode, 1)
            self.assertRegex(process.stderr, r"^error: the command line: (the text|--prompt): byte \d of it is no UTF-8")
        name = os.fsdecode(b"\xff.bin") # a name of a file may be none
        self.assertIn(f"ff.bin: {len(tokenizer.encode('the model').ids)} tokens",
                      self.run_program("encode", "the model", "--tokenizer", "tokenizer.json", "-o", name))
        self.assertTrue((self.folder / name).exists())

    def test_an_interrupted_command_goes_on_in_an_array(self):
        tokenizer = self.tokenizer()
        values = [{"text": f"the model {number}"} for number in range(10)] + [{"text": 3}]
        self.write("a.json", json.dumps(values, indent=1))
        size = (self.folder / "a.json").stat().st_size
        done = [token for value in values[:4] for token in tokenizer.encode(value["text"]).ids]
        request = {"input": [["a.json", size]], "field": "text", "begin": [], "end": [],
                   "tokenizer": hashlib.sha256((self.folder / "tokenizer.json").read_bytes()).hexdigest()}
        place = {"file": 0, "position": 4, "line": 4, "done_bytes": 0}
        state = {"request": request, "tokens": len(done), "documents": 4, "place": place}
        (self.folder / "o.bin.partial").write_bytes(array.array("H", done).tobytes())
        (self.folder / "o.bin.documents.partial").write_bytes(bytes(32))
        arguments = ["tokens", "a.json", "--tokenizer", "tokenizer.json", "--end", "none", "-o", "o.bin"]
        for damaged in ([], {**state, "place": {}}, {**state, "tokens": None}, {"request": []}):
            self.write("o.bin.state", json.dumps(damaged))
            self.assertIn("--restart begins again", self.run_program(*arguments, status=1))
        self.write("o.bin.state", json.dumps(state))
        self.assertIn('a.json: element 10: "text" is no text', self.run_program(*arguments, status=1))
        self.assertTrue((self.folder / "o.bin.partial").exists()) # there is a state to go on from

    # Prompts and answers

    def read_samples(self, name):
        data = (self.folder / name).read_bytes()
        size, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        result = {}
        for key, entry in header.items():
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            values = array.array("i", data[begin:end]).tolist()
            rows, columns = entry["shape"]
            result[key] = [values[row * columns:(row + 1) * columns] for row in range(rows)]
        return result

    def test_answers(self):
        tokenizer = self.tokenizer()
        self.write_lines("q.jsonl", [{"prompt": "the model", "answer": " trains"}, {"prompt": "x", "answer": "world! Hello,"}])
        arguments = ["answers", "q.jsonl", "--tokenizer", "tokenizer.json", "--end", END, "-o", "q.safetensors"]
        self.run_program(*arguments, "--seq", "32", "--prompt", "Q{{{prompt}}}:", "--begin", "<s>")
        samples = self.read_samples("q.safetensors")
        end = tokenizer.token_to_id(END)
        for row, (prompt, answer) in enumerate((("Q{the model}:", " trains"), ("Q{x}:", "world! Hello,"))):
            before = [tokenizer.token_to_id("<s>")] + tokenizer.encode(prompt).ids
            after = tokenizer.encode(answer).ids + [end]
            tokens, labels = samples["tokens"][row], samples["labels"][row]
            self.assertEqual(tokens, (before + after + [end] * 32)[:32])
            # The label of a token is the next one where that is of the answer.
            for position in range(32):
                inside = len(before) <= position + 1 < len(before) + len(after)
                self.assertEqual(labels[position], (before + after)[position + 1] if inside else -100)

    def test_packed_answers(self):
        tokenizer = self.tokenizer()
        end = tokenizer.token_to_id(END)
        questions = [("x", " trains"), ("the model", "world! Hello,"), ("a", "b"), ("the model trains", "the world")] * 3
        self.write_lines("q.jsonl", [{"prompt": prompt, "answer": answer} for prompt, answer in questions])
        printed = self.run_program("answers", "q.jsonl", "--tokenizer", "tokenizer.json", "--end", END, "-o", "q.safetensors",
                                   "--seq", "24", "--packed")
        samples = self.read_samples("q.safetensors")
        self.assertIn(f"{len(samples['tokens'])} samples of 24 tokens, packed from 12, with ", printed)
        self.assertEqual(sorted(samples), ["labels", "positions", "segments", "tokens"])
        found = []
        for tokens, labels, segments, positions in zip(*(samples[name] for name in ("tokens", "labels", "segments", "positions"))):
            runs = [list(run) for _, run in itertools.groupby(range(24), key=lambda position: segments[position])]
            self.assertEqual([segments[run[0]] for run in runs if segments[run[0]] >= 0],
                             list(range(sum(segments[run[0]] >= 0 for run in runs))))
            for run in runs:
                self.assertEqual([positions[at] for at in run], list(range(len(run))))
                if segments[run[0]] < 0: # padding, at the end
                    self.assertEqual(run[-1], 23)
                    self.assertTrue(all(tokens[at] == end and labels[at] == -100 for at in run))
                else: # the end of an answer is a label alone
                    found.append(([tokens[at] for at in run], [labels[at] for at in run]))
        expected = []
        for prompt, answer in questions:
            before, after = tokenizer.encode(prompt).ids, tokenizer.encode(answer).ids + [end]
            expected.append(((before + after)[:-1], [-100] * (len(before) - 1) + after))
        self.assertEqual(sorted(found), sorted(expected))
        # No sample has room for all of another one.
        used = [sum(segment >= 0 for segment in row) for row in samples["segments"]]
        self.assertGreater(min(used) + sorted(used)[1], 24)

    def test_answers_that_are_too_long(self):
        tokenizer = self.tokenizer()
        self.write_lines("q.jsonl", [{"prompt": "x", "answer": "y"}, {"prompt": "x", "answer": " trains" * 20},
                                     {"prompt": "the " * 40, "answer": "y"}])
        arguments = ["answers", "q.jsonl", "--tokenizer", "tokenizer.json", "--end", END, "--seq", "16", "-o", "q.safetensors"]
        self.assertIn("of the answer do not fit --seq 16; give a larger --seq", self.run_program(*arguments, status=1))
        self.assertIn("1 samples", self.run_program(*arguments, "--too-long", "drop"))
        self.assertIn("2 samples of 16 tokens, 18 of which count in the loss; 2 cut, 0 dropped as too long, 1 left out",
                      self.run_program(*arguments, "--too-long", "cut"))
        self.assertEqual(len(tokenizer.encode("x").ids), 1) # so that 16 labels of the second sample count
        self.assertEqual([sum(label != -100 for label in row) for row in self.read_samples("q.safetensors")["labels"]], [2, 16])

    def test_errors_of_answers(self):
        self.tokenizer()
        self.write_lines("q.jsonl", [{"prompt": "", "answer": "y"}])
        self.write("q.txt", "text")
        arguments = ["answers", "--tokenizer", "tokenizer.json", "--end", END, "--seq", "16", "-o", "q.safetensors"]
        self.assertIn("the prompt has no tokens, so that nothing predicts the answer; give --begin",
                      self.run_program(*arguments, "q.jsonl", status=1))
        self.assertIn("q.txt: prompts and answers are fields of JSON, and the file is none", self.run_program(*arguments, "q.txt", status=1))
        self.assertIn('there is no field "question"; its fields are prompt, answer',
                      self.run_program(*arguments, "q.jsonl", "--prompt", "{question}", status=1))
        for template in ("{prompt", "prompt}"):
            self.assertIn("has a brace that names no field", self.run_program(*arguments, "q.jsonl", "--prompt", template, status=1))
        self.assertFalse((self.folder / "q.safetensors").exists())

    # Conversations

    CONVERSATION = [{"role": "system", "content": "the model"}, {"role": "user", "content": "x"},
                    {"role": "assistant", "content": " trains the world!"}, {"role": "user", "content": "Hello, 数据"},
                    {"role": "assistant", "content": "don't"}]
    PLAIN = ("{{ bos_token }}{% for message in messages %}<{{ message.role }}>{{ message.content }}{{ eos_token }}{{ '\\n' }}"
             "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}")
    MARKED = ("{{ bos_token }}{% for message in messages %}{% if message.role == 'assistant' %}<assistant>"
              "{% generation %}{{ message.content }}{{ eos_token }}{% endgeneration %}"
              "{% else %}<{{ message.role }}>{{ message.content }}{{ eos_token }}{% endif %}{{ '\\n' }}{% endfor %}")

    def conversation_text(self, messages):
        """What both templates write, piece by piece, and whether each counts: without jinja."""
        pieces = [("<s>", False)]
        for message in messages:
            is_answer = message["role"] == "assistant"
            pieces += [(f"<{message['role']}>", False), (message["content"] + END, is_answer), ("\n", "end" if is_answer else False)]
        return pieces

    def test_messages_by_a_chat_template(self):
        import_jinja2()
        tokenizer = self.tokenizer()
        conversations = [self.CONVERSATION, self.CONVERSATION[1:3], [{"role": "user", "content": "a\ud800"}, self.CONVERSATION[4]]]
        self.write_lines("c.jsonl", [])
        self.write("c.jsonl", "".join(json.dumps({"messages": each, "ask": each[:1]}) + "\n" for each in conversations))
        config = {"bos_token": {"content": "<s>"}, "eos_token": END}
        for name, template, counts_break in (("plain", self.PLAIN, True), ("marked", self.MARKED, False)):
            for where in ("jinja", "config", "list"):
                with self.subTest(name, where=where):
                    (self.folder / "chat_template.jinja").unlink(missing_ok=True)
                    named = [{"name": "other", "template": "{{ 1 / 0 }}"}, {"name": "default", "template": template}]
                    stored = {"jinja": "{{ 1 / 0 }}", "config": template, "list": named}[where]
                    self.write("tokenizer_config.json", json.dumps({**config, "chat_template": stored}))
                    if where == "jinja":
                        self.write("chat_template.jinja", template)
                    self.run_program("answers", "c.jsonl", "--messages", "--tokenizer", ".", "--seq", "100", "-o", "c.safetensors")
                    samples = self.read_samples("c.safetensors")
                    self.assertEqual(len(samples["tokens"]), len(conversations))
                    for row, messages in enumerate(conversations):
                        pieces = [(text.replace("\ud800", "\ufffd"), counts) for text, counts in self.conversation_text(messages)]
                        encoding = tokenizer.encode("".join(text for text, _ in pieces))
                        characters = [counts is True or (counts == "end" and counts_break) for text, counts in pieces for _ in text]
                        counted = [any(characters[begin:end]) for begin, end in encoding.offsets]
                        length = len(encoding.ids)
                        self.assertLess(length, 100)
                        self.assertEqual(samples["tokens"][row][:length], encoding.ids)
                        self.assertEqual(set(samples["tokens"][row][length:]), {tokenizer.token_to_id(END)})
                        expected = [token if counts else -100 for token, counts in zip(encoding.ids[1:], counted[1:])]
                        self.assertEqual(samples["labels"][row], expected + [-100] * (100 - len(expected)))
                        # The labels alone are what the assistant says.
                        self.assertEqual(tokenizer.decode([label for label in expected if label != -100], skip_special_tokens=False),
                                         "".join(message["content"] + END + "\n" * counts_break for message in messages
                                                 if message["role"] == "assistant"))
        # Another field, in which the assistant says nothing.
        self.assertIn("no sample is left: 0 are too long, 3 have no answer",
                      self.run_program("answers", "c.jsonl", "--messages", "ask", "--tokenizer", ".", "--seq", "100", "-o",
                                       "d.safetensors", status=1))
        printed = self.run_program("answers", "c.jsonl", "--messages", "--tokenizer", ".", "--seq", "40", "--too-long", "drop", "-o",
                                   "d.safetensors")
        self.assertIn("dropped as too long", printed)

    def test_templates_that_go_wrong(self):
        import_jinja2()
        self.tokenizer()
        self.write_lines("c.jsonl", [{"messages": self.CONVERSATION}])
        arguments = ["answers", "c.jsonl", "--messages", "--tokenizer", ".", "--seq", "100", "-o", "c.safetensors"]

        def refused(expected, template=None, *more):
            if template is not None:
                self.write("chat_template.jinja", template)
            error = self.run_program(*arguments, *more, status=1)
            self.assertIn(expected, error)
            self.assertTrue(error.startswith("error: ") and error.count("\n") == 1, error)

        refused("tokenizer.json has no chat template")
        refused("chat_template.jinja: the chat template cannot be read: ", "{% if %}")
        refused("c.jsonl: line 1: the chat template of chat_template.jinja refuses it: roles must alternate",
                "{{ raise_exception('roles must alternate') }}")
        refused("refuses it: ", "{{ messages.append(1) }}")
        refused("refuses it: ", "{{ ''.__class__.__mro__ }}")
        refused("refuses it: ", "{{ messages[0].content + 1 }}")
        # Earlier messages are left out, so that the beginning is another one.
        refused("message 2 is of the assistant, and the chat template of chat_template.jinja writes the messages up to it otherwise",
                "{% for message in messages %}{% if loop.last %}{{ message.content }}{% endif %}{% endfor %}")
        refused("--prompt does not go with --messages", self.PLAIN, "--prompt", "x")
        for messages in ([], "text", [1], [{"content": "x"}], {"role": "user"}):
            self.write_lines("c.jsonl", [{"messages": messages}])
            refused('c.jsonl: line 1: "messages" is no list of messages such as')
        self.write_lines("c.jsonl", [{"prompt": "x"}])
        refused('c.jsonl: line 1: there is no field "messages"; its fields are prompt')
        self.write_lines("c.jsonl", [{"messages": [{"role": "assistant", "content": "\ufdd0"}]}])
        refused("the texts have U+FDD0 or U+FDD1", self.MARKED)

    # From text to text

    @unittest.skipUnless((PROGRAMS / "dtc-import").exists(), "the compiler is not built")
    def test_training_and_generation(self):
        tokenizer = self.tokenizer()
        config = json.loads((ROOT / "examples" / "gpt2-tiny" / "config.json").read_text())
        config.update(vocab_size=tokenizer.get_vocab_size(), n_embd=32, n_layer=1, n_head=2)
        self.write("config.json", json.dumps(config))
        self.write_lines("q.jsonl", [{"prompt": "the model", "answer": " trains"}] * 8)
        self.run_program("answers", "q.jsonl", "--tokenizer", "tokenizer.json", "--end", END, "--seq", "16", "-o",
                         "q.safetensors")
        self.run_program("config.json", "--batch", "4", "--seq", "16", "--ignore-index", "-100", "-o", "m.mlir",
                         program="dtc-import")
        self.run_program("m.mlir", "--mesh", "dp=2", "-o", "train.plan", program="dtc-compile")
        self.run_program("train.plan", "--data", "q.safetensors", "--steps", "120", "--lr", "0.01", "--save", "w.safetensors",
                         program="dtc-run")
        self.run_program("config.json", "--batch", "1", "--seq", "16", "-o", "g.mlir", program="dtc-import")
        self.run_program("g.mlir", "--mode", "generate", "-o", "generate.plan", program="dtc-compile")
        self.run_program("encode", "the model", "--tokenizer", "tokenizer.json", "-o", "prompt.bin")
        self.run_program("generate", "generate.plan", "--prompt", "prompt.bin", "--init", "w.safetensors", "--max-new-tokens", "8",
                         "--stop-token", tokenizer.token_to_id(END), "--tokens", "out.jsonl", program="dtc-run")
        line = json.loads(self.run_program("decode", "out.jsonl", "--tokenizer", "tokenizer.json"))
        self.assertEqual(line, {"prompt": "the model", "tokens": f" trains{END}"})

    def test_errors_of_decode(self):
        self.tokenizer()
        arguments = ["--tokenizer", "tokenizer.json"]
        self.write_lines("a.jsonl", [{"prompt": [1], "tokens": [2, 600000]}])
        self.assertIn("600000 is no token of tokenizer.json", self.run_program("decode", "a.jsonl", *arguments, status=1))
        self.write_lines("b.jsonl", [{"prompt": [1]}])
        self.assertIn('there is no list "tokens"', self.run_program("decode", "b.jsonl", *arguments, status=1))
        (self.folder / "c.u32").write_bytes(b"12345")
        self.assertIn("its 5 bytes are not a multiple of the 4 of a token",
                      self.run_program("decode", "c.u32", *arguments, status=1))
        self.write("d.txt", "text")
        self.assertIn("d.txt: dtc-run --tokens writes JSON lines, and files of tokens have names with .bin or .u32, and the file is none",
                      self.run_program("decode", "d.txt", *arguments, status=1))
        self.assertIn("c.bin: No such file", self.run_program("decode", "c.bin", *arguments, status=1))


if __name__ == "__main__":
    unittest.main()
