"""Bodies from templates and payloads as they are; content by a JMESPath, or in the usual places."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, BadResponse, ConfigError, Delta, HttpRequest, Media, Message, Turn
from aiperf_endpoint_template import Raw, Template
from aiperf_endpoint_template.checks import checked_path, checked_template
from aiperf_endpoint_template.contract import TEMPLATE, RawContract, TemplateContract
from aiperf_endpoint_template.options import RawOptions, TemplateOptions

ODD = 'She said "it\'s <b>5 & 6</b>"\n\\ Grüße 🦜'


def template(text: str, field: str | None = None) -> Template:
    return Template(TemplateOptions(payload_template=text, response_field=field))


def rendered(text: str, *texts: str, **turn: Any) -> Any:
    return msgspec.json.decode(template(text).encode(Turn(texts, model="m1", **turn)).body)


# Out


def test_the_body_is_exactly_this() -> None:
    request = template(TEMPLATE).encode(Turn(("Hi",), model="m1", extra={"top": 1}))
    assert (request.path, request.body) == ("", b'{"q":"Hi","k":16,"hist":1,"top":1}')


@pytest.mark.parametrize("text", ['{"q": {{ text|tojson }}}', '{"q": "{{ text }}"}', '{"q": "{{ texts[0] }}"}'])
def test_text_is_never_escaped_as_html(text: str) -> None:
    assert template(text).encode(Turn((ODD,), model="m1")).body == msgspec.json.encode({"q": ODD})


IMAGES = (Media("image", "a.png"), Media("audio", "wav,UklG"), Media("image", "b.png"), Media("video", "v.mp4"))
CHAT = (Message("system", ("Be terse.",)), Message("user", ("Hi",)), Message.of({"role": "assistant", "content": "Yes?"}))
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "named": ("nv-embedqa", {}, {"text": ["a", "b"]}),
    "values without a filter": ("[{{ texts }}, {{ stream }}, {{ max_tokens }}, {{ image|tojson }}]", {"stream": True},
                                [["a", "b"], True, None, None]),
    "a list of one": ('[{"a": {{ text|tojson }}}]', {}, {"a": "a"}),
    "a list made in the template": (
        "{% set rows = [] %}{% for text in texts %}{% set _ = rows.append({'t': text}) %}{% endfor %}{{ rows }}", {},
        [{"t": "a"}, {"t": "b"}]),
    "media": (
        '["{{ image }}", {{ images }}, "{{ audio }}", {{ audios }}, "{{ video }}", {{ videos }}, {{ images_by_name }}]',
        {"media": IMAGES},
        ["a.png", ["a.png", "b.png"], "wav,UklG", ["wav,UklG"], "v.mp4", ["v.mp4"], {"image": ["a.png", "b.png"]}]),
    "fields": ('{"q": "{{ query }}", "p": {{ passages }}, "first": "{{ passage }}", "all": {{ texts_by_name }}}',
               {"named": {"query": "dogs", "passages": ("cats", "pups")}},
               {"q": "dogs", "p": ["cats", "pups"], "first": "cats", "all": {"query": ["dogs"], "passages": ["cats", "pups"]}}),
    "a chat": ('[{% for t in turns %}["{{ t.role }}", "{{ t.text }}"]{{ "," if not loop.last else "" }}{% endfor %}]',
               {"history": CHAT}, [["system", "Be terse."], ["user", "Hi"], ["assistant", "Yes?"], ["user", "a"]]),
    "the turn": ('{"r": "{{ role }}", "t": {{ turn.texts }}, "m": "{{ model }}", "i": {{ request_info.turns|length }}}', {},
                 {"r": "user", "t": ["a", "b"], "m": "m1", "i": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "turn", "wanted"), CASES.values(), ids=CASES.keys())
def test_a_template_renders(text: str, turn: dict[str, Any], wanted: Any) -> None:
    checked = checked_template(text)
    assert checked is not None
    assert rendered(checked, "a", "b", **turn) == wanted


def test_a_template_may_be_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "body.j2").write_text('{"q": "{{ text }}ß"}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert checked_template("body.j2") == checked_template(str(tmp_path / "body.j2")) == '{"q": "{{ text }}ß"}'
    (tmp_path / "link.j2").symlink_to("body.j2")
    with pytest.raises(ValueError, match=r"symbolic link, and '.*link\.j2' is one"):
        checked_template("link.j2")
    with pytest.raises(ValueError, match="no regular file"):
        checked_template(str(tmp_path))
    (tmp_path / "latin.j2").write_bytes(b'{"q": "\xff"}')
    with pytest.raises(ValueError, match="can't be read"):
        checked_template("latin.j2")


@pytest.mark.parametrize(("text", "said"), [
    ("{{ text", "is no Jinja2 template: .*line 1"),
    ("{{ text|nosuch }}", "is no Jinja2 template: No filter named 'nosuch'"),
    ('{"q": {{ question|tojson }}, "r": {{ r }}}', "names the unknown variable question, r; known are audio, "),
    ('{"q": {{ text }}}', "renders to .*Hello.* which is no JSON"),
    ("plain {text}", "renders to .plain .* which is no JSON"),
    ("body.json", "there is no such file, and a template has braces"),
])  # fmt: skip
def test_a_template_that_cannot_work_is_refused_before_the_run(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        checked_template(text)


NESTED = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(("text", "said"), [
    (NESTED, r"can't be rendered: it takes more than 0\.05 s of processor time \(AIPERF_TEMPLATE_TIMEOUT allows more\)"),
    ("{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}", "can't be rendered: it (makes more than 64 MiB|takes more)"),
    ("{{ 'a' * 10 ** 9 }}", "can't be rendered: it makes more than 64 MiB"),
    ("{{ 10 ** 999999999 }}", "can't be rendered: it asks for a number of more than 1,048,576 bits"),
])  # fmt: skip
def test_a_template_has_bounds(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_TEMPLATE_TIMEOUT", "50ms")
    with pytest.raises(ValueError, match=said):
        checked_template(text)


DOUBLED = "{% set ns = namespace(t='ab') %}{% for i in range(40) %}{% set ns.t = DOUBLE %}{% endfor %}{{ ns.t }}"


@pytest.mark.parametrize("double", [
    "ns.t ~ ns.t", "ns.t + ns.t", "[ns.t, ns.t]|join", "'a'.join([ns.t, ns.t])", "'%s%s' % (ns.t, ns.t)",
    "'%s%s'|format(ns.t, ns.t)", "'{0}{0}'.format(ns.t)", "ns.t|replace('a', 'aa')", "ns.t.replace('b', 'bb')",
    "ns.t|indent(9999999, true)", "'a'.ljust(4000000000)", "'a'|center(4000000000)", "'%4000000000d' % 3",
    "'{:4000000000}'.format(3)", "'{:{}}'.format(3, 4000000000)", "('\t' * 9999).expandtabs(99999)",
    "[ns.t, ns.t]|map('upper')|join", "'%*d' % (4000000000, 3)", "'%.4000000000f' % 3",
    "[1]|batch(4000000000, 0)|list",
])  # fmt: skip
def test_a_text_that_grows_is_refused_before_it_fills_the_memory(double: str) -> None:
    with pytest.raises(ValueError, match=r"can't be rendered: it makes more than (64|256) MiB"):
        checked_template(DOUBLED.replace("DOUBLE", double))


def test_a_list_that_grows_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(ValueError, match="can't be rendered: it makes more than 64 MiB"):
        checked_template(DOUBLED.replace("'ab'", "[1]").replace("DOUBLE", "ns.t + ns.t"))
    with pytest.raises(ValueError, match="can't be rendered: it makes more than 64 MiB"):
        checked_template("{% set t = [1] %}{% for i in range(40) %}{{ t.extend(t) }}{% endfor %}")


def test_what_fits_is_rendered_as_ever() -> None:
    text = """{% set words = text.split(' ') %}{"a": "{{ words|join('-') ~ '!' }}", "b": "{{ '%s=%d'|format(text, 3) }}", """ \
        """"f": "{{ '{} %d 1700000000'.format(1700000001) % 1700000002 }}", """ \
        """"c": "{{ '{:>5}'.format('x') + 'y' }}", "d": {{ (words + ['z'])|tojson }}, "e": "{{ 'a,b'.replace(',', ';') }}"}"""
    assert rendered(text, "p q") == {"a": "p-q!", "b": "p q=3", "c": "    xy", "d": ["p", "q", "z"], "e": "a;b",
                                      "f": "1700000001 1700000002 1700000000"}  # fmt: skip


def test_a_turn_that_a_template_never_ends_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_TEMPLATE_TIMEOUT", "50ms")
    text = checked_template(f"{{% if text == 'a' %}}{NESTED}{{% endif %}}{{}}")
    assert text is not None
    assert rendered(text, "b") == {}
    with pytest.raises(BadDataset, match=r"the template can't be rendered: it takes more than 0\.05 s of processor time"):
        rendered(text, "a")


def test_a_template_that_needs_other_turns_is_tried_on_them() -> None:
    text = checked_template('{"before": "{{ turns[1].text }}"}')
    assert text is not None
    with pytest.raises(BadDataset, match="the template can't be rendered: UndefinedError"):
        rendered(text, "a")
    assert rendered(text, "a", history=CHAT) == {"before": "Hi"}


@pytest.mark.parametrize(("text", "turn", "said"), [
    ('{"q": {{ texts[0] }}}', {}, "the template renders to .* which is no JSON"),
    ("[1, 2]", {"extra": {"top": 1}}, "extra inputs need an object"),
    ("{{ turns.__class__.__mro__ }}", {}, "SecurityError"),
    ("{{ range(10**9) }}", {}, "OverflowError"),
])  # fmt: skip
def test_a_turn_without_a_body_is_refused(text: str, turn: dict[str, Any], said: str) -> None:
    with pytest.raises(BadDataset, match=said):
        rendered(text, "a", **turn)


def test_without_a_template_there_is_no_run() -> None:
    with pytest.raises(ConfigError, match="has no template"):
        Template().encode(Turn(("Hi",)))


def test_the_input_counts_as_it_was_sent() -> None:
    request = template('{"prompt": "Q: {{ text }}"}').encode(Turn(("a",)))
    counted = template("{}").prompt_of(request)
    assert counted is not None
    assert [*counted.texts] == ["Q: a"]
    assert template("{}").prompt_of(HttpRequest("", b'{"question":"a"}')) is None


def test_libraries_are_imported_where_they_are_used() -> None:
    code = "import sys, aiperf_endpoint_template; print([name for name in ('jinja2', 'jmespath') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Back


USUAL: dict[str, tuple[Any, Delta]] = {
    "embeddings": ({"data": [{"object": "embedding", "embedding": [1]}] * 2}, Delta(items=2)),
    "vectors": ({"embeddings": [[1, 2], [3, 4], [5, 6]]}, Delta(items=3)),
    "a vector": ({"embedding": [0.1, 0.2]}, Delta(items=1)),
    "rankings": ({"rankings": [{"index": 0}, {"index": 1}]}, Delta(items=2)),
    "results": ({"results": [{"index": 0}]}, Delta(items=1)),
    "results that are texts": ({"results": ["x"], "text": "a"}, Delta("a")),
    "text": ({"text": "a", "content": "b"}, Delta("a")),
    "content": ({"content": "b", "response": "c"}, Delta("b")),
    "response": ({"response": "c"}, Delta("c")),
    "output": ({"output": ["d", "e"]}, Delta("de")),
    "result": ({"result": "f"}, Delta("f")),
    "a completion": ({"choices": [{"text": "a", "finish_reason": "stop"}]}, Delta("a", finish="stop")),
    "a chat": (
        {"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": 1}}, Delta("a", usage={"prompt_tokens": 1})),
    "a chunk": ({"choices": [{"delta": {"content": "a"}}]}, Delta("a")),
    "a list of vectors": ([[1, 2], [3, 4]], Delta(items=2)),
    "a list of numbers": ([1, 2], Delta(items=1)),
    "a list of objects": ([{"index": 0}, {"index": 1}], Delta(items=2)),
    "nothing": ({"other": 1}, Delta()),
    "usage of other servers": (
        {"text": "a", "usageMetadata": {"promptTokenCount": 2}}, Delta("a", usage={"promptTokenCount": 2})),
    "usage inside": ({"text": "a", "meta": {"tokens": {"inputTokens": 2}}}, Delta("a", usage={"inputTokens": 2})),
    "usage in a message": ({"message": {"usage": {"input_tokens": 2}}, "text": "a"}, Delta("a", usage={"input_tokens": 2})),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "delta"), USUAL.values(), ids=USUAL.keys())
@pytest.mark.parametrize("endpoint", [template("{}"), Raw()], ids=["template", "raw"])
def test_content_is_found_in_the_usual_places(endpoint: Template | Raw, answer: Any, delta: Delta) -> None:
    assert endpoint.decode(msgspec.json.encode(answer)) == delta


@pytest.mark.parametrize(("field", "answer", "delta"), [
    ("a.b", {"a": {"b": "x"}, "text": "y"}, Delta("x")),
    ("a[1].b", {"a": [0, {"b": "x"}]}, Delta("x")),
    ("a[-1]", {"a": ["x", "y"]}, Delta("y")),
    ("a[0][1]", {"a": [["x", "y"]]}, Delta("y")),
    ("a.b", {"a": {"c": "x"}, "text": "y"}, Delta()),
    ("a.b", {"a": "x"}, Delta()),
    ("a[3]", {"a": ["x"]}, Delta()),
    ("a", {"a": ["x", "y"]}, Delta("xy")),
    ("a", {"a": [[1, 2], [3, 4]]}, Delta(items=2)),
    ("a", {"a": 3}, Delta("3")),
    ("a", {"a": {"text": "x"}}, Delta("x")),
    ("a", {"a": {"b": 1}}, Delta('{"b":1}')),
    ("rows[?k=='say'].text | join('', @)", {"rows": [{"k": "say", "text": "x"}, {"k": "no", "text": "y"}]}, Delta("x")),
    ("join('', rows)", {"rows": 7}, Delta()),
    ('"a b".c || d', {"d": "x"}, Delta("x")),
])  # fmt: skip
def test_content_is_found_by_an_expression(field: str, answer: Any, delta: Delta) -> None:
    assert template("{}", checked_path(field)).decode(msgspec.json.encode(answer)) == delta


@pytest.mark.parametrize("field", [None, "", " text "])
def test_text_stands_for_the_usual_places(field: str | None) -> None:
    assert checked_path(field) is None


@pytest.mark.parametrize("field", ["a[", "a..b", "join(", "nosuch(a)["])
def test_a_bad_expression_is_refused_before_the_run(field: str) -> None:
    with pytest.raises(ValueError, match="is no JMESPath: "):
        checked_path(field)


def test_raw_falls_back_to_the_usual_places() -> None:
    raw = Raw(RawOptions(response_field="a.b"))
    assert raw.decode(b'{"a":{"b":"x"},"text":"y"}') == Delta("x")
    assert raw.decode(b'{"text":"y"}') == Delta("y")
    assert raw.decode(b'{"a":{"b":""},"text":"y"}') == Delta()


@pytest.mark.parametrize(("field", "repeats"), [(None, True), ("a[0].b", True), ("a || b", False), ("join('', a)", False)])
def test_an_expression_with_conditions_promises_nothing(field: str | None, repeats: bool) -> None:
    assert template("{}", field).repeats_envelope is Raw(RawOptions(response_field=field)).repeats_envelope is repeats


@pytest.mark.parametrize("event", [b"<html>Gr\xc3\xbc\xc3\x9fe</html>", b"7", b'"a"', b'{"text":"a'])
def test_raw_takes_an_answer_of_any_kind_as_text(event: bytes) -> None:
    assert Raw().decode(event) == Delta(event.decode())


@pytest.mark.parametrize("event", [b"<html>", b"7", b'"a"', b'{"text":"a'])
def test_a_templates_answer_is_json(event: bytes) -> None:
    with pytest.raises(BadResponse, match=re.escape("template: n")) as caught:
        template("{}").decode(event)
    assert caught.value.raw == event


@pytest.mark.parametrize("endpoint", [template("{}", "a.b"), template("{}"), Raw()], ids=["expression", "template", "raw"])
def test_an_error_inside_an_answer_is_the_servers_own(endpoint: Template | Raw) -> None:
    with pytest.raises(BadResponse, match=r"^busy$"):
        endpoint.decode(b'{"error":{"message":"busy"}}')


# Raw


@pytest.mark.parametrize(("payload", "body"), [
    (b'{"b": 1,  "a": "\\u00e9"}', b'{"b": 1,  "a": "\\u00e9"}'), ({"b": 1, "a": "é"}, '{"b":1,"a":"é"}'.encode()),
])  # fmt: skip
def test_payloads_are_sent_as_they_are(payload: Any, body: bytes) -> None:
    request = Raw().encode(Turn(payload=payload, extra={"top": 1}))
    assert (request.path, request.body) == ("", body)


def test_a_turn_without_a_payload_is_refused() -> None:
    with pytest.raises(BadDataset, match="a turn has none"):
        Raw().encode(Turn(("Hi",)))


def test_the_input_of_a_payload_counts() -> None:
    counted = Raw().prompt_of(HttpRequest("", b'{"messages":[{"role":"user","content":"Hi"}]}'))
    assert counted is not None
    assert [*counted.texts] == ["Hi"]


class TestTemplateKeepsTheContract(TemplateContract):
    pass


class TestRawKeepsTheContract(RawContract):
    pass
