"""A page is read as prometheus-client reads it, also where its lines are remembered."""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
import sys

import pytest
from aiperf import Digest, Histogram, Point, SeriesKind
from aiperf_metric_server_metrics.errors import PageError
from aiperf_metric_server_metrics.page import Page
from aiperf_metric_server_metrics.units import unit_of
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

TEXT, OPENMETRICS = "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0; charset=utf-8"
NASTY = ('plain', 'with "quotes"', "two\nlines", "back\\slash", "comma, brace }", "", "ünï", "# {", "x" * 300)


def read(text: str, content_type: str = TEXT, page: Page | None = None) -> list[Point]:
    return (page or Page()).read(text.encode(), content_type)


def by_name(points: list[Point]) -> dict[str, Point]:
    return {point.name: point for point in points}


# Generated pages


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class Family:
    """A family with a fixed text, and values that change."""

    def __init__(self, dice: random.Random, number: int, *, openmetrics: bool) -> None:
        kinds = ["counter", "gauge", "histogram", "summary"] + (["gaugehistogram", "stateset", "info", "unknown"] * openmetrics)
        self.kind, self.openmetrics = dice.choice(kinds), openmetrics
        self.name = f"{dice.choice(('a', 'vllm:b', 'c_seconds'))}_{number}"
        self.help = dice.choice(("", "Words", "in seconds", "line\\nend and \\\\"))
        self.labels = [self._labels(dice, each) for each in range(dice.randint(1, 4))]
        self.bounds = sorted(dice.sample((0.1, 0.5, 1.0, 2.5, 10.0, 100.0), dice.randint(1, 5)))
        self.stamped = dice.random() < 0.2

    @staticmethod
    def _labels(dice: random.Random, each: int) -> list[str]:
        return [f'id="{each}"', *(f'{name}="{escaped(dice.choice(NASTY))}"' for name in dice.sample("xyz", dice.randint(0, 2)))]

    def number(self, dice: random.Random) -> str:
        return dice.choice((
            str(dice.randrange(10**6)), f"{dice.random() * 100}", f"{dice.random() * 1e-9!r}", "1.5e+06", "0",
            "9007199254740993",
        ))  # fmt: skip

    def lines(self, dice: random.Random) -> list[str]:
        shown = f"{self.name}_total" if self.kind == "counter" and not self.openmetrics else self.name
        kind = self.kind
        lines = [f"# HELP {shown} {self.help}", f"# TYPE {shown} {kind}"]
        for labels in self.labels:
            lines += self._series(dice, labels)
        return lines

    def _series(self, dice: random.Random, labels: list[str]) -> list[str]:
        stamp = f" {1_700_000_000 + dice.randrange(9)}" if self.stamped else ""
        if stamp and not self.openmetrics:
            stamp += "123"
        name = self.name

        def line(suffix: str, value: object, *more: str, exemplar: str = "") -> str:
            return f"{name}{suffix}{{{','.join((*labels, *more))}}} {value}{stamp}{exemplar}"

        if self.kind in ("gauge", "unknown"):
            value = dice.choice((self.number(dice), "NaN", "+Inf", "-3.25"))
            return [line("", value)]
        if self.kind == "counter":
            exemplar = ' # {trace="}1"} 0.5' if self.openmetrics and dice.random() < 0.3 else ""
            return [line("_total", self.number(dice), exemplar=exemplar)]
        if self.kind == "info":
            return [line("_info", 1)]
        if self.kind == "stateset":
            return [line("", dice.randint(0, 1), f'{name}="{state}"') for state in ("on", "off")]
        if self.kind == "summary":
            quantiles = [line("", self.number(dice), f'quantile="{q}"') for q in ("0.5", "0.99")]
            return [*quantiles, line("_sum", self.number(dice)), line("_count", dice.randrange(99))]
        total, lines = 0, []
        gauge = self.kind == "gaugehistogram"
        for bound in (*map(str, self.bounds), "+Inf"):
            total += dice.randrange(5)
            exemplar = ' # {trace="a b"} 0.25 1700000000' if self.openmetrics and dice.random() < 0.2 else ""
            lines.append(line("_bucket", total, f'le="{bound}"', exemplar=exemplar))
        return [*lines, line("_gsum" if gauge else "_sum", self.number(dice)), line("_gcount" if gauge else "_count", total)]


def pages(seed: int) -> tuple[list[str], str]:
    """Five states of one page: values change, then a series joins, and a family goes."""
    dice = random.Random(seed)
    openmetrics = seed % 2 == 1
    families = [Family(dice, number, openmetrics=openmetrics) for number in range(dice.randint(1, 12))]
    parts = [family.lines(dice) for family in families]
    states = []
    for state in range(5):
        if state == 3:
            family = dice.choice(families)
            family.labels.append([f'id="{len(family.labels)}"'])
        if state == 4 and len(families) > 1:
            gone = dice.randrange(len(families))
            del families[gone], parts[gone]
        for number, family in enumerate(families):
            if (state != 1 and dice.random() < 0.5) or len(family.labels) * 2 > len(parts[number]):
                parts[number] = family.lines(dice)
        end = ["# EOF"] if openmetrics else []
        states.append("".join(f"{line}\n" for lines in parts for line in (*lines,)) + "".join(f"{line}\n" for line in end))
    return states, OPENMETRICS if openmetrics else TEXT


def of_library(text: str, content_type: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a page by its name and labels."""
    families = openmetrics_families(text) if content_type == OPENMETRICS else text_families(text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
        for family in families
        for sample in family.samples
    }


def flat(points: list[Point]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The points as the samples they came from."""
    found = {}

    def add(name: str, value: float, labels: dict[str, str], **more: str) -> None:
        found[name, tuple(sorted({**labels, **more}.items()))] = float(value)

    for point in points:
        value, labels = point.value, point.labels
        if isinstance(value, Histogram):
            for bound, many in zip(value.bounds, value.counts, strict=True):
                add(f"{point.name}_bucket", many, labels, le="+Inf" if math.isinf(bound) else str(bound))
            add(f"{point.name}_sum", value.sum, labels)
            add(f"{point.name}_count", value.counts[-1], labels)
        elif isinstance(value, Digest):
            for quantile, each in value.quantiles.items():
                add(point.name, each, labels, quantile=str(quantile))
            for part, number in (("_sum", value.sum), ("_count", value.count)):
                if number is not None:
                    add(f"{point.name}{part}", number, labels)
        else:
            add(point.name, value, labels)
    return found


def same(one: dict[object, float], other: dict[object, float]) -> bool:
    return one.keys() == other.keys() and all(repr(one[key]) == repr(other[key]) for key in one)


@pytest.mark.parametrize("seed", range(200))
def test_remembered_and_parsed_values_are_equal(seed: int) -> None:
    states, content_type = pages(seed)
    page = Page()
    for text in states:
        remembered, parsed = page.read(text.encode(), content_type), Page().read(text.encode(), content_type)
        assert list(map(repr, remembered)) == list(map(repr, parsed))
        assert same(flat(remembered), of_library(text, content_type))
        assert [sentence for sentence in page.sentences if "finite" not in sentence] == []


def test_what_did_not_change_is_the_same_object() -> None:
    page = Page()
    text = '# TYPE a gauge\na{x="1"} 1\na{x="2"} 2\n# TYPE h histogram\nh_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\n'
    first = read(text, page=page)
    again, changed, joined = (read(each, page=page) for each in (text, text.replace("} 2", "} 3"), text + "b 1\n"))
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert [one is other for one, other in zip(first, changed, strict=True)] == [True, False, True]
    assert [point.value for point in changed[:2]] == [1, 3]
    assert joined[0] is first[0] and [point.name for point in joined] == ["a", "a", "h", "b"]


def test_only_families_that_changed_go_through_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    page, seen = Page(), list[str]()
    read("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n", page=page)

    def watched(text: str) -> object:
        seen.append(text)
        return text_families(text)

    monkeypatch.setattr("aiperf_metric_server_metrics.families.text_families", watched)
    points = read('# TYPE a gauge\na 7\n# TYPE b gauge\nb 1\nb{x="1"} 2\n', page=page)
    assert [point.value for point in points] == [7, 1, 2]
    assert seen == ['# TYPE b gauge\nb 1\nb{x="1"} 2\n']


# What families become


def test_each_type_becomes_the_kind_of_series_that_it_is() -> None:
    text = """\
# HELP jobs Jobs done
# TYPE jobs counter
jobs_total{q="a"} 3
jobs_created{q="a"} 1.7e9
# TYPE level gauge
level 2.5
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
wait_seconds_bucket{le="0.5"} 1 # {trace="x"} 0.3
wait_seconds_bucket{le="+Inf"} 4
wait_seconds_sum 9.5
wait_seconds_count 4
# TYPE size summary
size{quantile="0.5"} 3
size{quantile="0.9"} NaN
size_sum 12
size_count 4
# TYPE build info
build_info{version="1"} 1
# TYPE state stateset
state{state="on"} 1
state{state="off"} 0
# TYPE held gaugehistogram
held_bucket{le="+Inf"} 3
held_gcount 3
held_gsum 4
# TYPE odd unknown
odd 7
# EOF
"""
    points = read(text, OPENMETRICS)
    kinds = {point.name: point.kind for point in points}
    assert kinds == {
        "jobs_total": SeriesKind.COUNTER, "level": SeriesKind.GAUGE, "wait_seconds": SeriesKind.HISTOGRAM,
        "size": SeriesKind.SUMMARY, "build_info": SeriesKind.INFO, "state": SeriesKind.GAUGE, "held_bucket": SeriesKind.GAUGE,
        "held_gcount": SeriesKind.GAUGE, "held_gsum": SeriesKind.GAUGE, "odd": SeriesKind.GAUGE,
    }  # fmt: skip
    named = by_name(points)
    assert named["wait_seconds"].value == Histogram((0.5, math.inf), (1, 4), 9.5)
    assert named["wait_seconds"].unit == "s"
    assert named["size"].value == Digest({0.5: 3}, 4, 12)
    assert (named["jobs_total"].help, named["jobs_total"].labels) == ("Jobs done", {"q": "a"})


def test_a_gauge_and_a_counter_of_one_stem_stay_apart() -> None:
    text = "# TYPE n gauge\nn 2\n# TYPE n_total counter\nn_total 5\n# TYPE plain counter\nplain 1\n"
    assert [(point.name, point.kind.value, point.value) for point in read(text)] == [
        ("n", "gauge", 2), ("n_total", "counter", 5), ("plain", "counter", 1),
    ]  # fmt: skip


def test_values_keep_their_own_times() -> None:
    text = "# TYPE a gauge\na 1 1700000000123\n"
    page = Page()
    assert read(text, page=page)[0].at_ns == 1_700_000_000_123_000_000
    assert read(text.replace("123\n", "456\n"), page=page)[0].at_ns == 1_700_000_000_456_000_000
    text = "# TYPE a gauge\na 1 1700000000.123456789\n# EOF\n"
    assert read(text, OPENMETRICS)[0].at_ns == 1_700_000_000_123_456_789


def test_times_of_creation_are_no_families() -> None:
    text = "# TYPE a_total counter\na_total 1\n# TYPE a_created gauge\na_created 1.7e9\n"
    text += "# TYPE file_created gauge\nfile_created 5\n"
    assert [point.name for point in read(text)] == ["a_total", "file_created"]


def test_what_the_machine_does_by_itself_flows() -> None:
    names = ("process_cpu_seconds_total", "vllm:prompt_tokens_total", "node_cpu_seconds_total")
    points = by_name(read("".join(f"# TYPE {name} counter\n{name} 1\n" for name in names)))
    assert [points[name].flows for name in names] == [True, False, True]


@pytest.mark.parametrize(
    ("name", "help", "unit"),
    [
        ("a_seconds", "", "s"), ("a_seconds_total", "", "s"), ("x_total", "", "count"), ("x_tokens_total", "", "tokens"),
        ("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", "ratio"), ("x_perc", "", "%"),
        ("load", "from 0 to 100", "%"), ("age", "Age (in ms)", "ms"), ("age", "Age in seconds", "s"),
        ("vllm:num_requests_running", "Number of requests", "requests"), ("link_gb_s", "", "GB/s"),
        ("vllm:request_success_total", "", "requests"), ("temperature", "", ""), ("used_bytes", "", "B"),
    ],
)  # fmt: skip
def test_a_unit_comes_from_the_words_and_the_name(name: str, help: str, unit: str) -> None:
    assert unit_of(name, help) == unit


# Bad pages


@pytest.mark.parametrize(
    ("body", "content_type", "sentence"),
    [
        (b"<!doctype html><p>hello", "text/html", "the page is HTML, and has no metrics"),
        (b'[{"iter": 1}]', "application/json", "the page is JSON, and has no metrics"),
        (b'{"iter": 1}', TEXT, "the page is JSON, and has no metrics"),
        (b" \n", TEXT, "the page is empty"),
        (b"a 1\nb 12", TEXT, "the page was cut: its last line has no end"),
        (b"# TYPE a gauge\na 1\n", OPENMETRICS, "the page was cut: it lacks the line # EOF of OpenMetrics"),
        (gzip.compress(b"a 1\n")[:-9], TEXT, "the page was cut: it is compressed, and ends too early"),
        (b"what is this?\n", TEXT, "the page has no metrics that can be read: what is left out: "),
    ],
)  # fmt: skip
def test_a_body_that_is_no_page_has_a_sentence(body: bytes, content_type: str, sentence: str) -> None:
    with pytest.raises(PageError) as caught:
        Page().read(body, content_type)
    assert caught.value.message.startswith(sentence)


def test_a_compressed_page_is_unpacked_and_said() -> None:
    page = Page()
    assert [point.value for point in page.read(gzip.compress(b"a 1\n"), TEXT)] == [1]
    assert page.sentences == ["it is compressed though that was not asked for; it is unpacked"]


def test_a_compressed_page_of_many_bytes_is_refused() -> None:
    with pytest.raises(PageError, match=r"more than 67,108,864 bytes"):
        Page().read(gzip.compress(b"# " + b"x" * (65 << 20), 1), TEXT)


def test_one_bad_family_harms_no_other() -> None:
    text = '# TYPE a gauge\na 1\n# TYPE bad histogram\nbad_bucket{le="x"} 1\n# TYPE c gauge\nc{x="1} 2\n# TYPE d gauge\nd 3\n'
    page = Page()
    assert [point.name for point in read(text, page=page)] == ["a", "d"]
    assert [sentence.partition(":")[0] for sentence in page.sentences] == ["bad is left out", "c is left out"]
    assert [point.value for point in read(text.replace("d 3", "d 4"), page=page)] == [1, 4]
    assert page.sentences == [], "each is said once"


def test_of_two_samples_of_a_series_the_last_counts() -> None:
    page = Page()
    assert [point.value for point in read("# TYPE a gauge\na 1\na 2\n", page=page)] == [2]
    assert page.sentences == ["a has several samples of a series; the last one counts"]
    assert [point.value for point in read("# TYPE a gauge\na 1\na 3\n", page=page)] == [3]


def test_values_that_are_no_numbers_are_said_once() -> None:
    page = Page()
    points = read("# TYPE a gauge\na NaN\n# TYPE b gauge\nb +Inf\n", page=page)
    assert [point.finite for point in points] == [False, False]
    assert len(page.sentences) == 2 and all("no finite numbers" in sentence for sentence in page.sentences)
    assert read("# TYPE a gauge\na 4\n# TYPE b gauge\nb 5\n", page=page)[0].value == 4


def test_long_labels_with_quotes_and_newlines_are_kept() -> None:
    label = 'quote " line\n slash \\ brace } ' * 350
    text = f'# TYPE a counter\na{{x="{escaped(label)}"}} 1\n'
    page = Page()
    assert read(text, page=page)[0].labels == {"x": label}
    assert read(text.replace("} 1\n", "} 2\n"), page=page)[0].value == 2


def test_a_number_that_only_python_reads_is_none() -> None:
    page = Page()
    read("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n", page=page)
    assert [point.name for point in read("# TYPE a gauge\na 1_0\n# TYPE b gauge\nb 1\n", page=page)] == ["b"]


def test_a_changed_type_is_another_series() -> None:
    page = Page()
    assert read("# TYPE a gauge\na 1\n", page=page)[0].kind is SeriesKind.GAUGE
    assert read("# TYPE a counter\na 1\n", page=page)[0].kind is SeriesKind.COUNTER
    assert read("# TYPE a_info gauge\na_info 1\n", page=page)[0].kind is SeriesKind.INFO
    assert read("# TYPE a_info gauge\na_info 2\n", page=page)[0].kind is SeriesKind.GAUGE


def test_more_series_than_a_run_takes_are_given_for_the_run_to_name() -> None:
    text = "# TYPE a gauge\n" + "".join(f'a{{x="{n}"}} 1\n' for n in range(100_001))
    assert len(read(text)) == 100_001


def test_json_that_names_a_series_in_quotes_is_none() -> None:
    text = '# TYPE "my.metric" gauge\n{"my.metric",x="1"} 2\n'
    assert [(point.name, point.labels, point.value) for point in read(text)] == [("my.metric", {"x": "1"}, 2)]
    with pytest.raises(json.JSONDecodeError):
        json.loads('{"my.metric",x="1"} 2')


def test_the_parsers_come_without_the_rest_of_their_package() -> None:
    code = """if True:
        import sys
        from aiperf_metric_server_metrics.families import text_families
        assert not {"prometheus_client", "http.server", "wsgiref"} & set(sys.modules)
        import prometheus_client.parser
        prometheus_client.Counter("turns", "Turns.").inc()
        page = prometheus_client.generate_latest().decode()
        whole = prometheus_client.parser.text_string_to_metric_families
        names = [{family.name for family in read(page)} for read in (text_families, whole)]
        assert "turns" in names[0] and names[0] == names[1]
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
