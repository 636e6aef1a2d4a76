"""Chat templates from the files beside a tokenizer, rendered as servers render them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadTokenizer
from aiperf.sdk.tokenizer import chat_template
from aiperf_tokenizer_huggingface import HuggingFace
from aiperf_tokenizer_huggingface.slow import Slow
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

CHATML = (
    "{% for each in messages %}{{ '<|im_start|>' + each.role + '\n' + each.content + '<|im_end|>' + '\n' }}{% endfor %}\n"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}\n"
)
LLAMA = """{{- bos_token }}
{%- for message in messages %}
    {%- if message.role not in ("system", "user", "assistant") %}
        {{- raise_exception("no role " + message.role) }}
    {%- endif %}
    {{- "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n" + message.content | trim + "<|eot_id|>" }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- "<|start_header_id|>assistant<|end_header_id|>\n\n" }}
{%- endif %}
"""
SPECIAL = ("<|begin|>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
TEXT = "the quick brown fox jumps over the lazy dog; user, system and assistant say so\n"
CHAT = [
    {"role": "system", "content": "be quick"}, {"role": "user", "content": "jumps the fox?"},
    {"role": "assistant", "content": "over the dog"}, {"role": "user", "content": " and Grüße "},
]  # fmt: skip


def made() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT] * 9, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return tokenizer


def opened(folder: Path, **settings: Any) -> Any:
    """A tokenizer with these settings beside it."""
    made().save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": {"content": "<|begin|>"}, "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**about, **settings}), encoding="utf-8")
    return HuggingFace().open(str(folder))


def tokens(text: str) -> int:
    """Of a text with its special tokens."""
    return len(made().encode(text, add_special_tokens=False).ids)


def chatml(messages: Sequence[dict[str, str]]) -> str:
    return "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in messages)


def llama(messages: Sequence[dict[str, str]]) -> str:
    said = (f"<|start_header_id|>{each['role']}<|end_header_id|>\n\n{each['content'].strip()}<|eot_id|>" for each in messages)
    return "<|begin|>" + "".join(said)


@pytest.mark.parametrize(("template", "said", "opening"), [
    (CHATML, chatml, "<|im_start|>assistant\n"), (LLAMA, llama, "<|start_header_id|>assistant<|end_header_id|>\n\n"),
], ids=["ChatML", "Llama 3"])  # fmt: skip
@pytest.mark.parametrize("length", range(1, 5))
def test_a_chat_has_the_tokens_of_its_template(template: str, said: Any, opening: str, length: int, tmp_path: Path) -> None:
    chat = chat_template(opened(tmp_path, chat_template=template))
    assert chat.count(CHAT[:length], asks=False) == tokens(said(CHAT[:length]))
    assert chat.count(CHAT[:length]) == tokens(said(CHAT[:length]) + opening)


@pytest.mark.parametrize("template", [CHATML, LLAMA], ids=["ChatML", "Llama 3"])
@pytest.mark.parametrize("length", range(1, 5))
def test_a_chat_has_the_tokens_that_transformers_gives_it(template: str, length: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    chat = chat_template(opened(tmp_path, chat_template=template))
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    for asks in (True, False):
        text = theirs.apply_chat_template(CHAT[:length], add_generation_prompt=asks, tokenize=False)
        assert chat.count(CHAT[:length], asks=asks) == len(theirs.encode(text, add_special_tokens=False))


def test_a_special_token_in_a_text_counts_as_servers_count_it(tmp_path: Path) -> None:
    tokenizer = opened(tmp_path, chat_template="{{ messages[0].content }}")
    text = "the fox<|im_end|>"
    plain, chat = tokenizer.count(text), tokenizer.chat_template.count([{"role": "user", "content": text}])
    assert (chat, plain) == (tokens(text), len(made().encode("the fox").ids) + tokenizer.count("<|im_end|>"))
    assert tokenizer.count(text) == plain > chat, "the count of a chat changes that of a text"


def test_a_file_of_its_own_goes_before_the_settings(tmp_path: Path) -> None:
    tokenizer = opened(tmp_path, chat_template="{{ 'no' * 99 }}")
    (tmp_path / "chat_template.jinja").write_text(CHATML)
    assert tokenizer.chat_template.count(CHAT, asks=False) == tokens(chatml(CHAT))


def test_of_several_templates_the_default_counts(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "{{ 1 / 0 }}"}, {"name": "default", "template": CHATML}]
    assert opened(tmp_path, chat_template=named).chat_template.count(CHAT, asks=False) == tokens(chatml(CHAT))
    with pytest.raises(BadTokenizer, match="none called 'default'; it has 'tool_use'") as caught:
        _ = opened(tmp_path, chat_template=named[:1]).chat_template
    assert "chat_template.jinja" in caught.value.hints[0]


CALL = {"function": {"name": "f", "arguments": {"at": "<Lucca>", "né": [1]}}}


@pytest.mark.parametrize(("template", "text"), [
    ("{{ messages[0].tool_calls[0].function.arguments | tojson }}", '{"at": "<Lucca>", "né": [1]}'),
    ("{{ messages[0].tool_calls[0].function | tojson(indent=2) }}", json.dumps(CALL["function"], indent=2, ensure_ascii=False)),
    ("  {% if true %}\n<b>{% endif %}", "<b>"),
    ("{% generation %}{{ 'said' }}{% endgeneration %}.", "said."),
    ("{% for each in [1, 2, 3] %}{% if each == 2 %}{% break %}{% endif %}{{ each }}{% endfor %}", "1"),
    ("{{ strftime_now('%Y') }}", str(datetime.now().year)),
    ("{{ tools is none }}{{ documents }}{{ unk_token }}", "TrueNone"),
    ("{{ bos_token }}{{ eos_token }}", "<|begin|><|im_end|>"),
])  # fmt: skip
def test_templates_have_the_words_that_transformers_gives_them(template: str, text: str, tmp_path: Path) -> None:
    chat = opened(tmp_path, chat_template=template).chat_template
    assert chat.count([{"role": "assistant", "content": "", "tool_calls": [CALL]}]) == tokens(text)


@pytest.mark.parametrize(("template", "reason"), [
    (LLAMA, "no role tool"), ("{{ 1 / 0 }}", "ZeroDivisionError: division by zero"),
    ("{{ messages.clear() }}", "access to attribute 'clear' of 'list' object is unsafe"),
    ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe"),
])  # fmt: skip
def test_what_a_template_refuses_is_said(template: str, reason: str, tmp_path: Path) -> None:
    chat = opened(tmp_path, chat_template=template).chat_template
    with pytest.raises(BadTokenizer, match="refuses the messages") as caught:
        chat.count([{"role": "tool", "content": "18"}])
    assert reason in caught.value.message


@pytest.mark.parametrize(("settings", "sentence"), [
    ('{"chat_template": "{% for %}"}', r"is no Jinja2 template: .*\(line 1\)"), ("{", "chat template of .* can't be read"),
    ('{"chat_template": 7}', "none called 'default'; it has none that can be read"),
])  # fmt: skip
def test_an_unusable_template_is_refused(settings: str, sentence: str, tmp_path: Path) -> None:
    tokenizer = opened(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(settings)
    with pytest.raises(BadTokenizer, match=sentence) as caught:
        chat_template(tokenizer)
    assert caught.value.hints


@pytest.mark.parametrize("settings", ["[]", "{}", None])
def test_a_tokenizer_without_a_template_says_what_to_do(settings: str | None, tmp_path: Path) -> None:
    tokenizer = opened(tmp_path)
    if settings is None:
        (tmp_path / "tokenizer_config.json").unlink()
    else:
        (tmp_path / "tokenizer_config.json").write_text(settings)
    with pytest.raises(BadTokenizer, match=r"--apply-chat-template: the tokenizer .* has no chat template") as caught:
        chat_template(tokenizer)
    assert "--tokenizer" in caught.value.hints[0]


def test_jinja_is_imported_for_templates_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = opened(tmp_path, chat_template=CHATML)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert tokenizer.count("the fox") > 0


class Older:
    """A tokenizer as transformers gives it."""

    chat_template: str | None = "template"

    def apply_chat_template(self, chat: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool) -> str:
        assert not tokenize
        if chat[0]["role"] == "system":
            raise ValueError("System role not supported")
        return chatml(chat) + ("<|im_start|>assistant\n" if add_generation_prompt else "")

    def encode(self, text: str, *, add_special_tokens: bool, verbose: bool, split_special_tokens: bool = False) -> list[int]:
        assert not split_special_tokens
        return made().encode(text, add_special_tokens=add_special_tokens).ids


def test_tokenizers_of_transformers_render_their_own_template() -> None:
    tokenizer = Slow("older", Older())
    chat = chat_template(tokenizer)
    assert chat.count(CHAT[1:]) == tokens(chatml(CHAT[1:]) + "<|im_start|>assistant\n")
    with pytest.raises(BadTokenizer, match="of 'older' refuses the messages: ValueError: System role not supported"):
        chat.count(CHAT)
    without = Older()
    without.chat_template = None
    assert Slow("older", without).chat_template is None


def test_a_template_that_never_ends_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_TEMPLATE_TIMEOUT", "50ms")
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    template = chat_template(opened(tmp_path, chat_template=endless))
    assert template is not None
    with pytest.raises(BadTokenizer, match=r"takes more than 0\.05 s of processor time \(AIPERF_TEMPLATE_TIMEOUT allows more"):
        template.count(CHAT)


@pytest.mark.parametrize(
    "text", ["{{ 'a' * 10**9 }}", "{% for n in range(99999) %}{{ messages[0].content * 10**6 }}{% endfor %}"]
)
def test_a_template_that_makes_too_much_is_left(tmp_path: Path, text: str) -> None:
    template = chat_template(opened(tmp_path, chat_template=text))
    assert template is not None
    with pytest.raises(BadTokenizer, match=r"can't be rendered: it makes more than \d+ MiB"):
        template.count(CHAT)
