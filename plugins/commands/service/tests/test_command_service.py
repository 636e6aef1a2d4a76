"""The service without programs: its book, what a posted file may name, and its routes over a child that is made up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tarfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import aiperf_command_service.child
import aiperf_command_service.keeper
import msgspec
import pytest
from aiperf import ConfigError, UsageError
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.descriptor import OptionSpec
from aiperf_command_service import Service
from aiperf_command_service.book import DONE, FAILED, INTERRUPTED, QUEUED, RUNNING, Book, Entry
from aiperf_command_service.checking import fault_of, forbidden, secrets_of, within
from aiperf_command_service.child import Child, environment
from aiperf_command_service.document import DOCUMENT
from aiperf_command_service.keeper import size_of
from aiperf_command_service.messages import Ask, Fault, Found
from aiperf_command_service.options import ServiceOptions
from aiperf_command_service.ready import Ready
from aiperf_command_service.relay import Relay
from aiperf_command_service.routes import PUBLIC, TokenGuard
from aiperf_command_service.types import TYPES
from aiperf_pages.ports import address_of, listen
from aiperf_pages.server import Server

TOKEN = "a-token-of-24-characters"


def entry(number: int, **about: Any) -> Entry:
    return Entry(f"run-{number}", number, "m, chat", ["aiperf"], **about)


def given(field: str, *texts: str, type_: str = "str", secret: bool = False, metavar: str = "", typed: str = "") -> OptionValue:
    spec = OptionSpec(field, (f"--{field}",), "", type=type_, secret=secret, metavar=metavar)
    return OptionValue(Option(spec, ()), typed or f"benchmark.{field} (run.yaml:7)", list(texts))


# The book


def test_entries_outlive_the_service_in_their_order(tmp_path: Path) -> None:
    book = Book(tmp_path / "book")
    for number in (2, 1):
        book.add(entry(number, state=DONE, numbers={"x_avg": 1.5}), b"models: [m]")
    os.close(book._lock)
    again = Book(tmp_path / "book")
    assert [*again.entries] == ["run-1", "run-2"]
    assert again.entries["run-2"] == entry(2, state=DONE, numbers={"x_avg": 1.5})
    assert again.file(again.entries["run-1"]).read_bytes() == b"models: [m]"


def test_a_run_that_was_never_answered_is_gone(tmp_path: Path) -> None:
    book = Book(tmp_path / "book")
    book.add(entry(1), b"x")
    (tmp_path / "book" / "runs" / "half").mkdir()
    (tmp_path / "book" / "runs" / "run-1" / "state.json").write_text('{"id": "run-1"')
    os.close(book._lock)
    assert Book(tmp_path / "book").entries == {} and [*(tmp_path / "book" / "runs").iterdir()] == []


def test_a_directory_belongs_to_one_service(tmp_path: Path) -> None:
    book = Book(tmp_path / "book")
    with pytest.raises(ConfigError, match="another service uses it"):
        Book(tmp_path / "book")
    os.close(book._lock)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="something else"):
        Book(tmp_path / "own")


def test_the_oldest_ended_runs_go_but_for_kept_ones(tmp_path: Path) -> None:
    book = Book(tmp_path / "book")
    for number in range(1, 6):
        book.add(entry(number, state=DONE, ended_s=float(number), kept=number == 1), b"x")
    book.add(entry(6), b"x")
    assert [old.number for old in book.outdated(3)] == [2, 3]


@pytest.mark.parametrize(("text", "size"), [
    ("20GB", 20_000_000_000), ("1.5 GiB", 1_610_612_736), ("100", 100), ("5k", 5000), ("3B", 3), ("many", None), ("-1GB", None),
])  # fmt: skip
def test_sizes(text: str, size: int | None) -> None:
    assert size_of(text) == size


# What a posted file may name


@pytest.mark.parametrize("text", [
    "/etc/passwd", "../secret", "a/../../secret", "link/secret", "mooncake_trace:/etc/passwd", "file:///etc/passwd",
    "file://localhost/etc/passwd", "a:b:/etc/passwd", "out",
])  # fmt: skip
def test_files_beyond_the_data_are_refused(tmp_path: Path, text: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "link").symlink_to("/etc")
    (data / "out").symlink_to(tmp_path)
    (fault,) = forbidden([given("input_file", text, type_="path")], Ask("", str(data)))
    assert "is not below" in fault.sentence and (fault.path, fault.line) == ("benchmark.input_file", 7)


def test_files_below_the_data_pass(tmp_path: Path) -> None:
    texts = ("trace.jsonl", "deep/trace.jsonl", "mooncake_trace:trace.jsonl", str(tmp_path / "trace.jsonl"))
    assert [*forbidden([given("input_file", *texts, type_="path")], Ask("", str(tmp_path)))] == []
    (fault,) = forbidden([given("input_file", "trace.jsonl", type_="path")], Ask(""))
    assert "may name no files" in fault.sentence and "--data" in fault.hints[0]


@pytest.mark.parametrize(("url", "inside"), [
    ("http://llm:8000", True), ("http://llm:8000/v1", True), ("HTTP://LLM:8000/v1/x", True), ("http://llm:80001", False),
    ("http://llm:8000.evil", False), ("http://llm:8000@evil/", False), ("https://llm:8000", False), ("http://llm", False),
    ("http://x@llm:8000/", False), ("http://llm:8000/../x", False), ("http://llm:x", False),
])  # fmt: skip
def test_urls_begin_with_what_is_allowed(url: str, inside: bool) -> None:
    assert within(url, "http://llm:8000/") is inside
    faults = [*forbidden([given("urls", url)], Ask("", urls=["http://llm:8000"]))]
    assert (not faults) is inside


def test_a_path_of_a_prefix_is_whole() -> None:
    assert within("http://llm/v1/x", "http://llm/v1") and not within("http://llm/v10", "http://llm/v1")


def test_what_the_service_says_itself_is_refused_in_a_file_alone() -> None:
    (fault,) = forbidden([given("artifact_dir", "x", type_="path")], Ask("", "/"))
    assert "the service says that itself" in fault.sentence
    assert [*forbidden([given("artifact_dir", "x", type_="path", typed="--artifact-dir")], Ask("", "/"))] == []


def test_secrets_are_the_values_of_secret_options() -> None:
    header = given("headers", "X-A: b c", secret=True, metavar="NAME:VALUE")
    values = [given("api_key", "k-1", secret=True), header, given("m", "m")]
    assert secrets_of(values) == {"k-1", "b c"}


def test_a_fault_has_its_place() -> None:
    found = fault_of(ConfigError("benchmark.endpoint.apiKey (bad.yaml:3): the variable NOPE is not set", "set it"))
    assert found == Fault("the variable NOPE is not set", "benchmark.endpoint.apiKey", 3, ("set it",))
    assert fault_of(ConfigError("no requests")) == Fault("no requests")


def test_a_run_sees_no_keys_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET", "OPENAI_API_KEY", "AIPERF_API_TOKEN", "AIPERF_API_KEY"):
        monkeypatch.setenv(name, "s")
    monkeypatch.setenv("AIPERF_CACHE_DIR", "/c")
    seen = environment({"ALLOWED": "1"})
    assert {"AWS_SECRET", "OPENAI_API_KEY", "AIPERF_API_TOKEN", "AIPERF_API_KEY"}.isdisjoint(seen)
    assert seen["ALLOWED"] == "1" and seen["AIPERF_CACHE_DIR"] == "/c" and "PATH" in seen


# Words


@pytest.mark.parametrize("word", TYPES)
def test_each_type_of_the_reference_has_a_sentence(word: str) -> None:
    with pytest.raises(UsageError, match=f"aiperf service {word}: "):
        Service().run(ServiceOptions(), [word])


@pytest.mark.parametrize(("options", "words", "sentence"), [
    ({"disk_quota": "lots"}, [], "it is no size"), ({"data": Path("/nowhere")}, [], "no such folder"),
    ({"allow_env": ["NOBODY_SETS_THIS"]}, [], "is not set"), ({}, ["nothing.yaml"], "no such file"),
    ({}, ["a.yaml", "b.yaml"], "one file"), ({"health_host": "0.0.0.0"}, [], "no port"),
])  # fmt: skip
def test_wrong_words_get_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIPERF_API_TOKEN", TOKEN)
    made = ServiceOptions(**options)
    with pytest.raises((ConfigError, UsageError), match=sentence):
        Service().run(made, words)


# Routes


def test_a_run_from_its_post_to_its_archive(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            status, run = await served.ask("POST", "/runs", b"models: [m]")
            assert status == 201 and run["state"] in (QUEUED, "preparing", RUNNING)
            await served.until(lambda: served.begun)
            results = served.begun[0].results
            results.mkdir()
            (results / "profile_export_aiperf.json").write_text(
                '{"measurement": {"verdict": "trustworthy"}, "request_latency": {"avg": 2.5, "p99": 4}}'
            )
            assert (await served.ask("GET", f"/runs/{run['id']}/archive"))[0] == 409
            served.begun[0].over.set_result(0)
            kind, said = await served.ask("GET", f"/runs/{run['id']}/events")
            assert kind == 200 and said.decode().split("data: ")[-1].startswith(f'{{"id": "{run["id"]}", "state": "done"')
            _, run = await served.ask("GET", f"/runs/{run['id']}")
            assert (run["exit_code"], run["verdict"]) == (0, "trustworthy")
            assert run["numbers"] == {"request_latency_avg": 2.5, "request_latency_p99": 4.0}
            _, files = await served.ask("GET", f"/runs/{run['id']}/files")
            assert [file["name"] for file in files["files"]] == ["profile_export_aiperf.json"]
            status, said = await served.ask("GET", f"/runs/{run['id']}/files/profile_export_aiperf.json", Range="bytes=0-1")
            assert (status, said) == (206, b'{"')
            _, archive = await served.ask("GET", f"/runs/{run['id']}/archive")
            with tarfile.open(fileobj=BytesIO(archive)) as members:
                assert f"{run['id']}/profile_export_aiperf.json" in members.getnames()
            assert (await served.ask("DELETE", f"/runs/{run['id']}"))[0] == 200
            assert (await served.ask("GET", f"/runs/{run['id']}"))[0] == 404

    asyncio.run(scenario())


@asynccontextmanager
async def waiting(folder: Path, **variables: str) -> AsyncIterator[Ready]:
    """A program that waits for a run, in *folder*."""
    surroundings = {**environment({}), "PYTHONPATH": str(folder), **variables}
    with ThreadPoolExecutor(1) as launcher:
        ready = Ready(launcher, lambda: (surroundings, folder), [])
        await ready.prepare()
        try:
            yield ready
        finally:
            ready.close()


def test_a_program_that_waits_checks_files_and_becomes_a_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with waiting(tmp_path) as ready:
            answers = [await ready.check(Ask(str(tmp_path / "r"), content=content)) for content in (b"benchmark: [", b"a: 1")]
            assert all(answer is not None and msgspec.json.decode(answer, type=Found).faults for answer in answers)
            program = await ready.taken(["profile", "--nothing"], {**environment({}), "ONLY": "this"})
            assert program is not None and await ready.taken([], {}) is None and await ready.check(Ask("")) is None
            out, _ = await asyncio.to_thread(program.communicate)
            assert program.returncode == 2 and b"--nothing" in out, out

    asyncio.run(scenario())


def test_a_program_that_waits_begins_anew_when_something_was_installed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with waiting(tmp_path) as ready:
            await ready.check(Ask(str(tmp_path / "r"), content=b"a: 1"))
            (tmp_path / "sitecustomize.py").write_text("print('installed')")
            program = await ready.taken(["--version"], environment({}))
            assert program is not None
            out, _ = await asyncio.to_thread(program.communicate)
            assert program.returncode == 0 and out.startswith(b"installed\n"), out

    asyncio.run(scenario())


def test_a_check_beyond_its_bounds_is_told_and_the_next_one_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with waiting(tmp_path) as ready:
            at_first = ready._waiting
            assert at_first is not None
            os.kill(at_first.process.pid, signal.SIGKILL)
            assert await ready.check(Ask("")) is None and ready._waiting is None
            await ready.prepare()
            assert ready._waiting is not None
            ready._waiting.process.send_signal(signal.SIGSTOP)
            monkeypatch.setattr("aiperf_command_service.ready.CHECK_S", 0.05)
            with pytest.raises(TimeoutError):
                await ready.check(Ask(""))
            assert ready._waiting is None

    asyncio.run(scenario())


def test_metrics_of_a_run_are_read_where_its_api_compresses() -> None:
    async def metrics(request: aiohttp.web.Request) -> aiohttp.web.Response:
        response = aiohttp.web.Response(text="aiperf_up 1\n" * 1000)
        response.enable_compression()  # as the client of it allows
        return response

    async def scenario() -> None:
        app, listening = aiohttp.web.Application(), listen("127.0.0.1", 0)
        app.router.add_get("/metrics", metrics)
        server = Server(app, TokenGuard("127.0.0.1", TOKEN), listening)
        await server.start()
        async with aiohttp.ClientSession(auto_decompress=False) as client:
            url = f"{address_of('127.0.0.1', listening)}/metrics"
            assert (await Relay(client).text(url, TOKEN)).startswith("aiperf_up 1\n")
        await server.stop()

    asyncio.run(scenario())


def test_a_key_brings_its_run_once(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            answers = await asyncio.gather(*(served.ask("POST", "/runs", b"a: 1", Idempotency_Key="k") for _ in range(5)))
            assert sorted(status for status, _ in answers) == [200, 200, 200, 200, 201]
            assert len({run["id"] for _, run in answers}) == len(served.keeper.book.entries) == 1
            assert (await served.ask("POST", "/runs", b"a: 2", Idempotency_Key="k"))[0] == 409
            assert (await served.ask("POST", "/runs", b"a: 2", Idempotency_Key="k k"))[0] == 400

    asyncio.run(scenario())


def test_a_full_queue_refuses_until_there_is_room(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            await served.ask("POST", "/runs", b"a: 1")
            await served.until(lambda: served.begun)
            runs = [(await served.ask("POST", "/runs", b"a: 1"))[1] for _ in range(2)]
            assert [run["position"] for run in runs] == [1, 2]
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with served.client.post(f"{served.at}/runs", data=b"a: 1", headers=headers) as answer:
                assert answer.status == 429 and int(answer.headers["Retry-After"]) > 0
                assert answer.content_type == "application/problem+json" and "2 runs wait" in (await answer.json())["detail"]
            status, said = await served.ask("DELETE", f"/runs/{runs[0]['id']}")
            assert status == 200 and "queue" in said["detail"] and len(served.keeper.book.waiting()) == 1
            assert (await served.ask("POST", "/runs", b"a: 1"))[0] == 201

    asyncio.run(scenario())


def test_a_run_under_way_is_stopped_then_cancelled(tmp_path: Path, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            _, run = await served.ask("POST", "/runs", b"a: 1")
            await served.until(lambda: served.begun)
            monkeypatch.setattr(type(served.begun[0]), "interrupt", lambda self: setattr(self, "signals", self.signals + 1))
            answers = [await served.ask("DELETE", f"/runs/{run['id']}") for _ in range(3)]
            assert [status for status, _ in answers] == [202, 202, 409] and served.begun[0].signals == 2
            served.begun[0].over.set_result(130)
            await served.until(lambda: served.keeper.book.entries[run["id"]].state == "cancelled")

    asyncio.run(scenario())


@pytest.mark.parametrize(("asked", "state"), [(True, "cancelled"), (False, "failed")])
def test_a_program_that_goes_on_is_killed(
    tmp_path: Path, service: Any, monkeypatch: pytest.MonkeyPatch, asked: bool, state: str
) -> None:
    """After it was cancelled; and a run whose program somebody else killed is told apart."""
    monkeypatch.setattr(aiperf_command_service.keeper, "CANCEL_S", 0.01)

    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            _, run = await served.ask("POST", "/runs", b"a: 1")
            _, other = await served.ask("POST", "/runs", b"a: 1")
            await served.until(lambda: served.begun)
            child = served.begun[0]
            child.interrupt = lambda: None
            if asked:
                assert [(await served.ask("DELETE", f"/runs/{run['id']}"))[0] for _ in range(2)] == [202, 202]
            else:
                child.over.set_result(-signal.SIGKILL)
            await served.until(lambda: len(served.begun) == 2)
            entry = served.keeper.book.entries[run["id"]]
            assert (entry.state, entry.code, "killed" in entry.reason) == (state, 137, True)
            served.begun[1].over.set_result(0)
            await served.until(lambda: served.keeper.book.entries[other["id"]].state == DONE)

    asyncio.run(scenario())


def test_a_program_that_hangs_or_is_outlived_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real programs: one that heeds no signal before its load, and one whose own child keeps its output open."""
    hanging = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('hangs', flush=True); time.sleep(600)"
    leaving = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); sys.exit(7)"
    monkeypatch.setattr(aiperf_command_service.child, "_LEFT_S", 0.1)

    async def code(program: str) -> int:
        monkeypatch.setattr(aiperf_command_service.child, "_LAUNCH", program)
        log = tmp_path / "log"
        with ThreadPoolExecutor(1) as launcher:
            child = await Child.begin(launcher, tmp_path / "f", tmp_path / "r", log, dict(os.environ), tmp_path)
            if program == hanging:
                while not log.exists() or b"hangs" not in log.read_bytes():
                    await asyncio.sleep(0.01)
                child.interrupt()
                child.kill()
            return await asyncio.wait_for(child.ended(), 60)

    assert asyncio.run(code(hanging)) == -signal.SIGKILL
    assert asyncio.run(code(leaving)) == 7


def test_the_page_of_a_run_is_there_in_each_state(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            runs = [(await served.ask("POST", "/runs", b"a: 1"))[1]["id"] for _ in range(2)]
            await served.until(lambda: served.begun)
            for run in runs:
                status, page = await served.ask("GET", f"/runs/{run}/")
                assert status == 200 and b"/static/page.js" in page

    asyncio.run(scenario())


def test_every_route_but_the_probes_needs_the_token(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            run, public = (await served.ask("POST", "/runs", b"a: 1"))[1]["id"], {"/healthz", "/readyz", *PUBLIC}
            for path, about in DOCUMENT["paths"].items():
                for method in set(about) & {"get", "post", "delete"}:
                    url = served.at + path.replace("{run}", run).replace("{name}", "page.js")
                    for headers in ({}, {"Authorization": "Bearer wrong"}):
                        async with served.client.request(method, url, headers=headers) as answer:
                            assert answer.status == (200 if path in public else 401), (method, path)
            async with served.client.get(f"{served.at}/healthz", headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403

    asyncio.run(scenario())


def test_all_faults_of_a_file_are_told(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        found = Found([Fault("no such type", "benchmark.endpoint.type", 3), Fault("too many", "benchmark.phases", 9)])
        async with service(tmp_path / "d", found) as served:
            status, said = await served.ask("POST", "/runs", b"a: 1")
            assert status == 422 and [fault["line"] for fault in said["faults"]] == [3, 9]
            assert served.keeper.book.entries == {}
            assert [path.name for path in (tmp_path / "d").rglob("*") if path.is_file()] == ["service.lock"]
            assert (await served.ask("POST", "/runs", b" "))[0] == 400
            assert (await served.ask("POST", "/runs", b"x" * (2 << 20)))[0] == 413

    asyncio.run(scenario())


def test_keys_stand_in_no_file_and_reach_the_run(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        found = Found(label="m", secrets=["sekret", "sekret-long"])
        async with service(tmp_path / "d", found) as served:
            status, run = await served.ask("POST", "/runs", b"apiKey: sekret-long\nother: 'sekret'")
            assert status == 201 and "sekret" not in json.dumps(run)
            await served.until(lambda: served.begun)
            held = {text for name, text in served.begun[0].variables.items() if name.startswith("POSTED_SECRET_")}
            assert held == {"sekret", "sekret-long"}
            everything = b"".join(path.read_bytes() for path in (tmp_path / "d").rglob("*") if path.is_file())
            assert b"sekret" not in everything and b"${POSTED_SECRET_" in everything
            assert (await served.ask("POST", "/runs", b'apiKey: "sekr\\u0065t"'))[0] == 422

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["${KEY:sekret}", "'sekret'", "Bearer sekret"])
def test_a_key_is_replaced_with_the_variable_that_it_is_the_default_of(tmp_path: Path, service: Any, text: str) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d", Found(label="m", secrets=["sekret"])) as served:
            status, run = await served.ask("POST", "/runs", f"apiKey: {text}".encode())
            assert status == 201
            stored = served.keeper.book.file(served.keeper.book.entries[run["id"]]).read_text()
            assert stored == f"apiKey: {text}".replace("${KEY:sekret}", "sekret").replace("sekret", "${POSTED_SECRET_1}")

    asyncio.run(scenario())


def test_the_operators_own_variables_stand_in_their_file(tmp_path: Path, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_KEY", "sekret")
    (tmp_path / "run.yaml").write_text("apiKey: ${OWN_KEY}")

    async def scenario() -> None:
        async with service(tmp_path / "d", Found(label="m", secrets=["sekret"])) as served:
            entry = await served.keeper.intake.take_own(tmp_path / "run.yaml")
            assert served.keeper.book.file(entry).read_text() == "apiKey: ${OWN_KEY}"

    asyncio.run(scenario())


def test_on_a_full_disk_a_run_goes_on_and_can_be_ended(tmp_path: Path, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            _, run = await served.ask("POST", "/runs", b"a: 1")
            await served.until(lambda: served.begun)

            def full(entry: Entry) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(served.keeper.book, "save", full)
            assert (await served.ask("DELETE", f"/runs/{run['id']}"))[0] == 202 and served.begun[0].signals == 1
            await served.until(lambda: served.keeper.book.entries[run["id"]].state == "cancelled")
            assert (await served.ask("GET", f"/runs/{run['id']}"))[1]["exit_code"] == 130

    asyncio.run(scenario())


def test_an_ending_service_takes_no_run_and_lets_one_end(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            await served.ask("POST", "/runs", b"a: 1")
            await served.until(lambda: served.begun)
            draining = asyncio.create_task(served.keeper.drain(600))
            await served.until(lambda: served.keeper.intake.ending)
            assert (await served.ask("GET", "/readyz"))[0] == (await served.ask("POST", "/runs", b"a: 1"))[0] == 503
            served.begun[0].over.set_result(0)
            await draining
            assert [run.state for run in served.keeper.book.entries.values()] == [DONE] and served.begun[0].signals == 0

    asyncio.run(scenario())


def test_behind_its_grace_a_run_is_stopped(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            await served.ask("POST", "/runs", b"a: 1")
            await served.until(lambda: served.begun)
            await served.keeper.drain(0)
            assert [run.state for run in served.keeper.book.entries.values()] == [INTERRUPTED] and served.begun[0].signals == 1

    asyncio.run(scenario())


def test_ended_runs_beyond_the_bound_go_and_a_quota_refuses(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d", queue=9, keep=2) as served:
            runs = [(await served.ask("POST", "/runs", b"a: 1"))[1]["id"] for _ in range(4)]
            assert (await served.ask("POST", f"/runs/{runs[0]}/keep"))[1]["kept"]
            for number in range(4):
                while len(served.begun) <= number:
                    await asyncio.sleep(0.005)
                served.begun[number].over.set_result(number % 2)
            await served.until(lambda: len(served.keeper.book.entries) == 2)
            assert [*served.keeper.book.entries] == [runs[0], runs[3]] and served.keeper.book.entries[runs[3]].state == FAILED
            served.keeper.intake.limits = served.keeper.intake.limits._replace(quota=1)
            status, said = await served.ask("POST", "/runs", b"a: 1")
            assert status == 503 and "quota" in said["detail"]

    asyncio.run(scenario())


def test_what_was_under_way_or_lost_its_key_is_interrupted(tmp_path: Path, service: Any) -> None:
    async def scenario() -> None:
        async with service(tmp_path / "d") as served:
            served.keeper.book.add(entry(1, state=RUNNING), b"x")
            served.keeper.book.entries["run-2"] = entry(2, secrets=1)
            served.keeper.book.folder(served.keeper.book.entries["run-2"]).mkdir()
            await served.keeper.recover()
            assert [run.state for run in served.keeper.book.entries.values()] == [INTERRUPTED, INTERRUPTED]
            assert "key" in served.keeper.book.entries["run-2"].reason

    asyncio.run(scenario())
