"""dtc-data answers: samples of prompts and answers, in which the answers alone count in the loss."""

import array
import bisect
import collections
import json
import struct

import chat_template
import documents
from problem import Problem
from token_file import little_endian, write_renamed
from vocabulary import Vocabulary

# The value for dtc-import --ignore-index.
IGNORED = -100


def add_arguments(parser):
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="JSON lines or JSON arrays, each also compressed by gzip; or quoted patterns of a shell")
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json, or a folder that has one")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.safetensors",
                        help="the samples: tokens and labels, both i32 [samples, seq], and with --packed segments and "
                             "positions")
    parser.add_argument("--seq", type=int, required=True, metavar="N", help="tokens of a sample")
    parser.add_argument("--packed", action="store_true",
                        help="put as many prompts with their answers into a sample as fit, for a model of dtc-import --packed")
    parser.add_argument("--prompt", metavar="TEXT",
                        help="the prompt; {NAME} stands for a field of the object (default: {prompt})")
    parser.add_argument("--answer", metavar="TEXT", help="the answer, likewise (default: {answer})")
    parser.add_argument("--messages", nargs="?", const="messages", metavar="NAME",
                        help="make text of the conversation in this field of the object (messages, if no name is given) by the "
                             "tokenizer's chat template; the assistant's turns count")
    parser.add_argument("--end", metavar="TOKEN",
                        help="the token after an answer, or none (default: eos_token of tokenizer_config.json)")
    parser.add_argument("--begin", metavar="TOKEN", help="a token before each prompt")
    parser.add_argument("--too-long", choices=("error", "drop", "cut"), default="error",
                        help="what becomes of a sample of more than --seq tokens: an error, dropped, or cut at its end; the "
                             "number is printed (default: error)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads that encode (default: one a core)")


def fill(template, value, place):
    """The template with the fields of an object in it; {{ and }} are braces."""
    text, rest = "", template
    while rest:
        position = min((at for at in (rest.find("{"), rest.find("}")) if at >= 0), default=len(rest))
        text, rest = text + rest[:position], rest[position:]
        if rest[:2] in ("{{", "}}"):
            text, rest = text + rest[0], rest[2:]
        elif rest:
            name, closed, after = rest[1:].partition("}")
            if rest[0] == "}" or not closed:
                raise Problem(f'"{template}" has a brace that names no field; write {{{{ or }}}} for a brace')
            text, rest = text + documents.text_of(value, name, place), after
    return text


def read_objects(options):
    """All objects, and the place of each."""
    objects = []
    for path in documents.find_files(options.files):
        for document in documents.read_documents(path, needs_json="prompts and answers are fields of JSON"):
            objects.append((document.text, document.place))
    if not objects:
        raise Problem("the files have no samples")
    return objects


def encode_answers(options, vocabulary, end):
    """Of each object the tokens, which of them count, what they are, and the place."""
    before = [] if options.begin is None else [vocabulary.find("--begin", options.begin)]
    after = [] if end is None else [end]
    objects = read_objects(options)
    prompts, answers = ([fill(template or default, value, place) for value, place in objects]
                        for template, default in ((options.prompt, "{prompt}"), (options.answer, "{answer}")))
    for prompt, answer, (_, place) in zip(vocabulary.encode(prompts), vocabulary.encode(answers), objects):
        prompt, answer = before + prompt, answer + after
        if not prompt:
            raise Problem(f"{place}: the prompt has no tokens, so that nothing predicts the answer; give --begin")
        yield (prompt + answer, [False] * len(prompt) + [True] * len(answer),
               f"{len(prompt)} tokens of the prompt and {len(answer)} of the answer", place)


def encode_messages(options, vocabulary):
    """The same of conversations. The whole text is encoded at once."""
    template = chat_template.ChatTemplate(vocabulary)
    objects = read_objects(options)
    texts, parts = zip(*(template.apply(value, options.messages, place) for value, place in objects))
    for (tokens, places), counted, (_, place) in zip(vocabulary.encode_with_places(texts), parts, objects):
        yield tokens, chat_template.count_tokens(places, counted), f"{len(tokens)} tokens of the conversation", place


def make_example(tokens, counted, seq):
    """Up to seq tokens, and as the label of each the next token where that counts."""
    labels = [token if counts else IGNORED for token, counts in zip(tokens[1:seq + 1], counted[1:])]
    return tokens[:seq], labels


def pack(examples, seq):
    """Lists of the examples that share a sample: the longest ones first, each to where it leaves the least room (best fit
    decreasing)."""
    samples = []
    with_room = collections.defaultdict(collections.deque) # samples by the tokens that there is room for
    rooms = [] # with a sample, ascending
    for example in sorted(examples, key=lambda example: -len(example[1])):
        need = len(example[1])
        at = bisect.bisect_left(rooms, need)
        if at == len(rooms):
            number, room = len(samples), seq
            samples.append([])
        else:
            room = rooms[at]
            number = with_room[room].popleft()
            if not with_room[room]:
                del rooms[at]
        samples[number].append(example)
        room -= need
        if not with_room[room]:
            bisect.insort(rooms, room)
        with_room[room].append(number)
    return samples


def make_tensors(examples, options, padding):
    """The tensors by name, each one sample after the other. Without packing an example is a sample."""
    seq = options.seq
    names = ("tokens", "labels") + (("segments", "positions") if options.packed else ())
    tensors = {name: array.array("i") for name in names}
    for sample in pack(examples, seq) if options.packed else [[example] for example in examples]:
        rows = {name: [] for name in names}
        for number, (tokens, labels) in enumerate(sample):
            if options.packed: # the last token is a label alone
                tokens = tokens[:len(labels)]
                rows["segments"] += [number] * len(tokens)
                rows["positions"] += range(len(tokens))
            rows["tokens"] += tokens
            rows["labels"] += labels
        rest = seq - len(rows["tokens"])
        rows["tokens"] += [padding] * rest
        rows["labels"] += [IGNORED] * (seq - len(rows["labels"]))
        if options.packed:
            rows["segments"] += [-1] * rest
            rows["positions"] += range(rest)
        for name, row in rows.items():
            tensors[name].extend(row)
    return tensors


def safetensors(tensors, seq):
    """The bytes of a file of i32 tensors [samples, seq]."""
    header, size = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "I32", "shape": [len(values) // seq, seq], "data_offsets": [size, size + 4 * len(values)]}
        size += 4 * len(values)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(little_endian(values).tobytes() for values in tensors.values())


def run(options, stop):
    del stop # the samples are written at once, at the end
    if options.seq < 1:
        raise Problem(f"--seq is {options.seq}, expected at least 1")
    for name in ("prompt", "answer", "begin"):
        if options.messages is not None and getattr(options, name) is not None:
            raise Problem(f"--{name} does not go with --messages: the chat template makes the whole text")
    vocabulary = Vocabulary(options.tokenizer, options.threads)
    # With a chat template, which writes the ends of turns, it only fills samples.
    end = vocabulary.end(options.end, is_needed=options.messages is None)
    encoded = encode_answers(options, vocabulary, end) if options.messages is None else encode_messages(options, vocabulary)
    examples = []
    counts = {"cut": 0, "dropped": 0, "empty": 0}
    for tokens, counted, what, place in encoded:
        if len(tokens) > options.seq + 1:
            if options.too_long == "error":
                raise Problem(f"{place}: {what} do not fit --seq {options.seq}; give a larger --seq, --too-long drop or "
                              "--too-long cut")
            counts["dropped" if options.too_long == "drop" else "cut"] += 1
            if options.too_long == "drop":
                continue
        example = make_example(tokens, counted, options.seq)
        if all(label == IGNORED for label in example[1]): # cut within the prompt, or an empty answer without an end
            counts["empty"] += 1
            continue
        examples.append(example)
    if not examples:
        raise Problem(f"no sample is left: {counts['dropped']} are too long, {counts['empty']} have no answer")
    tensors = make_tensors(examples, options, end or 0)
    write_renamed(options.output, safetensors(tensors, options.seq))
    count = len(tensors["labels"]) // options.seq
    counted = sum(label != IGNORED for label in tensors["labels"])
    packed = ""
    if options.packed:
        padded = sum(segment < 0 for segment in tensors["segments"]) / len(tensors["segments"])
        packed = f", packed from {len(examples)}, with {padded:.1%} padding"
    print(f"{options.output}: {count} samples of {options.seq} tokens{packed}, {counted} of which count in the "
          f"loss; {counts['cut']} cut, {counts['dropped']} dropped as too long, {counts['empty']} left out without an answer")
