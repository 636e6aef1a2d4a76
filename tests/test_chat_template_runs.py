"""Input lengths with the model's chat template, judged by the bodies that the simulator received."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf.cli.main import main
from aiperf_command_simulate.testing import Simulator, running
from jinja2 import Environment
from program import Done, Program
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

CHATML = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content }}
    {%- for call in message.tool_calls or [] %}
        {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
        {{- call.function.arguments | tojson + '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA = """{{- bos_token }}
{%- for message in messages %}
    {%- if loop.index0 and message.role == messages[loop.index0 - 1].role %}
        {{- raise_exception("Conversation roles must alternate") }}
    {%- endif %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
TEMPLATES = {"ChatML": CHATML, "Llama 3": LLAMA}
BOS = "<|begin_of_text|>"
SPECIAL = (BOS, "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TOOL = {"type": "function", "function": {"name": "look", "description": "Look it up.", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def models_by_template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories with a tokenizer of a byte-level BPE, each with a template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WORDS), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([Path(__file__).read_text()] * 2, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    folders = {}
    for name, template in TEMPLATES.items():
        folder = folders[name] = tmp_path_factory.mktemp("model")
        tokenizer.save(str(folder / "tokenizer.json"))
        about = {"bos_token": BOS, "eos_token": "<|im_end|>", "chat_template": template}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folders


@pytest.fixture(scope="module")
def keeping() -> Iterator[Simulator]:
    """A simulator that keeps the bodies of requests."""
    with running(truth_bodies=True, first_token_ms=2, decode_ms=0) as simulator:
        yield simulator


class Counting:
    """Counts bodies on its own: a template rendered as it stands, with the special tokens recognised."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        environment = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        self._template = environment.from_string(json.loads((folder / "tokenizer_config.json").read_text())["chat_template"])

    def tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def chat(self, messages: list[dict[str, Any]], tools: str = "") -> int:
        messages = json.loads(json.dumps(messages))
        for message in messages:
            message["content"] = message["content"] or ""
            for call in message.get("tool_calls", ()):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        said = self._template.render(messages=messages, add_generation_prompt=True, bos_token=BOS)
        return self.tokens(said) + (self.tokens(tools) if tools else 0)


def run(folder: Path, simulator: Simulator, model: Path, *words: str | float | Path) -> Done:
    simulator.reset()
    done = Program(folder)(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", model, "--apply-chat-template", "--ui", "none",
        "--osl", 5, *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


def received(simulator: Simulator) -> list[Any]:
    """The bodies, in their order."""
    rows = sorted(simulator.truth()["requests"], key=lambda row: int(row["number"]))
    return [json.loads(row["body"]) for row in rows]


def lengths(done: Done) -> list[int | None]:
    """Input lengths of the requests, in the order of their start."""
    records = sorted(done.lines("profile_export.jsonl"), key=lambda record: int(record["metadata"]["request_start_ns"]))
    return [record["metrics"].get("input_sequence_length", {}).get("value") for record in records]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_prompt_is_as_long_as_asked_with_its_template(
    template: str, models_by_template: dict[str, Path], keeping: Simulator, tmp_path: Path
) -> None:
    model = models_by_template[template]
    done = run(tmp_path, keeping, model, "--isl", 77, "--request-count", 8)
    bodies, counting = received(keeping), Counting(model)
    assert [counting.chat(body["messages"]) for body in bodies] == [77] * 8
    assert lengths(done) == [77] * 8
    assert max(counting.tokens(body["messages"][0]["content"]) for body in bodies) < 77
    assert done.json()["input_config"]["tokenizer"]["apply_chat_template"] is True


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("words", [
    ("--streaming",), ("--system-prompt", "Be brief, and say why."), ("--cache-bust", "first_turn_prefix"),
    ("--num-prefix-prompts", 1, "--prefix-prompt-length", 20), ("--export-level", "raw"),
], ids=["live history", "a system prompt", "a marker", "a prefix", "bodies kept"])  # fmt: skip
def test_turns_are_counted_as_the_server_got_them(
    words: tuple[str | float, ...], template: str, models_by_template: dict[str, Path], keeping: Simulator, tmp_path: Path
) -> None:
    model = models_by_template[template]
    done = run(tmp_path, keeping, model, "--isl", 40, "--session-turns-mean", 3, "--num-conversations", 2, *words)
    bodies, counting = received(keeping), Counting(model)
    counts = [counting.chat(body["messages"]) for body in bodies]
    assert lengths(done) == counts
    further = {"--system-prompt": None, "--cache-bust": None, "--num-prefix-prompts": 60}.get(str(words[0]), 40)
    roles = [[message["role"] for message in body["messages"] if message["role"] != "system"] for body in bodies]
    assert sorted(map(len, roles)) == [1, 1, 3, 3, 5, 5]
    for body, count, spoken in zip(bodies, counts, roles, strict=True):
        if len(spoken) == 1 and further is not None:
            assert count == further
        elif len(spoken) > 1:  # what a later turn adds, without the answer before it, is as long as asked
            assert count == counting.chat(body["messages"][:-1]) + 40


def test_calls_and_tools_are_counted(models_by_template: dict[str, Path], keeping: Simulator, tmp_path: Path) -> None:
    model = models_by_template["ChatML"]
    done = run(
        tmp_path, keeping, model, "--isl", 40, "--session-turns-mean", 3, "--num-conversations", 1, "--streaming",
        "--extra-inputs", json.dumps({"tools": [TOOL]}), "--header", "X-Simulate: call;tokens=6",
    )  # fmt: skip
    bodies, counting = received(keeping), Counting(model)
    assert [len(body["messages"]) for body in bodies] == [1, 3, 5]
    assert all(body["messages"][1]["tool_calls"] for body in bodies[1:])
    assert lengths(done) == [counting.chat(body["messages"], 'look Look it up. {"type":"object"}') for body in bodies]


@pytest.mark.parametrize(("kind", "key"), [("messages", "system"), ("responses", "instructions"), ("ollama", "")])
def test_other_dialects_of_chats_are_counted(
    kind: str, key: str, models_by_template: dict[str, Path], keeping: Simulator, tmp_path: Path
) -> None:
    model = models_by_template["Llama 3"]
    done = run(
        tmp_path, keeping, model, "--isl", 40, "--session-turns-mean", 2, "--num-conversations", 1, "--endpoint-type", kind,
        "--system-prompt", "Be brief.",
    )  # fmt: skip
    counts, counting = [], Counting(model)
    for body in received(keeping):
        said = [{"role": "system", "content": body[key]}] if key else []
        for item in body.get("messages") or body["input"]:
            content = item["content"]
            text = content if isinstance(content, str) else " ".join(part["text"] for part in content)
            said.append({"role": item["role"], "content": text})
        counts.append(counting.chat(said))
    assert lengths(done) == counts
    assert counts[1] > counts[0] > 40


def test_a_history_that_the_template_refuses_has_no_length_and_is_told(
    models_by_template: dict[str, Path], keeping: Simulator, tmp_path: Path
) -> None:
    model = shutil.copytree(models_by_template["ChatML"], tmp_path / "model")
    refusing = '{% if messages | length > 3 %}{{ raise_exception("three are enough") }}{% endif %}'
    (model / "chat_template.jinja").write_text(refusing + CHATML)
    done = run(tmp_path, keeping, model, "--isl", 40, "--session-turns-mean", 3, "--num-conversations", 1)
    counting = Counting(model)
    first, second, _ = (counting.chat(body["messages"]) for body in received(keeping))
    assert lengths(done) == [first, second, None]
    assert "1 request has no input tokens: the chat template of" in done.out
    assert "three are enough" in done.out


def test_a_configuration_file_applies_the_template(
    models_by_template: dict[str, Path], keeping: Simulator, tmp_path: Path
) -> None:
    keeping.reset()
    model = models_by_template["ChatML"]
    (tmp_path / "run.yaml").write_text(f"""
benchmark:
  models: [m]
  endpoint: {{urls: ["{keeping.url}"]}}
  tokenizer: {{name: {model}, apply_chat_template: true}}
  dataset: {{prompts: {{isl: 50}}}}
  profiling: {{type: concurrency, concurrency: 1, requests: 2}}
""")
    done = Program(tmp_path)("profile", "--config", tmp_path / "run.yaml", "--ui", "none")
    assert done.code == 0, done.err
    assert lengths(done) == [Counting(model).chat(body["messages"]) for body in received(keeping)] == [50, 50]


CHAT = "--model m --apply-chat-template --ui none"


@pytest.mark.parametrize(("words", "sentence", "hint"), [
    (f"{CHAT} --tokenizer builtin", "--apply-chat-template: the tokenizer 'builtin' has no chat template", "--tokenizer"),
    (f"{CHAT} --tokenizer builtin --endpoint-type completions",
     "--apply-chat-template is for messages, and the endpoint type 'completions' has none", "chat, messages, ollama"),
    (f"{CHAT} --tokenizer builtin --endpoint-type embeddings",
     "--apply-chat-template is for messages, and the endpoint type 'embeddings' has none", "drop --apply-chat-template"),
    (f"{CHAT} --tokenizer MODEL --isl 8", "--isl 8 leaves no token for the text: the chat template of", "at least --isl 1"),
])  # fmt: skip
def test_a_template_that_cannot_be_applied_is_refused(
    words: str, sentence: str, hint: str, models_by_template: dict[str, Path], tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    model = models_by_template["Llama 3"]
    code = main(["profile", "--artifact-dir", str(tmp_path / "out"), *words.replace("MODEL", str(model)).split()])
    said = capfd.readouterr().err
    assert code in (1, 2)
    assert sentence in said
    assert hint in said
    assert "Traceback" not in said
