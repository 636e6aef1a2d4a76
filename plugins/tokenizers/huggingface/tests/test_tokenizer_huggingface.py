"""Tokenizers from files and from a hub: local files need no network, and a missing network fails quickly."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf import BadTokenizer
from aiperf.sdk.tokenizer import chat_template, end_id, files
from aiperf_tokenizer_huggingface import HuggingFace
from aiperf_tokenizer_huggingface.contract import HuggingFaceContract
from aiperf_tokenizer_huggingface.options import HuggingFaceOptions
from huggingface_hub import constants
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXT = ["the quick brown fox jumps over the lazy dog", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich"]


@pytest.fixture(autouse=True)
def the_environment_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def byte_level() -> Tokenizer:
    """A small tokenizer with everything that must not show: special tokens, a template, padding, truncation."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"],
        show_progress=False,
    )  # fmt: skip
    made.train_from_iterator(TEXT, trainer)
    made.add_special_tokens(["<|turn|>"])
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    made.enable_truncation(8)
    made.enable_padding(length=64)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    byte_level().save(str(path / "tokenizer.json"))
    return path


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any use of the network fails the test."""

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def source(revision: str | None = None, *, trust: bool = False, patience_s: float = 5.0) -> HuggingFace:
    options = HuggingFaceOptions(tokenizer_revision=revision, tokenizer_trust_remote_code=trust)
    return HuggingFace(options, patience_s=patience_s)


# Files


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize("offline", [None, "1"])
def test_a_directory_and_a_file_are_read_without_the_hub(
    folder: Path, offline: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if offline is not None:
        monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    for path in (folder, folder / "tokenizer.json"):
        tokenizer = HuggingFace().open(str(path))
        assert tokenizer.decode(tokenizer.encode(TEXT[1])) == TEXT[1]
        assert tokenizer.name == str(path)


def test_a_local_tokenizer_imports_neither_the_hub_nor_transformers(folder: Path) -> None:
    script = (
        "import sys\nfrom aiperf_tokenizer_huggingface import HuggingFace\n"
        f"HuggingFace().open({str(folder)!r}).encode('x')\n"
        "print([name for name in ('huggingface_hub', 'transformers', 'pydantic', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=600)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_special_tokens_are_neither_added_nor_recognised(folder: Path) -> None:
    tokenizer = HuggingFace().open(str(folder))
    assert 0 not in tokenizer.encode("the dog")
    assert tokenizer.count("<s>") > 1
    assert tokenizer.count("<|turn|>") > 1
    assert tokenizer.decode(tokenizer.encode("a<s><|turn|>b")) == "a<s><|turn|>b"


def test_long_texts_are_not_cut_and_short_ones_not_padded(folder: Path) -> None:
    tokenizer = HuggingFace().open(str(folder))
    assert tokenizer.count("z" * 500) == len(tokenizer.encode("z" * 500)) > 64
    assert tokenizer.count("a") == 1
    assert tokenizer.encode("") == []


def test_size_leaves_out_tokens_that_were_added(folder: Path) -> None:
    tokenizer = HuggingFace().open(str(folder))
    assert tokenizer.size == byte_level().get_vocab_size() - 1
    assert max(tokenizer.encode("".join(TEXT))) < tokenizer.size


def test_broken_characters_become_the_replacement_character(folder: Path) -> None:
    tokenizer = HuggingFace().open(str(folder))
    assert tokenizer.decode(tokenizer.encode("漢")[:1]) == "\ufffd"
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.count("a\ud800b") == tokenizer.count("a\ufffdb")


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b"\xff\xfe"])
def test_a_file_without_a_tokenizer_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(BadTokenizer, match="can't be read") as caught:
        HuggingFace().open(str(path))
    assert str(path) in caught.value.message
    assert "--tokenizer builtin" in caught.value.hints[0]


def test_a_directory_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTokenizer, match=r"has no tokenizer: it lacks tokenizer\.json"):
        HuggingFace().open(str(tmp_path))


def test_a_local_tokenizer_has_no_revision(folder: Path) -> None:
    with pytest.raises(BadTokenizer, match="--tokenizer-revision v2 has no meaning"):
        source("v2").open(str(folder))


@pytest.mark.parametrize("name", ["./missing", "/no/such/file.json", "a b", "a/b/c", "..", "org/..", "x" * 97, ""])
def test_invalid_names_are_refused_without_the_hub(name: str, tmp_path: Path) -> None:
    if name != "..":
        assert not HuggingFace().recognises(name) or Path(name).exists()
    with pytest.raises(BadTokenizer) as caught:
        HuggingFace().open(name)
    assert "--tokenizer builtin" in " ".join(caught.value.hints)


@pytest.mark.parametrize("name", ["gpt2", "org/model", "Org-1/Model_2.5-b", "_x/y"])
@pytest.mark.usefixtures("unreachable")
def test_hub_ids_are_recognised_without_asking(name: str) -> None:
    assert HuggingFace().recognises(name)


# Files for other machines


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize("given", ["directory", "file"])
def test_files_of_a_local_tokenizer_open_it_in_another_directory(given: str, folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    (folder / "chat_template.jinja").write_text("{% for message in messages %}<{{ message.content }}>{% endfor %}")
    (folder / "model.safetensors").write_text("not for a tokenizer")
    path = folder
    if given == "file":
        path = (folder / "tokenizer.json").rename(folder / "mine.json")
    opened = source().open(str(path))
    sent = files(opened)
    assert sorted(sent) == ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"]
    there = tmp_path / "there"
    there.mkdir()
    for name, each in sent.items():
        each.rename(there / name)
    other = source("v1").open_from(there, str(path))  # a revision is of the hub
    assert other.name == str(path)
    assert [other.encode(text) for text in TEXT] == [opened.encode(text) for text in TEXT]
    assert end_id(other) == 1 and chat_template(other).count([{"content": "the"}]) == len(other.encode("<the>"))


def test_an_empty_directory_gives_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(BadTokenizer, match="the tokenizer 'mine' can't be read"):
        source().open_from(tmp_path, "mine")


# What needs transformers


def older_files(path: Path) -> Path:
    path.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "dog", "##s", "a", ".", "s", "["]
    (path / "vocab.txt").write_text("\n".join(words) + "\n")
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", "model_max_length": 4}))
    return path


@pytest.mark.usefixtures("unreachable")
def test_older_files_are_read_by_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    tokenizer = HuggingFace().open(str(older_files(tmp_path / "bert")))
    assert tokenizer.encode("the quick dogs") == [5, 6, 7, 8]
    assert tokenizer.count("the quick dog . a") == 5
    assert tokenizer.decode([5, 6, 7, 8]) == "the quick dogs"
    assert tokenizer.size == 13
    assert 4 not in tokenizer.encode("[MASK]")


@pytest.mark.usefixtures("unreachable")
def test_trusted_code_is_left_to_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    tokenizer = source(trust=True).open(str(older_files(tmp_path / "bert")))
    assert type(tokenizer).__name__ == "Slow"


def test_older_files_without_transformers_name_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadTokenizer, match=r"needs the package transformers: it has no tokenizer\.json") as caught:
        HuggingFace().open(str(older_files(tmp_path / "bert")))
    assert caught.value.hints[0] == "pip install 'aiperf-tokenizer-huggingface[transformers]'"


def test_unreadable_older_files_are_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "tokenizer.model").write_bytes(b"junk")
    with pytest.raises(BadTokenizer, match="is unavailable") as caught:
        HuggingFace().open(str(tmp_path))
    assert "\n" not in caught.value.message


# The hub


class Hub(BaseHTTPRequestHandler):
    """Answers as a model hub does for files of one repository."""

    files: ClassVar[dict[str, bytes]] = {}
    error: ClassVar[tuple[int, str] | None] = None
    silent: ClassVar[threading.Event | None] = None
    asked: ClassVar[list[str]] = []

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.reply(body=False)

    def do_GET(self) -> None:
        self.reply(body=True)

    def reply(self, *, body: bool) -> None:
        self.asked.append(f"{self.command} {self.path}")
        if self.silent is not None:
            self.silent.wait(60)
        content = self.files.get(self.path)
        if self.error is not None or content is None:
            status, code = self.error or (404, "EntryNotFound")
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            if code == "EntryNotFound":
                self.send_header("X-Repo-Commit", "0123456789abcdef0123456789abcdef01234567")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{zlib.crc32(content):x}"')
        self.send_header("X-Repo-Commit", "0123456789abcdef0123456789abcdef01234567")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)


def the_hub_is_at(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_ENDPOINT would, which is read when the client is imported."""
    url = f"http://127.0.0.1:{port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    class Here(Hub):
        files: ClassVar[dict[str, bytes]] = {"/org/model/resolve/main/tokenizer.json": byte_level().to_str().encode()}
        asked: ClassVar[list[str]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.02}).start()
    the_hub_is_at(server.server_port, monkeypatch)
    yield Here
    if Here.silent is not None:
        Here.silent.set()
    server.shutdown()
    server.server_close()


def test_a_tokenizer_is_downloaded_once_and_then_cached(hub: type[Hub]) -> None:
    first = HuggingFace().open("org/model")
    assert first.decode(first.encode(TEXT[0])) == TEXT[0]
    assert any(line.startswith("GET") for line in hub.asked)
    hub.asked.clear()
    again = HuggingFace().open("org/model")
    assert again.encode(TEXT[0]) == first.encode(TEXT[0])
    assert hub.asked == []


def test_revisions_are_requested_and_cached_separately(hub: type[Hub]) -> None:
    hub.files["/org/model/resolve/v2/tokenizer.json"] = hub.files["/org/model/resolve/main/tokenizer.json"]
    HuggingFace().open("org/model")
    hub.asked.clear()
    source("v2").open("org/model")
    assert hub.asked
    assert all("/resolve/v2/" in line for line in hub.asked)


def test_the_cache_serves_offline(hub: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    HuggingFace().open("org/model")
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert HuggingFace().open("org/model").count("the") >= 1
    assert hub.asked == []


COMMIT = "/org/model/resolve/0123456789abcdef0123456789abcdef01234567"
TEMPLATE = b'{"chat_template": "[{{ messages[0].content }}]"}'


def with_template(hub: type[Hub]) -> None:
    """The commit has settings with a template, and no file with one."""
    hub.files[f"{COMMIT}/tokenizer.json"] = hub.files["/org/model/resolve/main/tokenizer.json"]
    hub.files[f"{COMMIT}/tokenizer_config.json"] = TEMPLATE


def templated() -> int:
    return chat_template(HuggingFace().open("org/model")).count([{"role": "user", "content": "the"}])


def test_a_chat_template_is_that_of_the_same_commit_and_then_cached(
    hub: type[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_template(hub)
    HuggingFace().open("org/model").count("the")
    assert not any("tokenizer_config.json" in line for line in hub.asked), "a template that nobody asked for"
    assert templated() == HuggingFace().open("org/model").count("[the]")
    assert f"GET {COMMIT}/tokenizer_config.json" in hub.asked
    hub.asked.clear()
    assert templated() == HuggingFace().open("org/model").count("[the]")
    assert hub.asked == [], "what the hub lacks is asked for again"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert templated() == HuggingFace().open("org/model").count("[the]")


def test_files_of_the_hub_are_those_of_the_commit(hub: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    with_template(hub)
    opened = HuggingFace().open("org/model")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert sorted(files(opened)) == ["tokenizer.json"], "the cache has no more"
    monkeypatch.delenv("HF_HUB_OFFLINE")
    sent = files(opened)
    assert sorted(sent) == ["tokenizer.json", "tokenizer_config.json"]
    assert sent["tokenizer_config.json"].read_bytes() == TEMPLATE


def test_offline_a_chat_template_that_is_not_cached_is_refused(hub: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    with_template(hub)
    HuggingFace().open("org/model")
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadTokenizer, match=r"tokenizer_config\.json is not in the cache, and HF_HUB_OFFLINE forbids"):
        templated()
    assert hub.asked == []


def test_a_chat_template_of_a_hub_that_went_away_is_refused(hub: type[Hub]) -> None:
    with_template(hub)
    HuggingFace().open("org/model")
    hub.error = (503, "")
    with pytest.raises(BadTokenizer, match="refuses the request"):
        templated()


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.usefixtures("unreachable")
def test_offline_an_uncached_tokenizer_is_refused_without_a_request(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(BadTokenizer, match=f"not in the cache, and {variable} forbids the network") as caught:
        HuggingFace().open("org/model")
    tried, instead = caught.value.hints
    assert tried.startswith("tried: a file or directory of that name, the cache")
    assert "the hub" not in tried
    assert "--tokenizer builtin" in instead


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ((404, "RepoNotFound"), "has no such model"),
        ((401, "RepoNotFound"), "has no such model"),
        ((403, "GatedRepo"), "accept its terms"),
        ((404, "RevisionNotFound"), "has no revision 'v9' of the model"),
        ((503, ""), "refuses the request: "),
    ],
)
def test_a_refusal_of_the_hub_is_explained(hub: type[Hub], error: tuple[int, str], message: str) -> None:
    hub.error = error
    with pytest.raises(BadTokenizer) as caught:
        source("v9").open("org/model")
    assert caught.value.message.startswith("the tokenizer 'org/model' is unavailable: ")
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert "--tokenizer builtin" in caught.value.hints[-1]
    assert caught.value.hints[-2].endswith("the hub")
    assert len(hub.asked) == 1


def test_an_unreachable_hub_gets_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    the_hub_is_at(port, monkeypatch)
    with pytest.raises(BadTokenizer, match="can't be reached"):
        HuggingFace().open("org/model")


def test_a_silent_hub_is_given_up(hub: type[Hub]) -> None:
    hub.silent = threading.Event()
    with pytest.raises(BadTokenizer, match=r"does not answer within 0\.2 s|can't be reached"):
        source(patience_s=0.2).open("org/model")
    assert len(hub.asked) == 1


def test_a_model_without_a_tokenizer_json_needs_transformers(hub: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    hub.files.clear()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadTokenizer, match="needs the package transformers"):
        HuggingFace().open("org/model")


def test_trusted_code_of_an_unreachable_hub_fails_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    the_hub_is_at(port, monkeypatch)
    with pytest.raises(BadTokenizer, match="can't be reached"):
        source(trust=True).open("org/model")


@pytest.mark.usefixtures("unreachable")
def test_trusted_code_offline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadTokenizer, match="is unavailable"):
        source(trust=True).open("org/model")


def test_a_directory_with_the_name_of_a_model_hides_nothing(
    hub: type[Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "model").mkdir(parents=True)
    assert HuggingFace().open("org/model").count("the") >= 1
    assert hub.asked


class TestHuggingFaceKeepsTheContract(HuggingFaceContract):
    pass


@pytest.mark.parametrize("name", ["cl100k_base", "gpt-4", "GPT-3.5-turbo"])
def test_an_encoding_of_tiktoken_without_its_data_is_said_to_be_that(name: str) -> None:
    with pytest.raises(BadTokenizer, match=r"is an encoding of tiktoken, or a model with it") as caught:
        HuggingFace().open(name)
    assert caught.value.hints[0].startswith("'--tokenizer builtin' counts with o200k_base")
