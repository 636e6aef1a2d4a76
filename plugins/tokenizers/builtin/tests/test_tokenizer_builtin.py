"""The built-in tokenizer: the right vocabulary, the right ids, no network."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import socket
import string
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from aiperf import BadTokenizer
from aiperf_tokenizer_builtin import NAMES, Builtin, O200kBase, plain, remembered
from aiperf_tokenizer_builtin.contract import BuiltinContract
from aiperf_tokenizer_builtin.vocabulary import pack, ranks, read, unpack

GOLDEN = json.loads((Path(__file__).parent / "o200k_base_golden.json").read_text())["texts"]

PLAIN_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # stated in tiktoken_ext/openai_public.py


@pytest.fixture(scope="module")
def builtin() -> O200kBase:
    return Builtin().open("builtin")


def test_the_packaged_data_is_the_published_merge_table() -> None:
    plain = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks().items())
    assert hashlib.sha256(plain).hexdigest() == PLAIN_SHA256


def test_the_pattern_is_tiktokens_own() -> None:
    source = pytest.importorskip("tiktoken_ext.openai_public")
    from aiperf_tokenizer_builtin.vocabulary import PATTERN

    text = Path(source.__file__).read_text().partition("def o200k_base()")[2].partition("return {")[0]
    branches = [line.strip()[4:-4] for line in text.splitlines() if line.strip().startswith('r"""')]
    assert "|".join(branches) == PATTERN


@pytest.mark.parametrize("row", GOLDEN, ids=[row["name"] for row in GOLDEN])
def test_ids_are_those_of_an_independent_encoder(builtin: O200kBase, row: dict) -> None:
    assert builtin.encode(row["text"]) == row["ids"]
    assert builtin.count(row["text"]) == len(row["ids"])
    assert builtin.decode(row["ids"]) == row["text"]


def test_the_corpus_has_twenty_scripts_code_and_emoji() -> None:
    names = {row["name"] for row in GOLDEN}
    assert {"greek", "russian", "thai", "hindi", "chinese", "korean", "amharic", "python", "json", "emoji"} <= names
    assert len(GOLDEN) >= 50


def test_every_ordinary_id_is_below_size_and_stands_for_something(builtin: O200kBase) -> None:
    assert builtin.size == 199_998
    assert builtin.decode([builtin.size - 1]) != ""
    assert builtin.decode([0]) == "!"


def test_a_broken_character_becomes_the_replacement_character(builtin: O200kBase) -> None:
    ids = builtin.encode("𒀭")
    assert len(ids) > 1
    assert builtin.decode(ids[:1]).startswith("\ufffd")
    assert builtin.decode(ids) == "𒀭"


def test_names_of_special_tokens_are_plain_text(builtin: O200kBase) -> None:
    ids = builtin.encode("<|endoftext|>")
    assert len(ids) > 1
    assert max(ids) < builtin.size


def test_a_lone_surrogate_is_encoded_as_the_replacement_character(builtin: O200kBase) -> None:
    assert builtin.decode(builtin.encode("a\ud800b")) == "a\ufffdb"


@pytest.mark.parametrize("blank", [" ", "\n", "\t "])
def test_a_blank_of_a_million_characters_is_encoded(builtin: O200kBase, blank: str) -> None:
    text = "a" + blank * (1_000_000 // len(blank)) + "b"
    ids = builtin.encode(text)
    assert builtin.decode(ids) == text
    assert builtin.count(text) == len(ids)


def test_cutting_long_blanks_leaves_long_texts_alone(builtin: O200kBase) -> None:
    sentence = " The  quick\n\nbrown fox,   it jumps."
    many = 20_000
    assert len(sentence) * many > 500_000
    assert builtin.encode(sentence * many) == builtin.encode(sentence) * many


def test_opening_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert O200kBase().encode("hello world") == [24912, 2375]


def test_opening_twice_holds_one_vocabulary() -> None:
    first = Builtin().open("builtin")
    tracemalloc.start()
    second = Builtin().open("Builtin")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert second is first
    assert held < 100_000


@pytest.mark.parametrize(("name", "known"), [("builtin", True), (" BUILTIN", True), ("./builtin", False), ("gpt2", False)])
def test_only_builtin_is_recognised(name: str, known: bool) -> None:
    assert Builtin().recognises(name) is known


def test_the_manifest_has_every_further_name() -> None:
    manifest = (Path(plain.__file__).parent / "aiperf.yaml").read_text()
    (line,) = [line for line in manifest.splitlines() if "aliases:" in line]
    assert line.partition("[")[2].rstrip("]").split(", ") == list(NAMES[1:])


def test_tiktokens_names_open_the_same_tokenizer() -> None:
    assert Builtin().open("gpt-4o") is Builtin().open("GPT_4o") is Builtin().open("o200k_base") is Builtin().open("builtin")


def test_another_name_is_refused_with_a_hint() -> None:
    with pytest.raises(BadTokenizer) as caught:
        Builtin().open("gpt2")
    assert "gpt2" in caught.value.message
    assert "--tokenizer builtin" in caught.value.hints[0]


def test_packing_keeps_every_byte() -> None:
    tokens = list(ranks())
    assert unpack(pack(tokens)) == tokens


@pytest.mark.parametrize("packed", [b"", b"garbage", zlib.compress(b"a\xffb\xff\xffc")])
def test_damaged_data_is_said(packed: bytes) -> None:
    with pytest.raises(BadTokenizer, match="damaged"):
        unpack(packed)


def full_encoding() -> O200kBase:
    """A tokenizer that has loaded its vocabulary."""
    tokenizer = O200kBase()
    tokenizer.encode("\u00e4")
    assert tokenizer._plain is None
    return tokenizer


def plain_texts() -> list[str]:
    """Prose and code of this repository, and words of random characters."""
    here = Path(__file__).parents[1]
    files = [here / "README.md", *sorted(here.glob("src/*/*.py")), *sorted(Path(json.__file__).parent.glob("*.py"))]
    texts = [part for file in files for part in file.read_text().split("\n\n")]
    draw = random.Random(7)
    characters = ["".join(map(chr, range(128))), string.ascii_letters, " \n\t\r'sdmtreSDMTREL", "AaBb  \n/.,\x1c\x0b\x0c"]
    drawn = ["".join(draw.choices(draw.choice(characters), k=draw.randrange(60))) for _ in range(5000)]
    return [text for text in [*texts, *drawn, *(row["text"] for row in GOLDEN)] if text.isascii()]


def test_plain_text_has_the_ids_of_the_whole_vocabulary(builtin: O200kBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "_MOST_MERGED", 10**9)
    small, full = plain.Plain(), full_encoding()
    compared = 0
    for text in plain_texts():
        try:
            ids = small.encode(text)
        except plain.TooMuch:  # a word of many characters
            continue
        compared += 1
        assert ids == full.encode(text), text
        assert small.count(text) == len(ids)
        assert small.decode(ids) == text
    assert compared > 5000


def test_the_packaged_ascii_tokens_are_those_of_the_vocabulary() -> None:
    assert read("o200k_base.ascii") == plain.pack(list(ranks()))


@pytest.mark.parametrize(
    "unusual",
    ["caf\u00e9", "x" * 200, "".join(random.Random(3).choices(string.ascii_lowercase + " ", k=60_000))],
    ids=["not ASCII", "a long word", "many unusual words"],
)
def test_unusual_text_loads_the_vocabulary(unusual: str) -> None:
    tokenizer = O200kBase()
    assert tokenizer.encode("hello world") == [24912, 2375]
    assert tokenizer._plain is not None
    assert tokenizer.encode(unusual) == full_encoding().encode(unusual)
    assert tokenizer._plain is None
    assert tokenizer.decode([24912, 2375]) == "hello world"
    assert tokenizer.count("hello world") == 2


@pytest.mark.parametrize("most", [0, 50, 32_768])
def test_counts_and_texts_of_remembered_parts_are_those_of_the_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST", most)
    tokenizer, full, draw = O200kBase(), full_encoding(), random.Random(5)
    tokenizer.count("caf\u00e9")  # loads the vocabulary
    for text in [*plain_texts(), *(row["text"] for row in GOLDEN)]:
        ids = full.encode(text)
        assert tokenizer.count(text) == len(ids), text
        some = ids[draw.randrange(len(ids) + 1) :]  # may begin inside of a character
        for _ in range(2):
            assert tokenizer.decode(some) == full.decode(some)
    assert (tokenizer._counts is None) == (most < 1000)
    assert len(tokenizer._texts) <= most + max(map(len, (row["ids"] for row in GOLDEN)))


def test_remembered_pieces_are_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = O200kBase()
    tokenizer.count("caf\u00e9")
    text = "Shall I compare thee to a summer's day?"
    assert tokenizer.count(text) == 11
    monkeypatch.setattr(tokenizer, "encode", None)
    monkeypatch.setattr(tokenizer._counts._pieces, "_encode", None)
    assert tokenizer.count(f"{text} day? I compare thee") == 16


def test_ids_that_were_never_encoded_are_decoded() -> None:
    assert O200kBase().decode([24912, 2375]) == "hello world"


def test_plain_text_imports_no_tiktoken() -> None:
    act = "from aiperf_tokenizer_builtin import Builtin\nprint(Builtin().open('builtin').count('To be, or not to be'))"
    code = f"{act}\nimport sys\nassert not {{'tiktoken', 'regex', 'importlib.resources'}} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == "7\n"


class TestBuiltinKeepsTheContract(BuiltinContract):
    pass
