"""Every answer of the service fits its OpenAPI document, and every route, status and field of the document is answered."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiperf_command_service.files
import aiperf_command_service.relay
import aiperf_command_service.routes
import jsonschema
import pytest
from aiohttp import web
from aiperf_command_service.document import DOCUMENT, SCHEMAS
from aiperf_command_service.messages import Fault, Found
from aiperf_live_api.board import Board, RunAbout
from aiperf_live_api.routes import Routes
from aiperf_pages.guard import Guard
from aiperf_pages.ports import address_of, listen
from aiperf_pages.server import Server

METHODS = {"get", "post", "delete"}
GENERAL = {405, 408, 500, 503}
"""Statuses that every route may answer with; the document tells them once, as its default."""
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
SOCKET = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": f"{'a' * 22}=="}
CACHED = "run", "config", "progress", "metrics", "workers", "server-metrics", "results", "history"


def path_of(path: str) -> str:
    """The path of the document that the path of a request is of; "" for none."""
    plain = path.partition("?")[0]
    fitting = [each for each in DOCUMENT["paths"] if re.fullmatch(_pattern(each), plain)]
    return min(fitting, key=lambda each: (each.count("{name}"), each.count("{")), default="")


def _pattern(path: str) -> str:
    return re.escape(path).replace(r"\{name\}", ".+").replace(r"\{run\}", "[^/]+")


def misfit(answer: Any, document: dict[str, Any]) -> str:
    """Why an answer does not fit the document; "" where it does."""
    where = f"{answer.method} {answer.path}: {answer.status}"
    operation = document["paths"].get(path_of(answer.path), {}).get(answer.method.lower())
    if operation is None:
        told: dict[str, Any] | None = {"content": PROBLEM} if answer.status in (401, 404, 405) else None
    else:
        told = operation["responses"].get(str(answer.status) if answer.status not in GENERAL else "default")
        told = operation["responses"].get(str(answer.status), told)
    if told is None:
        return f"{where}: the document has no such answer"
    missing = [name for name in told.get("headers", {}) if name not in answer.headers]
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    if missing or ("content" not in told and answer.content):
        return f"{where}: no {missing}, or a body where none is told: {answer.content[:80]!r}"
    if "content" not in told:
        return ""
    if kind not in told["content"] and "*/*" not in told["content"]:
        return f"{where}: it is {kind}"
    schema = told["content"].get(kind, {}).get("schema")
    if schema is None or not kind.endswith("json"):
        return ""
    return f"{where}: {unlike}" if (unlike := difference(json.loads(answer.content), schema, document)) else ""


def difference(found: Any, schema: dict[str, Any], document: dict[str, Any]) -> str:
    """What the schema says against a document; "" for nothing."""
    whole = {**schema, "components": document["components"]}
    fault = next(jsonschema.Draft202012Validator(whole).iter_errors(found), None)
    return "" if fault is None else fault.message[:200]


# Everything that the service answers


class Api:
    """The API of a run under way, in this process."""

    def __init__(self) -> None:
        self.board, self.asked = Board(live=True), list[str]()
        listening = listen("127.0.0.1", 0)
        app = web.Application()
        Routes(self._find, self.asked.append).add(app)
        self.server, self.url = Server(app, Guard("127.0.0.1", "t"), listening), address_of("127.0.0.1", listening)

    async def _find(self, request: web.Request) -> Board:
        return self.board


def operations(*methods: str) -> Iterator[tuple[str, str]]:
    """Method and path of all operations."""
    for path, about in DOCUMENT["paths"].items():
        for method in sorted(METHODS & {*about} & {*(methods or METHODS)}):
            yield method.upper(), path


async def ask_all(served: Any, run: str, *methods: str, name: str = "a.json", streams: bool = False, **more: str) -> None:
    for method, path in operations(*methods):
        if streams or not path.endswith(("/events", "/ws")):
            await served.answer(method, path.replace("{run}", run).replace("{name}", name), **more)


async def ask_tagged(served: Any, at: str, *names: str) -> None:
    """Ask for what the client has."""
    for name in names:
        first = await served.answer("GET", at + name)
        await served.answer("GET", at + name, If_None_Match=first.headers["ETag"])


async def of_anybody(served: Any, run: str) -> None:
    """Who has no token, asks for another server, for nothing, or by another method."""
    for more in ({"token": ""}, {"Host": "evil.example"}, {"Host": "a/b"}):
        await ask_all(served, run, name="page.js", streams=True, **more)
    await ask_all(served, "nobody", name="nothing", streams=True)
    for method, path in (("PATCH", "/runs"), ("GET", "/nowhere"), ("DELETE", "/healthz"), ("POST", "/runs/x/files")):
        await served.answer(method, path)
    await ask_tagged(served, "/static/", "page.js")
    await served.answer("GET", "/openapi.json")


async def of_posts(served: Any, patch: pytest.MonkeyPatch, checks: Found) -> str:
    """Files that are taken and refused; the id of the run that is begun.  Another one waits."""
    run: str = (await served.answer("POST", "/runs", b"a: 1", Idempotency_Key="k")).said["id"]
    await served.until(lambda: served.begun)
    for key, file in (("k", b"a: 1"), ("k", b"a: 2"), ("k k", b"a: 1"), ("", b" "), ("", b"x" * (2 << 20))):
        await served.answer("POST", "/runs", file, **({"Idempotency_Key": key} if key else {}))
    await served.answer("POST", "/runs?dry_run=1", b"a: 1")
    checks.faults = [Fault("no such type", "benchmark.endpoint.type", 3, ("did you mean chat?",)), Fault("no requests")]
    await served.answer("POST", "/runs", b"a: 1")
    checks.faults = []
    await of_a_slow_body(served, patch)
    for _ in range(3):
        await served.answer("POST", "/runs", b"a: 1")  # at last the queue is full
    served.keeper.intake.ending = True
    for method, path in (("POST", "/runs"), ("GET", "/readyz")):
        await served.answer(method, path, b"a: 1" if method == "POST" else None)
    served.keeper.intake.ending = False
    return run


async def of_a_slow_body(served: Any, patch: pytest.MonkeyPatch) -> None:
    async def half() -> Any:
        yield b"a: "
        await asyncio.sleep(3600)

    with patch.context() as within:
        within.setattr(aiperf_command_service.routes, "BODY_S", 0.05)
        await served.answer("POST", "/runs", half())


async def of_full_places(served: Any, run: str, patch: pytest.MonkeyPatch) -> None:
    """Streams, archives and a disk without room."""
    with patch.context() as within:
        within.setattr(aiperf_command_service.relay, "MOST_STREAMS", 0)
        for name in ("events", "api/events"):
            await served.answer("GET", f"/runs/{run}/{name}")

        def full(entry: Any) -> None:
            raise OSError(28, "No space left on device")

        within.setattr(served.keeper.book, "save", full)
        await served.answer("POST", f"/runs/{run}/keep")


async def of_a_run_under_way(served: Any, run: str, given: type) -> None:
    """Before its API is there, before its load, beside it, and while it ends."""
    child, api = served.begun[0], Api()
    await ask_all(served, run, "get", streams=False)
    for name in ("api/stop", "api/cancel"):
        await served.answer("POST", f"/runs/{run}/{name}")
    for name in ("api/events", "ws"):
        await served.answer("GET", f"/runs/{run}/{name}")
    await served.answer("GET", f"/runs/{run}/events", **SOCKET)
    await api.server.start()
    child.url, child.token = api.url, "t"
    await ask_all(served, run, "get")
    await served.answer("POST", f"/runs/{run}/api/stop")
    api.board.begin(RunAbout({"benchmark_id": "b"}, {"models": ["m"]}, {"model": "m"}, "m"))
    await ask_all(served, run, "get")
    await ask_tagged(served, f"/runs/{run}/api/", *CACHED)
    await ask_tagged(served, f"/runs/{run}/", "metrics", "")
    for name in ("events", "ws"):
        headers = {"Authorization": f"Bearer {served.token}"}
        async with served.client.ws_connect(f"{served.at}/runs/{run}/{name}", headers=headers):
            served.given.append(given("GET", f"/runs/{run}/{name}", 101, {}, b""))
    await served.answer("GET", f"/runs/{run}/ws", Upgrade="websocket")
    await served.answer("GET", f"/runs/{run}/ws")
    child.interrupt = lambda: None
    for method, path in (("DELETE", ""), ("POST", "/api/stop"), ("POST", "/api/cancel")):
        assert (await served.answer(method, f"/runs/{run}{path}")).status == 202
    assert api.asked == ["stop", "cancel"]
    assert (await served.answer("DELETE", f"/runs/{run}")).status == 409
    api.board.end({"status": "cancelled", "reason": "", "code": 130, "files": [], "verdict": None}, None)
    await api.server.stop()
    results(child.results)
    child.over.set_result(130)


def results(folder: Path) -> None:
    (folder / "cell").mkdir(parents=True)
    latency = {"avg": 2.5, "unit": "ms"}
    summary = {"measurement": {"verdict": "trustworthy"}, "request_latency": latency, "schema_version": "1.0"}
    (folder / "profile_export_aiperf.json").write_text(json.dumps(summary))
    (folder / "a.json").write_text("{}")
    (folder / "cell" / "b.csv").write_text("a,b\n")


async def of_an_ended_run(served: Any, run: str, patch: pytest.MonkeyPatch) -> None:
    await ask_all(served, run, "get", streams=True)
    with patch.context() as within:
        within.setattr(aiperf_command_service.files, "MOST_ARCHIVES", 0)
        await served.answer("GET", f"/runs/{run}/archive")
    for at in (f"/runs/{run}/files/a.json", f"/runs/{run}/api/results/files/a.json"):
        tag = (await served.answer("GET", at)).headers["ETag"]
        for name, text in (("If_None_Match", tag), ("If_Match", '"x"'), ("Range", "bytes=0-0"), ("Range", "bytes=2-")):
            await served.answer("GET", at, **{name: text})
    for name in ("api/stop", "api/cancel", "keep"):
        await served.answer("POST", f"/runs/{run}/{name}")
    await served.answer("DELETE", f"/runs/{run}")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, made_up: Any) -> Any:
    """All answers, and the states that streams told."""
    checks, states = Found(label="m, chat"), list[Any]()

    async def scenario(patch: pytest.MonkeyPatch) -> Any:
        async with made_up.service(patch, tmp_path_factory.mktemp("service") / "d", checks) as served:
            run = await of_posts(served, patch, checks)
            (waiting,) = (entry.id for entry in served.keeper.book.waiting()[:1])
            await of_anybody(served, run)
            await of_full_places(served, run, patch)
            await ask_all(served, waiting, "get")
            await served.answer("GET", f"/runs/{waiting}/events", **SOCKET)
            for name in ("api/events", "ws", "api/stop", "api/cancel"):
                await served.answer("POST" if name.endswith(("stop", "cancel")) else "GET", f"/runs/{waiting}/{name}")
            await of_a_run_under_way(served, run, made_up.Given)
            events = await served.answer("GET", f"/runs/{run}/events")
            states.extend(map(json.loads, re.findall(r"event: state\ndata: (.*)", events.content.decode())))
            await of_an_ended_run(served, run, patch)
            return served.given, states, served.routes

    with pytest.MonkeyPatch.context() as patch:
        return asyncio.run(asyncio.wait_for(scenario(patch), 60))


def test_the_document_is_valid_openapi() -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")
    validator.validate(DOCUMENT)


def test_every_answer_fits_the_document(given: Any) -> None:
    answers, states, _ = given
    assert [why for answer in answers if (why := misfit(answer, DOCUMENT))] == []
    assert states and [why for state in states if (why := difference(state, SCHEMAS["State"], DOCUMENT))] == []
    served, *_ = (answer for answer in answers if answer.path == "/openapi.json" and answer.status == 200)
    assert served.said == DOCUMENT


def test_every_route_is_in_the_document(given: Any) -> None:
    assert given[2] == DOCUMENT["paths"].keys()


def test_every_status_of_the_document_is_answered(given: Any) -> None:
    seen = {(answer.method, path_of(answer.path), str(answer.status)) for answer in given[0]}
    told = {
        (method, path, status) for method, path in operations()
        for status in DOCUMENT["paths"][path][method.lower()]["responses"].keys() - {"default"}
    }  # fmt: skip
    assert sorted(told - seen) == []


def fields(schema: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The ways to all fields of a schema."""
    for name, below in schema.get("properties", {}).items():
        yield (*at, "properties", name)
        yield from fields(below, (*at, "properties", name))
    if "items" in schema:
        yield from fields(schema["items"], (*at, "items"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_answer_misfits_a_document_without_one_of_its_fields(given: Any, name: str) -> None:
    answers, states, _ = given
    for *way, field in fields(SCHEMAS[name]):
        document = copy.deepcopy(DOCUMENT)
        place = document["components"]["schemas"][name]
        for word in way:
            place = place[word]
        del place[field]
        lines = (answer for answer in answers if f'"{field}"'.encode() in answer.content)
        misfits = states and name == "State" and difference(states[0], document["components"]["schemas"]["State"], document)
        assert misfits or any(misfit(answer, document) for answer in lines), (name, *way, field)


def test_an_answer_misfits_a_document_without_its_route_or_status(given: Any) -> None:
    (run, *_) = (answer for answer in given[0] if answer.status == 201)
    for way in (("/runs",), ("/runs", "post"), ("/runs", "post", "responses", "201")):
        document = copy.deepcopy(DOCUMENT)
        place = document["paths"]
        for word in way[:-1]:
            place = place[word]
        del place[way[-1]]
        assert misfit(run, document) and not misfit(run, DOCUMENT)
