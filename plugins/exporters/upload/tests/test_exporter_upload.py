"""Files that go to a directory, and to a bucket of a server that speaks S3."""

import json
import logging
import os
import re

import pytest
from aiperf import Target
from aiperf.testing import sample_study, sample_summary
from aiperf_exporter_upload import Upload
from aiperf_exporter_upload.contract import UploadContract, UploadStudyContract
from aiperf_exporter_upload.copying import UploadStudy
from aiperf_exporter_upload.jobs import MARKER, job_of, job_of_study
from aiperf_exporter_upload.options import RunUploadOptions, StudyUploadOptions
from msgspec.structs import replace


class TestItKeepsTheContract(UploadContract):
    pass


class TestStudiesKeepTheContract(UploadStudyContract):
    pass


FILES = ("inputs.json", "plots/a.png", "profile_export_aiperf.json")


@pytest.fixture
def directory(tmp_path):
    """The directory of a run: listed results, an earlier file, the log, the journal, the marker."""
    directory = tmp_path / "run"
    for name in (*FILES, "older.json", "logs/aiperf.log", "journal/run.json"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(f"content of {name}")
    (directory / MARKER).write_text(json.dumps({"ready": True, "files": [*FILES]}))
    return directory


def uploaded(directory, **options):
    hooks = Upload()
    hooks.options = RunUploadOptions(**options)
    hooks.aiperf_run_ended(replace(sample_summary(), directory=str(directory)))


def warnings(caplog):
    """What the plugin has warned of."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("aiperf")]


def test_the_order_is_results_log_journal_marker(directory):
    names = ["inputs.json", "plots/a.png", "profile_export_aiperf.json", "logs/aiperf.log"]
    assert job_of(directory, "s3://b", journal=False).items == [*names, MARKER]
    assert job_of(directory, "s3://b", journal=True).items == [*names, "journal/run.json", MARKER]


def test_a_run_without_the_option_copies_nothing(directory, caplog):
    uploaded(directory)
    assert caplog.messages == []


def test_files_arrive_in_a_directory(directory, tmp_path, caplog):
    uploaded(directory, upload=f"file://{tmp_path}/there/today")
    there = tmp_path / "there" / "today"
    found = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    assert found == {*FILES, "logs/aiperf.log", MARKER}
    assert (there / "plots" / "a.png").read_text() == "content of plots/a.png"
    assert caplog.messages == []


def test_a_file_that_fails_keeps_the_marker_back(directory, tmp_path, caplog):
    (tmp_path / "there" / "inputs.json").mkdir(parents=True)
    uploaded(directory, upload=f"file://{tmp_path}/there")
    refused, marker = caplog.messages
    assert refused.startswith(f"--upload file://{tmp_path}/there: ") and refused.endswith("not uploaded: inputs.json")
    assert marker.endswith(f"it says that all files are there, and they are not; not uploaded: {MARKER}")
    assert (tmp_path / "there" / "profile_export_aiperf.json").exists() and not (tmp_path / "there" / MARKER).exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [("nothing://bucket/a", "there is no file system nothing://"), ("sftp://127.0.0.1:9/a", "it needs the package for sftp://")],
)
def test_a_url_that_nobody_can_write_to_names_every_file(directory, caplog, url, said):
    uploaded(directory, upload=url)
    (message,) = caplog.messages
    assert said in message and message.endswith(f"not uploaded: {', '.join((*FILES, 'logs/aiperf.log', MARKER))}")


def test_a_study_keeps_its_paths_and_its_markers_come_last(tmp_path, caplog):
    folder, there = tmp_path / "study", tmp_path / "there"
    study = sample_study(folder, trials=1, concurrencies=(1, 2))
    for run in study.runs:
        (run.directory / "journal").mkdir(parents=True)
        (run.directory / "a.json").write_text("{}")
        (run.directory / MARKER).write_text('{"files": ["a.json"]}')
    (folder / "sweep_aggregate").mkdir()
    (folder / "sweep_aggregate" / "sweep.json").write_text("{}")
    UploadStudy(Target(folder), StudyUploadOptions(upload=there.as_uri())).export_study(study)
    assert caplog.messages == []
    names = [run.directory.relative_to(folder).as_posix() for run in study.runs]
    found = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    assert found == {"sweep_aggregate/sweep.json", *(f"{name}/{file}" for name in names for file in ("a.json", MARKER))}
    job = job_of_study(study, "file:///x", journal=False)
    assert job.items[-2:] == [f"{name}/{MARKER}" for name in names]


def test_a_run_of_a_study_is_left_to_the_study(directory, tmp_path, caplog):
    hooks = Upload()
    hooks.options = RunUploadOptions(upload=(tmp_path / "there").as_uri())
    hooks.aiperf_run_ended(replace(sample_summary(), directory=str(directory), study_id="0123456789ab"))
    assert caplog.messages == [] and not (tmp_path / "there").exists()


@pytest.fixture(scope="module")
def s3():
    """A server that speaks S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(s3, monkeypatch):
    """The client of the server, whose bucket is called results; the credentials stand in the environment alone."""
    import boto3

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-of-s3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    client.create_bucket(Bucket="results")
    return client


def test_a_bucket_has_the_files_and_the_marker_last(directory, bucket, caplog):
    caplog.set_level(logging.INFO, "werkzeug")
    uploaded(directory, upload="s3://results/runs/today/", upload_journal=True)
    assert warnings(caplog) == []
    seen = [name for record in caplog.records for name in re.findall(r"PUT /results/(runs/\S+) HTTP", record.getMessage())]
    names = {row["Key"] for row in bucket.list_objects_v2(Bucket="results")["Contents"]}
    assert names == {f"runs/today/{name}" for name in (*FILES, "logs/aiperf.log", "journal/run.json", MARKER)} == {*seen}
    assert seen[-1] == f"runs/today/{MARKER}"
    body = bucket.get_object(Bucket="results", Key="runs/today/inputs.json")["Body"].read()
    assert body == b"content of inputs.json"


def test_a_bucket_that_refuses_is_a_warning_that_names_every_file(directory, bucket, caplog):
    uploaded(directory, upload="s3://absent/runs")
    text = "\n".join(warnings(caplog))
    assert all(name in text for name in (*FILES, "logs/aiperf.log", MARKER)) and "bucket does not exist" in text
    assert "key-of-s3" not in text


@pytest.mark.parametrize("url", ["bucket", "s3://", "s3://key:word@bucket/a", "s3://bucket/a?token=b"])
def test_a_url_that_is_none_or_has_credentials_is_refused(url):
    from aiperf_exporter_upload.options import _address

    with pytest.raises(ValueError, match="must"):
        _address(url)


def test_the_journal_alone_is_refused_by_name():
    said = RunUploadOptions(upload_journal=True).problems({"upload_journal": "--upload-journal"})
    assert said == ["--upload-journal needs --upload: it says where to\nadd --upload, or drop --upload-journal"]
