"""Is the server ready?  What it is asked, what its answers mean, and what is said when the time is up."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf.errors import AiperfError, ConfigError
from aiperf.parts.tools import specs, validate
from aiperf.sdk.companion import CompanionContext
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.model import HttpRequest, Media, Turn, join_url
from aiperf.sdk.plan import Plan, Secrets, TlsPlan
from aiperf_companion_readiness import Readiness
from aiperf_companion_readiness.contract import ReadinessContract
from aiperf_companion_readiness.options import ReadinessOptions, ReadyMode
from aiperf_companion_readiness.wait import questions
from aiperf_testing.journals import plan_for
from aiperf_testing.plans import sample_ref
from aiperf_testing.server import Certificate, Cut, Expect, Scripted, Send, Sleep, Step, answer


class TestItKeepsTheContract(ReadinessContract):
    pass


class Dialect(Endpoint):
    def encode(self, turn: Turn) -> HttpRequest:
        body = {"model": turn.model, "text": turn.text, "max": turn.max_tokens, "stream": turn.stream, **turn.extra}
        return HttpRequest("/ask", json.dumps(body).encode(), {"X-Dialect": "1"})


class Pictures(Endpoint):
    def encode(self, turn: Turn) -> HttpRequest:
        raise ValueError("a picture is needed")


class Small(Pictures):
    def encode(self, turn: Turn) -> HttpRequest:
        if not turn.media:
            raise ValueError("a picture is needed")
        return HttpRequest("/{model}/see", turn.media[0].value.encode(), method="PUT")

    def probe(self) -> Turn:
        return Turn(media=(Media("image", "dot.png"),))


def plan(*urls: str, dialect: str = "Dialect", **more: Any) -> Plan:
    endpoint = sample_ref("endpoints", f"{__name__}:{dialect}")
    settled: dict[str, Any] = {"urls": urls, "path": "/ask", "endpoint": endpoint, "models": ("m",), "streaming": False}
    return plan_for(Path(), **settled | more)


def models(*names: str) -> bytes:
    return answer(json.dumps({"data": [{"id": name} for name in names]}).encode())


async def waited(plan: Plan, mode: str, *, timeout_s: float = 60.0, headers: dict[str, str] | None = None) -> None:
    """Wait as a run does.

    Raises:
        AiperfError: Not everybody got ready.
    """
    options = ReadinessOptions(timeout_s=timeout_s, mode=ReadyMode(mode), interval_s=0.01)
    made = Readiness(options, CompanionContext(plan, Secrets(headers or {}), Path("log"), print))
    made.begin()
    while (waiting := made.waiting()) is not None:
        assert waiting.what.startswith("Waiting for http") and (waiting.total, waiting.unit) == (round(timeout_s), "s")
        await asyncio.sleep(0.005)
    made.close()


def unready(*scripts: Sequence[Step], mode: str = "inference", timeout_s: float = 1.0) -> str:
    async def go() -> str:
        async with Scripted(*scripts) as server:
            with pytest.raises(AiperfError) as caught:
                await waited(plan(server.url), mode, timeout_s=timeout_s)
            return "\n".join(caught.value.lines()).replace(server.url, "URL")

    return asyncio.run(go())


ERROR: list[Step] = [Expect(), Send(answer(b"no", status=503, reason="Busy"))]


def test_the_question_is_the_endpoints_probe_on_its_own_path() -> None:
    async def go() -> None:
        async with Scripted([Expect(), Send(answer(b"{}"))]) as server:
            await waited(plan(server.url, dialect="Small", models=("m/1",)), "inference")
        (got,) = server.requests
        assert (got.method, got.target, got.body) == ("PUT", "/m%2F1/see", b"dot.png")

    asyncio.run(go())


def test_the_question_is_a_request_of_the_endpoint_to_its_path() -> None:
    async def go() -> None:
        async with Scripted([Expect(), Send(answer(b"{}"))]) as server:
            asked = plan(server.url, streaming=True, extra={"seed": 1})
            await waited(asked, "inference", headers={"Authorization": "Bearer key"})
        (got,) = server.requests
        assert (got.method, got.target) == ("POST", "/ask")
        assert json.loads(got.body) == {"model": "m", "text": "Hello", "max": 1, "stream": True, "seed": 1}
        assert got.header("Authorization") == "Bearer key"
        assert (got.header("X-Dialect"), got.header("Content-Type")) == ("1", "application/json")

    asyncio.run(go())


def test_every_model_is_asked_at_every_url() -> None:
    asked = questions(plan("http://a", "http://b/v1", models=("m", "n")), Secrets(), "both")
    assert [[join_url(question.base, question.path) for question in row] for row in asked] == [
        ["http://a/v1/models", "http://a/ask", "http://a/ask"], ["http://b/v1/models", "http://b/v1/ask", "http://b/v1/ask"],
    ]  # fmt: skip
    assert [json.loads(question.body)["model"] for question in asked[0][1:]] == ["m", "n"]


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429])
def test_any_answer_below_500_to_a_request_is_ready(status: int) -> None:
    async def go() -> None:
        async with Scripted([Expect(), Send(answer(b"x", status=status))]) as server:
            await waited(plan(server.url), "inference")

    asyncio.run(go())


def test_a_server_that_is_not_ready_at_first_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def go() -> list[str]:
        answers: list[Step] = [Cut(), Send(models("other")), Send(models("m", "other"))]
        scripts = [ERROR, *([Expect(), step] for step in answers)]
        async with Scripted(*scripts) as server:
            await waited(plan(server.url), "models")
        return [got.target for got in server.requests]

    assert asyncio.run(go()) == ["/v1/models"] * 4
    said = caplog.text
    assert "its list of models is answered with 503 Service Unavailable (0 of 60 s)" in said
    assert "it lists other, not m" in said
    assert "is ready after" in said


def test_without_a_list_of_models_the_server_must_answer_with_2xx() -> None:
    nowhere: list[Step] = [Expect(), Send(answer(b"", status=404, reason="Not Found"))]

    async def go() -> list[str]:
        async with Scripted(nowhere, [Expect(), Send(answer(b"hello"))]) as server:
            await waited(plan(server.url), "models")
        return [got.target for got in server.requests]

    assert asyncio.run(go()) == ["/v1/models", "/"]
    assert "URL: it has no list of models, and answers with 404 Not Found" in unready(nowhere, mode="models")


@pytest.mark.parametrize(("scripts", "mode", "said"), [
    ([ERROR], "inference", "URL: it answers with 503 Service Unavailable"),
    ([ERROR], "models", "URL: its list of models is answered with 503 Service Unavailable"),
    ([[Expect(), Send(answer(b"<html>"))]], "models", "URL: its list of models can't be read"),
    ([[Expect(), Send(models())]], "models", "URL: it lists nothing, not m"),
    ([[Expect(), Send(models("m"))], ERROR] * 99, "both", "URL: it answers with 503 Service Unavailable"),
    ([[Expect(), Sleep(9)]], "inference", "URL: it"),
    ([[Expect(), Cut()]], "inference", "URL: RemoteDisconnected: Remote end closed connection without response"),
])  # fmt: skip
def test_when_the_time_is_up_the_last_reason_is_said(scripts: list[list[Step]], mode: str, said: str) -> None:
    found = unready(*scripts, mode=mode)
    assert found.startswith("not ready within 1 s: ")
    assert said in found
    assert "--wait-for-model-timeout" in found


def test_every_url_must_be_ready_and_those_that_are_not_are_named() -> None:
    async def go() -> str:
        async with Scripted([Expect(), Send(answer(b"{}"))]) as good, Scripted(ERROR) as bad:
            with pytest.raises(AiperfError) as caught:
                await waited(plan(good.url, bad.url), "inference", timeout_s=2)
            return caught.value.message.replace(bad.url, "BAD").replace(good.url, "GOOD")

    assert asyncio.run(go()) == "not ready within 2 s: BAD: it answers with 503 Service Unavailable"


def test_nobody_listening_is_a_reason() -> None:
    with pytest.raises(AiperfError, match=r"http://127.0.0.1:9: ConnectionRefusedError: Connection refused"):
        asyncio.run(waited(plan("http://127.0.0.1:9"), "inference", timeout_s=1))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_certificates_are_checked_as_in_the_run(tmp_path: Path) -> None:
    certificate = Certificate.made(tmp_path)

    async def go() -> str:
        async with Scripted([Expect(), Send(answer(b"{}"))], certificate=certificate) as server:
            url = server.url.replace("127.0.0.1", "localhost")
            await waited(plan(url, tls=TlsPlan(verify=False)), "inference")
            with pytest.raises(AiperfError) as caught:
                await waited(plan(url), "inference", timeout_s=3)
            return caught.value.message

    assert "certificate verify failed" in asyncio.run(go()).lower()


def test_an_endpoint_that_wants_more_than_text_says_what_to_do_instead() -> None:
    with pytest.raises(ConfigError) as caught:
        questions(plan("http://a", dialect="Pictures"), Secrets(), "inference")
    assert "endpoints:pictures of acme 1.2 can't encode the request to ask with: ValueError: a picture" in caught.value.message
    assert "--wait-for-model-mode models" in caught.value.hints[0]
    assert len(questions(plan("http://a", dialect="Pictures"), Secrets(), "models")) == 1


@pytest.mark.parametrize(("given", "typed", "idle"), [
    ({"mode": ReadyMode.BOTH}, {"mode": "--wait-for-model-mode"}, ["--wait-for-model-mode"]),
    ({"timeout_s": 0.0, "interval_s": 2.0}, {"timeout_s": "endpoint.timeout (a.yaml:3)", "interval_s": "-i"}, ["-i"]),
    ({"timeout_s": 2.0, "interval_s": 2.0}, {"interval_s": "--wait-for-model-interval"}, []),
])  # fmt: skip
def test_a_setting_needs_a_timeout(given: dict[str, Any], typed: dict[str, str], idle: list[str]) -> None:
    wanted = typed.get("timeout_s", "--wait-for-model-timeout")
    said = [f"{flag} needs {wanted}: without it nobody waits\nadd {wanted}, or drop {flag}" for flag in idle]
    assert ReadinessOptions(**given).problems(typed) == said


@pytest.mark.parametrize(("field", "value", "said"), [
    ("interval_s", "0", "--wait-for-model-interval: 0 is not allowed; must be more than 0"),
    ("timeout_s", "-1", "--wait-for-model-timeout: -1 is not allowed; must be at least 0"),
    ("timeout_s", "inf", "--wait-for-model-timeout: inf is not allowed; must be a finite number"),
    ("mode", "often", "--wait-for-model-mode: 'often' is not one of models, inference, both"),
])  # fmt: skip
def test_a_value_out_of_range_names_flag_value_and_range(field: str, value: str, said: str) -> None:
    typed = {face: spec.spec.flags[0] for face, spec in ReadinessOptions.option_faces.items()}
    _, errors = validate(ReadinessOptions, specs(ReadinessOptions), {field: value}, typed)
    assert [error.message for error in errors] == [said]
