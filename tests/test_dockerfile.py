"""The steps of deploy/Dockerfile: run one by one below an empty directory, and by podman where that is at hand."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import dist
import pytest
from program import wait_for
from requirements import ROOT

FILE = ROOT / "deploy" / "Dockerfile"
SYSTEM = ("bin", "lib", "lib32", "lib64", "sbin", "usr")
OF_ETC = ("default", "group", "gshadow", "ld.so.cache", "login.defs", "nsswitch.conf", "passwd", "shadow", "ssl")


class Step(NamedTuple):
    word: str
    text: str


def steps() -> list[Step]:
    """The instructions of the file, in order."""
    text = re.sub(r"\\\n", " ", FILE.read_text())
    lines = (line.strip() for line in text.splitlines())
    return [Step(*line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


class Stage:
    """A stage of the image: a root of its own, with the system's programs, and this Python as that of the base image."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.user, self.where = folder, "0:0", "/"
        self.variables = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "LANG": "C.UTF-8"}
        for name in ("dev", "etc", "home", "opt", "proc", "root", "run", "srv", "tmp", "usr", "var"):
            (folder / name).mkdir(parents=True)
        (folder / "tmp").chmod(0o1777)
        for name in OF_ETC:
            source = Path("/etc") / name
            if source.exists():
                target = folder / "etc" / name
                if source.is_dir():
                    shutil.copytree(source, target, symlinks=True)
                else:
                    shutil.copy2(source, target)
        for name in SYSTEM:
            if (source := Path("/") / name).is_symlink():
                (folder / name).symlink_to(source.readlink())
            elif source.is_dir():
                (folder / name).mkdir(exist_ok=True)

    def words(self, *command: str, read_only: tuple[str, ...] = ()) -> list[str]:
        """The command in this stage.  read_only: folders of the user's, empty, where nothing else can be written."""
        root, lines = self.folder, ["set -e"]
        if read_only:
            lines += [f"mount --bind {root} {root}", f"mount -o remount,ro,bind {root}"]
            owner = self.user.partition(":")[0]
            lines += [f"mount -t tmpfs -o uid={owner},mode=700 none {root}{name}" for name in read_only]
        mounted = [f"/{name}" for name in SYSTEM if Path(f"/{name}").is_dir() and not Path(f"/{name}").is_symlink()]
        lines += [f"mount --bind {name} {root}{name}" for name in mounted]
        lines += [f"mount --bind {sys.base_prefix} {root}/usr/local", f"mount --rbind /dev {root}/dev"]
        lines += [f"mount -t proc none {root}/proc"]
        variables = " ".join(f"{name}={value}" for name, value in self.variables.items())
        lines += [f'exec chroot --userspec={self.user} {root} /usr/bin/env -i -C {self.where} {variables} "$@"']
        return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *command]

    def run(self, *command: str) -> str:
        done = subprocess.run(self.words(*command), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def unfit() -> str:
    """Why roots can't be made here; "" where they can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "only root, with unshare, makes roots of their own"
    if not Path(sys.base_prefix, "bin", "python").exists() or sys.base_prefix == "/usr":
        return "this Python can't be that of a base image"
    done = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True)
    return "" if done.returncode == 0 else "nothing can be mounted here"


def built(folder: Path, wheelhouse: Path) -> tuple[Stage, list[str], list[str]]:
    """The last stage of the file, its entry point and its words."""
    stages: dict[str, Stage] = {}
    stage, entry, words = Stage(folder / "none"), list[str](), list[str]()
    for word, text in steps():
        match word:
            case "FROM":
                assert text.split()[0].startswith("python:3."), text
                stage = stages[text.split()[-1]] = Stage(folder / f"stage{len(stages)}")
            case "RUN":
                stage.run("sh", "-c", text)
            case "COPY":
                *_, source, target = text.split()
                found = re.match(r"--from=(\w+)", text)
                folder_of = wheelhouse.parent if found is None else stages[found[1]].folder
                shutil.copytree(folder_of / source.lstrip("/"), stage.folder / target.lstrip("/"), symlinks=True)
            case "ENV":
                for each in text.split():
                    name, _, value = each.partition("=")
                    stage.variables[name] = value.replace("$PATH", stage.variables["PATH"])
            case "USER":
                stage.user = text
            case "WORKDIR":
                stage.where = text
            case "ENTRYPOINT":
                entry = json.loads(text)
            case "CMD":
                words = json.loads(text)
            case _:
                assert word == "EXPOSE", f"{word}: a step that this test does not know"
    return stage, entry, words


@pytest.fixture(scope="module")
def wheelhouse(ours: dict[str, dist.Wheel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make wheelhouse`` makes."""
    made = tmp_path_factory.mktemp("context") / "wheelhouse"
    try:
        dist.filled(made, ours, frozenset())
    except SystemExit as error:
        pytest.skip(f"wheels of other packages can't be had here: {error}")
    return made


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("image")
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.long
def test_the_steps_make_a_service_of_another_user(wheelhouse: Path, folder: Path) -> None:
    """Nothing of this machine's environment is there but the system and Python; the root can't be written."""
    if why := unfit():
        pytest.skip(why)
    assert wheelhouse.name == "wheelhouse"
    stage, entry, words = built(folder, wheelhouse)
    assert stage.user.partition(":")[0] not in ("0", "root")
    assert stage.run("aiperf", "--version").strip()
    command = stage.words(*entry, *words, "--port", "0", read_only=(stage.where, "/data", "/tmp"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("the service is on "), process.stderr and process.stderr.read()
        with urlopen(f"http://127.0.0.1:{line.strip().rpartition(':')[2]}/readyz", timeout=60) as answer:
            assert answer.status == 200
        assert Path(f"/proc/{process.pid}/status").read_text().partition("\nUid:")[2].split()[0] == stage.user.split(":")[0]
        process.send_signal(signal.SIGTERM)  # which arrives: the entry point is no shell
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_podman_builds_and_runs_the_image(wheelhouse: Path, tmp_path: Path) -> None:
    base = next(step.text.split()[0] for step in steps() if step.word == "FROM")
    if shutil.which("podman") is None:
        pytest.skip("there is no podman here")
    if subprocess.run(["podman", "image", "exists", f"docker.io/library/{base}"], check=False).returncode:
        pytest.skip(f"podman has no image {base}")
    name = f"localhost/aiperf-test-{os.getpid()}-{time.monotonic_ns()}"
    subprocess.run(["podman", "build", "--pull=never", "-f", FILE, "-t", name, wheelhouse.parent], check=True)
    try:
        words = ["podman", "run", "--rm", "-d", "--read-only", "--tmpfs", "/srv/aiperf:mode=1777", "-P", name]
        container = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        port = subprocess.run(["podman", "port", container, "8080"], capture_output=True, text=True, check=True).stdout

        def answers() -> bool:
            try:
                with urlopen(f"http://127.0.0.1:{port.strip().rpartition(':')[2]}/healthz", timeout=60) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        wait_for(answers)
        subprocess.run(["podman", "stop", "--time", "60", container], check=True)
    finally:
        subprocess.run(["podman", "rmi", "--force", name], check=False)
