"""The routes of a run under way, by HTTP: what they answer, whom they refuse, and what clients may do to them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import WSMsgType
from aiperf_live_api import ApiOptions
from aiperf_live_api.contract import ApiContract
from aiperf_live_api.history import MOST_POINTS, MOST_SERIES, History
from aiperf_live_api.limits import Limits
from aiperf_live_api.openapi import document
from aiperf_live_api.routes import PAGES
from aiperf_pages.ports import listen
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

TOKEN, CANARY = "a-token-of-twenty-characters", "<script>window.canary=1</script>"
GETS = (
    "/api/run", "/api/config", "/api/progress", "/api/metrics", "/api/workers", "/api/server-metrics", "/api/results",
    "/api/results/list", "/api/history",
)  # fmt: skip


class TestTheApiKeepsTheContract(ApiContract):
    """The checks of every live view."""


def run(check: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(check(), 300))


def fits(answer: object, path: str, status: int, method: str = "get") -> None:
    """Hold an answer to the description of its route."""
    import jsonschema

    whole = document()
    schema = whole["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
    jsonschema.validate(answer, {**schema, "components": whole["components"]}, jsonschema.Draft202012Validator)


def test_the_description_is_valid_openapi():
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")
    validator.validate(document())


def test_every_answer_fits_the_description_before_beside_and_behind_a_run(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live:
            for path in GETS:
                status, answer = await live.get(path)
                assert status == (503 if path in ("/api/run", "/api/config") else 200)
                fits(answer, path, status)
            await live.begin(CANARY)
            await live.show(*range(1, 5), text=CANARY)
            for path in GETS:
                status, answer = await live.get(path)
                assert status == 200
                fits(answer, path, status)
            (tmp_path / "a.json").write_text("{}")
            (tmp_path / ".aiperf_results_ready.json").write_text(json.dumps({"files": ["a.json", "../b"], "partial": False}))
            await live.end(files=(str(tmp_path / "a.json"),), failure="the server went away")
            for path in GETS:
                status, answer = await live.get(path)
                fits(answer, path, status)
            _, listing = await live.get("/api/results/list")
            assert listing["files"] == [{"name": "a.json", "size": 2}]
            _, results = await live.get("/api/results")
            assert (results["status"], results["finish"]["reason"]) == ("incomplete", "the server went away")
            async with live.session.get(live.url + "/api/openapi.json") as answer:
                assert await answer.json() == json.loads(json.dumps(document()))

    run(check)


def test_every_route_of_the_server_is_described(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live:
            known = set(document()["paths"]) | {"/", "/dashboard", "/static/{name}", "/api/openapi.json"}
            assert live.routes() == known

    run(check)


def test_numbers_of_the_reference_have_its_names(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live:
            await live.begin()
            await live.show(3)
            _, progress = await live.get("/api/progress")
            phase = progress["phases"]["profiling"]
            assert (phase["requests_sent"], phase["requests_completed"], phase["error_records"]) == (38, 30, 3)
            assert progress["system_state"] == "profiling"
            _, metrics = await live.get("/api/metrics")
            assert metrics["metrics"]["time_to_first_token"]["p99"] == 200
            assert (metrics["concurrency"], metrics["request_rate"], metrics["streaming"]) == (8, 20.0, True)
            _, workers = await live.get("/api/workers")
            assert workers["workers"]["worker_1"]["health"]["pid"] == 101
            assert workers["worker_groups"]["local"]["task_stats"]["completed"] == 30

    run(check)


async def events(answer: aiohttp.ClientResponse, until: str) -> list[tuple[str, object]]:
    """The events up to the first of a kind."""
    found: list[tuple[str, object]] = []
    text = ""
    while not found or found[-1][0] != until:
        piece = await asyncio.wait_for(answer.content.readany(), 60)
        assert piece, found
        text += piece.decode()
        *blocks, text = text.split("\n\n")
        for block in blocks:
            match = re.search(r"event: (\w+)\ndata: (.*)", block)
            if match:
                found.append((match[1], json.loads(match[2])))
    return found


def test_a_late_client_gets_the_run_and_then_what_happens(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live:
            await live.begin()
            await live.log("a line")
            await live.show(1, 2)
            async with live.session.get(live.url + "/api/events") as answer:
                first = await events(answer, "snapshot")
                assert [kind for kind, _ in first] == ["run", "lines", "snapshot"]
                assert first[2][1]["number"] == 2
                await live.show(3)
                await live.end(failure="over")
                rest = await events(answer, "end")
                assert [kind for kind, _ in rest] == ["snapshot", "end"]
            _, history = await live.get("/api/history")
            assert history["times"] == [0.5, 1.0, 1.5]
            assert history["series"]["done.profiling"]["values"] == [10, 20, 30]

    run(check)


def test_a_client_that_never_reads_loses_events_and_is_told(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live:
            await live.begin()
            reader, writer = await asyncio.open_connection("127.0.0.1", int(live.url.rpartition(":")[2]), limit=1 << 10)
            writer.transport.pause_reading()
            writer.write(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not live.api.board.streams:
                await asyncio.sleep(0.01)
            await live.show(*range(1, 3000))
            assert (await live.get("/api/progress"))[0] == 200
            (client,) = live.api.board.streams._clients
            assert len(client._queue) == 256
            writer.transport.resume_reading()
            text = b""
            while b"event: lost" not in text:
                text = text[-100:] + await asyncio.wait_for(reader.read(1 << 16), 60)
            writer.close()

    run(check)


class TestTheWayBack:
    def test_stop_and_cancel_need_the_token_and_a_run(self, served, tmp_path):
        async def check():
            async with served(str(tmp_path)) as live:
                for token, code in ((None, 401), ("wrong", 401), (TOKEN, 409)):
                    status, answer = await live.post("/api/stop", token)
                    assert status == code
                    fits(answer, "/api/stop", status, "post")
                await live.begin()
                answers = [await live.post(path) for path in ("/api/stop", "/api/stop", "/api/cancel", "/api/cancel")]
                assert [status for status, _ in answers] == [202, 409, 202, 409]
                assert "POST /api/cancel" in answers[1][1]["detail"]
                assert live.asked == ["stop", "cancel"]
                await live.end(failure="stopped")
                status, answer = await live.post("/api/stop")
                assert (status, answer["detail"]) == (409, "the run has ended (incomplete); there is nothing to stop")

        run(check)

    def test_a_page_of_another_origin_stops_nothing(self, served, tmp_path):
        async def check():
            async with served(str(tmp_path)) as live:
                await live.begin()
                headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}
                async with live.session.post(live.url + "/api/stop", headers=headers) as answer:
                    assert answer.status == 403
                assert live.asked == []

        run(check)

    def test_shutdown_waits_for_the_run(self, served, tmp_path):
        async def check():
            limits = Limits(grace_s=3600.0, shutdown_s=0.0)
            async with served(str(tmp_path), limits) as live:
                await live.begin()
                assert (await live.post("/api/shutdown"))[0] == 409
                await live.end(failure="over")
                live.feed.finish()
                assert (await live.post("/api/shutdown")) == (200, {"status": "shutting_down"})
                await asyncio.wait_for(live.over, 60)

        run(check)


def test_an_open_page_does_not_hold_the_end(served, tmp_path):
    async def check():
        async with served(str(tmp_path), Limits(grace_s=0.1)) as live:
            await live.begin()
            async with live.session.get(live.url + "/api/events") as answer:
                await live.end(failure="over")
                live.feed.finish()
                await asyncio.wait_for(live.over, 60)
                assert (await answer.content.read()).count(b"event: end") == 1

    run(check)


@pytest.mark.parametrize(("name", "status"), [
    ("a.json", 200), ("b.json", 404), ("../secret", 400), ("..%2fsecret", 400), ("%2e%2e/secret", 400), ("%2fetc/passwd", 400),
    ("x/../../secret", 400), ("a.json%00", 400), ("link", 404), (".aiperf_results_ready.json", 404), ("..%5csecret", 400),
])  # fmt: skip
def test_only_the_files_of_the_run_are_given(served, tmp_path, name, status):
    async def check():
        directory = tmp_path / "run"
        directory.mkdir()
        (tmp_path / "secret").write_text("secret")
        (directory / "a.json").write_text("[1]")
        (directory / "link").symlink_to(tmp_path / "secret")
        (directory / ".aiperf_results_ready.json").write_text(json.dumps({"files": ["a.json", "link", "../secret"]}))
        async with served(str(directory)) as live:
            await live.begin()
            async with live.session.get(f"{live.url}/api/results/files/a.json") as answer:
                assert answer.status == 404
                assert "when it has ended" in (await answer.json())["detail"]
            await live.end(failure="over")
            async with live.session.get(URL(f"{live.url}/api/results/files/{name}", encoded=True)) as answer:
                text = await answer.text()
                assert answer.status == status, text
                assert "secret" not in text or status != 200
                if status == 200:
                    assert text == "[1]"
                    assert "sandbox" in answer.headers["Content-Security-Policy"]
                    assert answer.headers["Content-Disposition"].startswith("attachment")

    run(check)


class TestTheWebSocket:
    def test_a_client_gets_what_it_subscribes_to(self, served, tmp_path):
        async def check():
            async with served(str(tmp_path)) as live, live.session.ws_connect(live.url + "/ws") as socket:
                await live.begin()
                await socket.send_json({"type": "ping"})
                assert await socket.receive_json() == {"type": "pong"}
                await socket.send_json({"type": "subscribe", "message_types": ["realtime_metrics", "end"]})
                assert (await socket.receive_json())["type"] == "subscribed"
                await live.show(1)
                message = await socket.receive_json()
                assert (message["message_type"], message["metrics"][0]["tag"]) == ("realtime_metrics", "time_to_first_token")
                await socket.send_json({"type": "unsubscribe", "message_types": ["realtime_metrics"]})
                assert (await socket.receive_json())["type"] == "unsubscribed"
                await live.show(2)
                await live.end(failure="over")
                assert (await socket.receive_json())["message_type"] == "end"

        run(check)

    @pytest.mark.parametrize("text", [
        "{", "[]", "7", '{"type":"subscribe","message_types":"*"}', '{"type":"x"}', '{"type":["x"]}',
    ])  # fmt: skip
    def test_garbage_is_answered_with_an_error(self, served, tmp_path, text):
        async def check():
            async with served(str(tmp_path)) as live, live.session.ws_connect(live.url + "/ws") as socket:
                await socket.send_str(text)
                assert (await socket.receive_json())["type"] == "error"

        run(check)

    def test_one_client_too_many_is_closed_with_1013(self, served, tmp_path):
        async def check():
            async with served(str(tmp_path), Limits(grace_s=0.0, most_clients=1)) as live:
                connect = live.session.ws_connect
                async with connect(live.url + "/ws"), connect(live.url + "/ws") as second:
                    message = await second.receive()
                    assert (message.type, message.data) == (WSMsgType.CLOSE, 1013)
                    assert "1 clients" in message.extra
                    status, answer = await live.get("/api/events")
                    assert status == 503
                    assert "1 clients" in answer["detail"]

        run(check)

    def test_a_plain_request_is_sent_to_the_events(self, served, tmp_path):
        async def check():
            async with served(str(tmp_path)) as live:
                status, answer = await live.get("/ws")
                assert status == 426
                assert "/api/events" in answer["detail"]

        run(check)

    def test_another_origin_gets_no_socket(self, served, tmp_path):
        async def check():
            async with served(str(tmp_path)) as live:
                with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                    await live.session.ws_connect(live.url + "/ws", headers={"Origin": "http://evil.example"})
                assert caught.value.status == 403

        run(check)


class TestPrometheus:
    def exposed(self, served, tmp_path) -> str:
        found: list[str] = []

        async def check():
            async with served(str(tmp_path)) as live:
                await live.begin("m\"1\\\n")
                await live.show(3, text=CANARY)
                async with live.session.get(live.url + "/metrics") as answer:
                    found.append(await answer.text())

        run(check)
        return found[0]

    def test_the_text_is_read_and_the_id_stands_alone(self, served, tmp_path):
        families = list(text_string_to_metric_families(self.exposed(served, tmp_path)))
        samples = [sample for family in families for sample in family.samples]
        assert {sample.name for sample in samples if "benchmark_id" in sample.labels} == {"aiperf_info"}
        assert len({family.name for family in families}) == len(families)
        (p99,) = (sample for sample in samples if sample.name == "aiperf_time_to_first_token_ms"
                  and sample.labels["quantile"] == "0.99")  # fmt: skip
        assert p99.value == 200
        assert p99.labels["model"] == "m\"1\\\n"
        assert next(sample.value for sample in samples if sample.name == "aiperf_time_to_first_token_ms_count") == 30

    def test_every_query_of_the_board_names_what_is_exposed(self, served, tmp_path):
        exposed = {sample.name for family in text_string_to_metric_families(self.exposed(served, tmp_path))
                   for sample in family.samples}  # fmt: skip
        board = json.loads((PAGES / "grafana.json").read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        named = {name for query in queries for name in re.findall(r"aiperf_\w+", query)}
        assert len(queries) > 10
        assert named <= exposed


class TestHistory:
    def test_a_long_run_keeps_its_sum_and_its_extremes(self):
        history, total, count = History(), 0, 40_000
        for number in range(count):
            total += number % 7
            value = 500.0 if number == 12_345 else -3.0 if number == 31_007 else float(number % 11)
            history.add(number / 2, {"done": total}, {"latency": value})
        found = history.document()
        times, done = found["times"], found["series"]["done"]["values"]
        assert MOST_POINTS / 4 < len(times) <= MOST_POINTS
        assert len(done) == len(times) == len(found["series"]["latency"]["values"])
        assert times == sorted(times)
        assert done[-1] == total
        assert sum(after - before for before, after in zip([0, *done], done, strict=False)) == total
        assert (max(found["series"]["latency"]["values"]), min(found["series"]["latency"]["values"])) == (500.0, -3.0)

    @pytest.mark.parametrize("count", [0, 1, 2, 3, MOST_POINTS - 1, MOST_POINTS, MOST_POINTS + 1, MOST_POINTS + 3])
    def test_every_length_is_whole(self, count):
        history = History()
        for number in range(count):
            history.add(number, {"done": number + 1}, {"gauge": None if number % 2 else number})
        found = history.document()
        assert len(found["times"]) <= MOST_POINTS
        assert not count or (found["times"][-1], found["series"]["done"]["values"][-1]) == (count - 1, count)

    def test_a_series_that_comes_late_is_unknown_before(self):
        history = History()
        history.add(1, {}, {"a": 1})
        history.add(2, {"done": 5}, {"a": 2, "b": 7})
        history.add(3, {}, {"b": 8})
        found = history.document()["series"]
        assert found["b"]["values"] == [None, 7, 8]
        assert found["a"]["values"] == [1, 2, None]
        assert found["done"]["values"] == [0, 5, 5]

    def test_series_beyond_the_most_are_left_out_and_counted(self):
        history = History()
        history.add(1, {}, {str(number): 1.0 for number in range(MOST_SERIES + 7)})
        found = history.document()
        assert (len(found["series"]), found["left_out"]) == (MOST_SERIES, 7)


class TestTheOptions:
    def test_a_host_needs_a_port(self):
        (problem,) = ApiOptions(api_host="127.0.0.1").problems({"api_host": "--api-host"})
        assert problem.startswith("--api-host needs --api-port or AIPERF_API_SERVER_PORT")

    def test_the_port_may_come_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("AIPERF_API_SERVER_PORT", "0")
        monkeypatch.setenv("AIPERF_API_SERVER_HOST", "localhost")
        options = ApiOptions()
        assert (options.api_port, options.host) == (0, "localhost")
        assert options.problems({}) == []

    @pytest.mark.parametrize(("name", "value"), [
        ("AIPERF_API_SERVER_PORT", "70000"), ("AIPERF_API_SERVER_PORT", "http"), ("AIPERF_API_TOKEN", "short"),
        ("AIPERF_API_SERVER_POST_COMPLETE_GRACE", "-1"), ("AIPERF_API_SERVER_WEBSOCKET_MAX_CONNECTIONS", "many"),
    ])  # fmt: skip
    def test_a_bad_variable_is_named(self, monkeypatch, name, value):
        monkeypatch.setenv(name, value)
        options = ApiOptions() if name == "AIPERF_API_SERVER_PORT" else ApiOptions(api_port=0)
        (problem,) = options.problems({})
        assert name in problem

    def test_a_taken_port_is_refused_where_it_was_typed(self):
        with listen("127.0.0.1", 0) as taken:
            options = ApiOptions(api_port=taken.getsockname()[1])
            (problem,) = options.problems({"api_port": "--api-port"})
            assert "in use by another program" in problem
            assert options.problems({}) == []

    def test_the_token_comes_from_the_environment_and_is_a_secret(self, monkeypatch):
        monkeypatch.setenv("AIPERF_API_TOKEN", TOKEN)
        assert ApiOptions(api_port=0).api_token == TOKEN
        assert ApiOptions().api_token is None
        assert TOKEN not in repr(ApiOptions(api_port=0))


def test_what_the_run_itself_imports_has_no_server():
    modules = "aiperf_live_api, aiperf_live_api.options, aiperf_live_api.limits, aiperf_pages.tokens"
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert not {"aiohttp", "asyncio", "numpy"} & set(done.stdout.split())


def test_pages_name_no_other_host_and_hold_no_script():
    for path in PAGES.iterdir():
        text = path.read_text()
        assert "://" not in text or path.name == "grafana.json", path
        if path.suffix == ".html":
            assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=|javascript:", text)
        if path.suffix == ".js":
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)


def test_the_page_and_its_files_are_there(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live:
            async with live.session.get(live.url + "/") as answer:
                page = await answer.text()
                assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
            for name in re.findall(r'(?:src|href)="(/[^"]+)"', page):
                async with live.session.get(live.url + name) as answer:
                    assert answer.status == 200, name
            async with live.session.get(live.url + "/dashboard", allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, "/")
            for path in ("/healthz", "/readyz"):
                async with live.session.get(live.url + path) as answer:
                    assert (answer.status, await answer.text()) == (200, "ok")

    run(check)
