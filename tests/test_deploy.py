"""Manifests and image: their words, paths and ports are the program's; docs/service.md has each type of the reference."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiperf.parts.plans import asked
from aiperf.parts.registry import Registry
from aiperf_command_service.document import DOCUMENT
from aiperf_command_service.types import TYPES

ROOT = Path(__file__).resolve().parent.parent


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "deploy" / name).read_text()))


def containers(name: str, kind: str) -> dict[str, Any]:
    (pod,) = (each["spec"]["template"]["spec"] for each in manifests(name) if each["kind"] == kind)
    (container,) = pod["containers"]
    return {"pod": pod, **container}


def flags_of_service() -> set[str]:
    page = (ROOT / "plugins" / "commands" / "service" / "README.md").read_text()
    return set(re.findall(r"^\| `(--[a-z-]+)`", page, re.MULTILINE))


def test_words_of_the_service_are_its_options() -> None:
    found = containers("service.yaml", "Deployment")
    word, *words = found["args"]
    given = dict(each.split("=", 1) for each in words)
    assert word == "service" and given.keys() <= flags_of_service()
    ports = {port["name"]: str(port["containerPort"]) for port in found["ports"]}
    assert ports == {"http": given["--port"], "health": given["--health-port"]}
    for probe in ("livenessProbe", "readinessProbe"):
        assert found[probe]["httpGet"]["path"] in DOCUMENT["paths"] and found[probe]["httpGet"]["port"] == "health"
    mounted = {each["mountPath"] for each in found["volumeMounts"]}
    assert all(any(given[flag].startswith(f"{at}/") for at in mounted) for flag in ("--directory", "--token-file"))
    assert found["pod"]["terminationGracePeriodSeconds"] > float(given["--grace"]) + 60


def test_the_run_of_the_job_is_valid(tmp_path: Path) -> None:
    (config,) = (each for each in manifests("job.yaml") if each["kind"] == "ConfigMap")
    file = tmp_path / "run.yaml"
    file.write_text(config["data"]["run.yaml"])
    found = containers("job.yaml", "Job")
    command, *words = found["args"]
    assert command == "profile" and words[1] == "/config/run.yaml"
    plan = asked(Registry.discover(), [words[0], str(file), *words[2:]]).plan
    assert plan.output.artifacts.startswith("/results/")


@pytest.mark.parametrize(("name", "kind"), [("service.yaml", "Deployment"), ("job.yaml", "Job")])
def test_pods_have_no_privileges_and_no_limit_of_cpu(name: str, kind: str) -> None:
    found = containers(name, kind)
    assert found["pod"]["securityContext"]["runAsNonRoot"] and found["pod"]["automountServiceAccountToken"] is False
    assert found["securityContext"]["readOnlyRootFilesystem"] and "cpu" not in found["resources"]["limits"]


def test_the_image_runs_what_the_program_has() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    (entry,) = (line for line in lines if line.startswith("ENTRYPOINT"))
    (words,) = (yaml.safe_load(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD"))
    assert entry == 'ENTRYPOINT ["aiperf"]' and words[0] == "service"
    assert {word for word in words if word.startswith("--")} <= flags_of_service()


def test_the_page_has_every_route_and_every_type() -> None:
    page = (ROOT / "docs" / "service.md").read_text()
    assert [word for word in TYPES if f"| `{word}` | {TYPES[word]} |" not in page] == []
    own = [path for path in DOCUMENT["paths"] if "/api/" not in path and not path.endswith(("/", "/ws", "/static/{name}"))]
    assert {path.split("/")[-1].strip("{}") for path in own} - {"run", "name", "runs"} <= {*re.findall(r"[a-z.]*[a-z]", page)}


@pytest.mark.long
def test_kubernetes_accepts_the_manifests() -> None:
    program = shutil.which("kubernetes-validate", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("kubernetes-validate is not installed: pip install kubernetes-validate")
    for name in ("job.yaml", "service.yaml"):
        words = [program, "--strict", "--kubernetes-version", "1.37", str(ROOT / "deploy" / name)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
