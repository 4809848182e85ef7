"""Conversations to text by the chat template of a tokenizer, and which parts of it the assistant says."""

import datetime
import json

import documents
from problem import Problem

# The marks that {% generation %} puts around its text while a template is rendered: characters that no text has
# (noncharacters).
BEGIN, END = "\ufdd0", "\ufdd1"


def import_jinja():
    try:
        import jinja2
        import jinja2.ext
        import jinja2.sandbox
    except ImportError as error:
        raise Problem(f"the Python package jinja2, which chat templates need, cannot be imported ({error}); install it, such as "
                      "by: python3 -m pip install jinja2") from error
    return jinja2


def make_environment():
    """The environment that transformers renders chat templates in."""
    jinja2 = import_jinja()

    class Generation(jinja2.ext.Extension):
        """{% generation %} ... {% endgeneration %}: what is between them, the assistant says."""
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("mark"), [], [], body).set_lineno(line)

        @staticmethod
        def mark(caller):
            return BEGIN + caller() + END

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                               extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment


def find_template(vocabulary):
    """The text of the template, and the file that has it: chat_template.jinja, or tokenizer_config.json."""
    path = vocabulary.path.with_name("chat_template.jinja")
    try:
        return path.read_text(encoding="utf-8"), path
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise Problem(f"{path}: {error}") from error
    path = vocabulary.path.with_name("tokenizer_config.json")
    template = vocabulary.config().get("chat_template")
    if isinstance(template, list): # several, by name
        named = {each.get("name"): each.get("template") for each in template if isinstance(each, dict)}
        template = named.get("default")
    if not isinstance(template, str):
        raise Problem(f"{vocabulary.path} has no chat template, which makes text of messages; it belongs in chat_template.jinja "
                      'beside it, or in "chat_template" of tokenizer_config.json')
    return template, path


class ChatTemplate:
    def __init__(self, vocabulary):
        text, self.path = find_template(vocabulary)
        environment = make_environment()
        self.tokens = vocabulary.special_tokens()
        try:
            self.template = environment.from_string(text)
        except Exception as error: # a template may have any
            raise Problem(f"{self.path}: the chat template cannot be read: {error}") from error
        self.marks = "endgeneration" in text

    def render(self, messages, place, **options):
        try:
            return self.template.render(messages=messages, **{"tools": None, "documents": None, "add_generation_prompt": False,
                                                              **self.tokens, **options})
        except Exception as error: # a template may raise any
            raise Problem(f"{place}: the chat template of {self.path} refuses it: {error}") from error

    def apply(self, value, field, place):
        """The text of a conversation, and the parts of it that count: the first character of each and the one after it. `value`
        is an object of a file, `field` the name of its messages."""
        messages = documents.field_of(value, field, place)
        if not isinstance(messages, list) or not messages or not all(
                isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
            raise Problem(f'{place}: "{field}" is no list of messages such as {{"role": "user", "content": "..."}}')
        options = {"tools": value["tools"]} if isinstance(value.get("tools"), list) else {}
        if self.marks:
            text, parts = split_marked(self.render(messages, place, **options), place)
        else:
            text, parts = self.find_turns(messages, place, options)
        return documents.replace_surrogates(text), parts

    def find_turns(self, messages, place, options):
        """Without {% generation %}: the text of a turn of the assistant is what its message adds to the text of those before it
        and the prompt for an answer."""
        whole = self.render(messages, place, **options)
        parts = []
        for number, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before = self.render(messages[:number], place, add_generation_prompt=True, **options) if number else ""
            after = self.render(messages[:number + 1], place, **options)
            if not after.startswith(before) or not whole.startswith(after):
                raise Problem(f"{place}: message {number} is of the assistant, and the chat template of {self.path} writes the "
                              "messages up to it otherwise by themselves than in the conversation; mark what counts by "
                              "{% generation %} and {% endgeneration %} in a chat_template.jinja")
            if len(after) > len(before):
                parts.append((len(before), len(after)))
        return whole, parts


def split_marked(text, place):
    """The text without its marks, and the parts between them."""
    result, parts, begin = "", [], None
    while text:
        at = min((found for found in (text.find(BEGIN), text.find(END)) if found >= 0), default=len(text))
        result += text[:at]
        mark, text = text[at:at + 1], text[at + 1:]
        if not mark:
            break
        if (mark == BEGIN) != (begin is None):
            raise Problem(f"{place}: the texts have U+FDD0 or U+FDD1, which are no characters, or {{% generation %}} is within "
                          "another one")
        if mark == END:
            if len(result) > begin:
                parts.append((begin, len(result)))
            begin = None
        else:
            begin = len(result)
    return result, parts


def count_tokens(places, parts):
    """Of tokens that stand for these places of a text, whether each is between the first and the last one of a part. One that
    has characters of it and others is of it."""
    counted, at = [False] * len(places), 0
    for part_begin, part_end in parts:
        while at < len(places) and places[at][1] <= part_begin:
            at += 1
        of_part = []
        while at < len(places) and places[at][0] < part_end:
            if places[at][0] < places[at][1]: # else it has no place
                of_part.append(at)
            at += 1
        if of_part:
            counted[of_part[0]:of_part[-1] + 1] = [True] * (of_part[-1] + 1 - of_part[0])
            at = of_part[-1] # it may reach into the next part
    return counted
