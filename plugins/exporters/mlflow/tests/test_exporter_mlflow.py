"""Runs that are uploaded to a store of files, and to a server that answers as it likes."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from aiperf import Result, Target, UsageError
from aiperf.testing import sample_study, sample_summary
from aiperf_exporter_mlflow import MlflowExporter, MlflowStudyExporter
from aiperf_exporter_mlflow.contract import MlflowContract, MlflowStudyContract
from aiperf_exporter_mlflow.jobs import metrics, parameters
from aiperf_exporter_mlflow.options import MlflowRunOptions, MlflowStudyOptions, address, tags_of
from msgspec.structs import replace


class TestItKeepsTheContract(MlflowContract):
    pass


class TestStudiesKeepTheContract(MlflowStudyContract):
    pass


CONFIG = {
    "models": {"items": [{"name": "m1"}, {"name": "m2"}]},
    "endpoint": {"type": "chat", "urls": ["http://user:pass@host:8000"]},
    "phases": [
        {"name": "warmup", "kind": "warmup", "type": "concurrency", "concurrency": 1},
        {"name": "profiling", "kind": "profiling", "type": "poisson", "rate": 5.0, "requests": 20, "duration": 9.0},
    ],
}


def test_a_run_is_read_back_from_the_store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run_directory, store = tmp_path / "run", (tmp_path / "store").as_uri()
    for name in ("profile_export_aiperf.json", "profile_export.jsonl", "notes.txt", "plots/a/b.png", "journal/run.json"):
        (run_directory / name).parent.mkdir(parents=True, exist_ok=True)
        (run_directory / name).write_text("{}")
    summary = replace(sample_summary(), config=CONFIG, directory=str(run_directory))
    options = MlflowRunOptions(tracking_uri=store, experiment="speed", tags=["team:a", "why:b:c"], parent_run_id="f" * 32)
    (receipt,) = MlflowExporter(Target(run_directory), options).export(summary)
    told = json.loads(receipt.path.read_text())

    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=store)
    run = client.get_run(told["run_id"])
    assert run.info.status == "FINISHED" and run.info.run_name == told["run_name"] == "aiperf-01234567"
    assert run.data.metrics == metrics(summary)
    assert run.data.metrics["request_latency.p99"] == summary.results["request_latency"].stats["p99"]
    assert run.data.params == parameters(summary)
    tags = run.data.tags
    assert (tags["team"], tags["why"]) == ("a", "b:c")
    assert (tags["benchmark_id"], tags["aiperf.was_cancelled"]) == ("0123456789ab", "false")
    assert tags["mlflow.parentRunId"] == told["parent_run_id"] == "f" * 32
    assert {each.path for each in client.list_artifacts(told["run_id"], "exports")} == {
        "exports/profile_export.jsonl", "exports/profile_export_aiperf.json",
    }  # fmt: skip
    assert [each.path for each in client.list_artifacts(told["run_id"], "plots/a")] == ["plots/a/b.png"]
    assert told["uploaded_artifacts"] == ["plots/a/b.png", "profile_export.jsonl", "profile_export_aiperf.json"]
    assert told["exported_at_ns"] > summary.end_ns and told["live_streaming"] is False


def test_the_runs_of_a_study_are_nested_in_one_and_filed_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    folder, store = tmp_path / "study", (tmp_path / "store").as_uri()
    study = sample_study(folder, trials=1, concurrencies=(1, 2))
    first, second = study.runs
    for run in study.runs:
        run.directory.mkdir(parents=True)
        (run.directory / "profile_export_aiperf.json").write_text("{}")
    (folder / "sweep_aggregate").mkdir()
    (folder / "sweep_aggregate" / "profile_export_aiperf_sweep.json").write_text("{}")
    options = MlflowStudyOptions(tracking_uri=store)

    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=store)
    MlflowStudyExporter(Target(folder), options).export_study(replace(study, runs=(first,), complete=False))
    broken_off = json.loads((folder / "mlflow_export.json").read_text())
    assert client.get_run(broken_off["run_id"]).info.status == "FAILED"
    (receipt,) = MlflowStudyExporter(Target(folder), options).export_study(study)
    told = json.loads(receipt.path.read_text())
    assert told["run_id"] == broken_off["run_id"] and {*told["runs"]} == {first.label, second.label}
    assert told["runs"][first.label] == broken_off["runs"][first.label]
    (experiment,) = [each for each in client.search_experiments() if each.name == "aiperf"]
    assert len(client.search_runs([experiment.experiment_id])) == 3
    parent = client.get_run(told["run_id"])
    assert parent.info.status == "FINISHED" and parent.data.metrics["aiperf.runs"] == 2
    for run in study.runs:
        child = client.get_run(told["runs"][run.label])
        assert child.data.tags["mlflow.parentRunId"] == told["run_id"] and child.info.run_name == run.label
        assert child.data.params["cell.concurrency"] == str(run.cell.parameters["concurrency"])
        assert child.data.metrics == metrics(run.summary)
        artifacts = [each.path for each in client.list_artifacts(child.info.run_id, "exports")]
        assert artifacts == ["exports/profile_export_aiperf.json"]
    assert [each.path for each in client.list_artifacts(told["run_id"], "exports/sweep_aggregate")] == [
        "exports/sweep_aggregate/profile_export_aiperf_sweep.json"
    ]


class Gate(BaseHTTPRequestHandler):
    """Refuses everybody, and repeats the key."""

    seen: list = []

    def do_GET(self):
        key = self.headers.get("Authorization", "")
        self.seen.append(key)
        body = json.dumps({"error_code": "PERMISSION_DENIED", "message": f"no entry with {key}"}).encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.do_GET()

    def log_message(self, *words):
        pass


@pytest.fixture
def gate():
    server = HTTPServer(("127.0.0.1", 0), Gate)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_that_refuses_the_key_is_a_warning_without_it(tmp_path, gate, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "token-of-mine")
    (tmp_path / "profile_export_aiperf.json").write_text("{}")
    assert MlflowExporter(Target(tmp_path), MlflowRunOptions(tracking_uri=gate)).export(sample_summary()) == []
    assert Gate.seen and {*Gate.seen} == {"Bearer token-of-mine"}, "the server saw the key"
    (message,) = caplog.messages
    assert message.startswith(f"--mlflow-tracking-uri {gate}: ") and "no entry with" in message
    assert message.endswith("not uploaded: the run, the metrics, the parameters, profile_export_aiperf.json")
    assert "token-of-mine" not in message and not (tmp_path / "mlflow_export.json").exists()


def test_an_average_has_the_name_of_its_metric():
    given = Result("ttft", "TTFT", "ms", {"avg": 2.0, "p99": 3.0, "sum": 8.0, "count": 4, "std": float("nan")})
    assert metrics(sample_summary(given)) == {
        "ttft": 2.0, "ttft.p99": 3.0, "ttft.sum": 8.0, "ttft.count": 4, "aiperf.completed_requests": 24,
        "aiperf.total_expected_requests": 24,
    }  # fmt: skip


def test_parameters_are_those_of_the_profiling_phase_without_passwords():
    found = parameters(replace(sample_summary(), config=CONFIG))
    assert found["endpoint.models"] == "m1,m2" and found["timing.mode"] == "poisson"
    assert (found["loadgen.request_rate"], found["loadgen.request_count"]) == ("5.0", "20")
    assert "pass" not in found["endpoint.urls"] and "loadgen.concurrency" not in found


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        (["a:b", "c:d:e"], {"a": "b", "c": "d:e"}),
        (['{"a": "b", "n": 1}'], {"a": "b", "n": "1"}),
        ([], {}),
    ],
)
def test_tags_are_pairs_or_json(given, tags):
    assert tags_of(given) == tags


@pytest.mark.parametrize("given", ["http://me:word@host:5000", "postgresql://me@host/db", " "])
def test_an_address_with_a_password_is_refused(given):
    with pytest.raises(ValueError, match="must"):
        address(given)


@pytest.mark.parametrize("given", ["a=b", ":b", '{"a": '])
def test_a_tag_of_another_form_is_refused(given):
    with pytest.raises(ValueError, match="is no"):
        tags_of([given])


def test_settings_without_an_upload_are_refused_by_name():
    (said,) = MlflowRunOptions(run_name="a").problems({"run_name": "--mlflow-run-name"})
    needs, hint = said.split("\n")
    assert needs == "--mlflow-run-name needs --mlflow-tracking-uri: it says how"
    assert hint == "add --mlflow-tracking-uri, or drop --mlflow-run-name"


def test_pictures_arrive_in_the_run_of_the_receipt(tmp_path, monkeypatch):
    from aiperf_exporter_mlflow.pictures import place_of, upload_pictures
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "store").as_uri()
    client = MlflowClient(tracking_uri=store)
    run = client.create_run("0", start_time=5)
    client.set_terminated(run.info.run_id, "FAILED", 7)
    (tmp_path / "mlflow_export.json").write_text(json.dumps({"tracking_uri": store, "run_id": run.info.run_id}))
    (tmp_path / "a.png").write_bytes(b"picture")
    place = place_of(tmp_path, None, None)
    assert place == (store, run.info.run_id)
    (said,) = upload_pictures([tmp_path / "a.png", tmp_path / "absent.png"], *place)
    assert said.startswith(f"--mlflow-upload to {store}: ") and said.endswith("; not uploaded: absent.png")
    assert [each.path for each in client.list_artifacts(run.info.run_id, "plots")] == ["plots/a.png"]
    about = client.get_run(run.info.run_id).info
    assert (about.status, about.start_time, about.end_time) == ("FAILED", 5, 7), "the run is as it was"
    (refused,) = upload_pictures([tmp_path / "a.png"], store, "f" * 32)
    assert refused.endswith("; not uploaded: a.png") and "not found" in refused


@pytest.mark.parametrize(
    ("receipt", "uri", "run", "said"),
    [
        (None, None, None, "was not uploaded to MLflow: it has no mlflow_export.json"),
        (None, "http://a:1", None, "was not uploaded to MLflow"), ("[]", None, "f", "was not uploaded to MLflow"),
        ("{", None, None, "mlflow_export.json can't be read"), (None, "http://a:b@c:1", "f", "must have no user and password"),
        ('{"tracking_uri": 5, "run_id": "f"}', None, None, "was not uploaded to MLflow"),
    ],
)
def test_an_unknown_mlflow_run_is_refused(tmp_path, receipt, uri, run, said):
    from aiperf_exporter_mlflow.pictures import place_of

    if receipt is not None:
        (tmp_path / "mlflow_export.json").write_text(receipt)
    with pytest.raises(UsageError) as caught:
        place_of(tmp_path, uri, run)
    assert said in caught.value.message and "a:b@" not in caught.value.message


def test_what_is_given_goes_before_the_receipt(tmp_path):
    from aiperf_exporter_mlflow.pictures import place_of

    (tmp_path / "mlflow_export.json").write_text('{"tracking_uri": "http://a:1", "run_id": "f"}')
    assert place_of(tmp_path, "http://b:1", None) == ("http://b:1", "f")
    assert place_of(tmp_path, None, "e") == ("http://a:1", "e")
