"""The ray engine with a stand-in for Ray; tests/test_ray_sites.py has a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiperf import AiperfError, ConfigError, Shard, SiteEngine, SiteStart
from aiperf.testing import SiteEngineContract, site_engine
from aiperf_engine_ray import Ray
from aiperf_engine_ray.options import RayOptions

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKES))


class TestRayKeepsTheContract(SiteEngineContract):
    engine = Ray
    options = RayOptions(sites=2)


Begin = Callable[..., tuple[SiteEngine, Shard]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    engines: list[SiteEngine] = []

    def begin(code: str = "", *, workers: int = 2) -> tuple[SiteEngine, Shard]:
        engine = site_engine(Ray, RayOptions(sites=3), tmp_path / "engine.log")
        engines.append(engine)
        start = SiteStart(1, ("-c", code), b"in\n", tmp_path / "log", engine.address(1, 9), 9, workers, 1)
        return engine, engine.start(start)

    yield begin
    for engine in engines:
        engine.close()


def test_sites_have_numbers() -> None:
    assert list(Ray(RayOptions(sites=3)).names()) == ["ray-0", "ray-1", "ray-2"]
    with pytest.raises(ConfigError, match="nothing says how many sites"):
        Ray(RayOptions()).names()


@pytest.mark.parametrize("address", ["auto", "head:6379", "10.0.0.1:6379", "[fd00::1]:6379"])
def test_addresses_of_clusters_are_taken(address: str) -> None:
    assert Ray(RayOptions(sites=1, address=address)).names() == ["ray-0"]


@pytest.mark.parametrize("address", ["", "head", "ray://head:10001", "head:", ":6379", "a b:1", "fd00::1:6379"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is no address of a Ray cluster"):
        Ray(RayOptions(sites=1, address=address)).names()


def test_a_site_that_asks_for_too_many_processors_says_what_is_free(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY_FREE", "8")
    assert begin()[1].wait(60.0) == 1
    said = "the cluster has no room for 3 sites of 3 CPUs: 8 of 8 are free on 2 nodes; use fewer --ray-sites or --workers"
    assert said in (tmp_path / "log").read_text()
    monkeypatch.setenv("FAKE_RAY_FREE", "9")
    assert begin()[1].wait(60.0) == 0


def test_the_log_says_which_node_a_site_is_at(begin: Begin, tmp_path: Path) -> None:
    assert begin("print('up', end='')")[1].wait(60.0) == 0
    assert (tmp_path / "log").read_text() == "at the node 127.0.0.1\nup"


def test_a_broken_connection_to_a_node_ends_no_site(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_RAY_BREAKS", "2")
    assert begin("print('up'); raise SystemExit(4)")[1].wait(60.0) == 4
    assert (tmp_path / "log").read_text().count("up") == 1


def test_a_site_that_is_killed_before_it_began_ends(begin: Begin) -> None:
    site = begin("input(); input()")[1]
    site.kill()
    assert site.poll() not in (None, 0)


LACKS = (
    "The actor died because of an error raised in its creation task, \x1b[36mray::SiteActor.__init__()\x1b[39m (pid=3473, "
    "ip=10.0.0.7, actor_id=df22)\nRuntimeError: The actor failed to import\n"
    "ModuleNotFoundError: No module named 'aiperf_engine_ray'"
)
GONE = (
    "The actor died unexpectedly before finishing this task.\n\tclass_name: SiteActor\n\tip: 10.0.0.7\n"
    "The actor died because its node has died. Node Id: eee\n\tthe actor's node was terminated unexpectedly"
)
ENDED = "The actor died unexpectedly.\n\tclass_name: SiteActor\n\tpid: 3\nIt was \x1b[36mkilled\x1b[39m."


@pytest.mark.parametrize(("error", "said"), [
    (LACKS, "the node 10.0.0.7 has no aiperf-engine-ray: install the same packages there\n"),
    (GONE, "its node has died\n"),
    (ENDED, "The actor died unexpectedly. It was killed\n"),
])  # fmt: skip
def test_what_ray_says_of_an_actor_becomes_a_sentence(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_RAY_ACTOR", error)
    assert begin()[1].wait(60.0) == 1
    assert (tmp_path / "log").read_text() == said


OTHER = """Version mismatch: The cluster was started with:
    Ray: 2.55.0
    Python: 3.11.7
This process on node 10.0.0.7 was started with:
    Ray: 2.60.0
    Python: 3.12.1
"""


@pytest.mark.parametrize(("error", "said"), [
    (OTHER, "the Ray cluster auto has Ray 2.55.0 and Python 3.11.7, and this machine Ray 2.60.0 and Python 3.12.1"),
    ("Could not find\nany Ray instance.", "the Ray cluster auto can't be reached: Could not find any Ray instance"),
])  # fmt: skip
def test_a_cluster_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_RAY_REFUSES", error)
    with pytest.raises(AiperfError) as caught:
        site_engine(Ray, RayOptions(sites=1), tmp_path / "engine.log").host()
    assert caught.value.message == said


def test_an_address_where_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(AiperfError, match=r"the Ray cluster 127\.0\.0\.2:9 can't be reached: .*refused"):
        site_engine(Ray, RayOptions(sites=1, address="127.0.0.2:9"), tmp_path / "engine.log").host()


def test_a_missing_ray_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(\"No module named 'ray'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(AiperfError, match="the Ray cluster auto can't be used: No module named 'ray'"):
        site_engine(Ray, RayOptions(sites=1), tmp_path / "engine.log").host()


def test_sites_are_lost_with_the_process_of_the_driver(begin: Begin, tmp_path: Path) -> None:
    engine, site = begin("import os; os.kill(os.getppid(), 9)")
    assert site.wait(60.0) == 1
    assert (tmp_path / "log").read_text().endswith("the process of the plugin engines:ray was killed by SIGKILL\n")
    site.kill()
    engine.close()
