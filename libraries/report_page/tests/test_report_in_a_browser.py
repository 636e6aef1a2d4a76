"""The page of ``aiperf report --html`` in a browser: it asks for nothing, and its figures can be looked into."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.descriptor import Descriptor
from aiperf.testing import sample_runs
from aiperf_report_page import PageRequest, write_page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""
playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
axe_package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium is installed: apt-get install chromium")
CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&</script>"


class Course(Plot):
    """Latency by start, a figure over time."""

    title = f"Course {CANARY}"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in runs:
            starts = run.column("request_start_ns")
            after, latencies = (starts - starts.min()) / 1e9, run.column("request_latency")
            series.append(PlotSeries(f"{run.label} {CANARY}", after, latencies, "points"))
        return Figure(self.title, Axis("started after (s)"), Axis("latency (ms)"), tuple(series))


class Loads(Plot):
    title = "Loads"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        points = PlotSeries("runs", np.arange(1.0, 9.0), np.arange(8.0) ** 2, "line", points="run")
        return Figure(self.title, Axis("load"), Axis("latency (ms)"), (points,), notes=("made up",))


class Close(Plot):
    """Values that are nearly equal, and series that begin at 0."""

    title = "Close"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        x, y, zero = np.array([0.3, 0.1 + 0.2]), np.array([100.0, 200.0]), np.zeros(2)
        ends = {"x_low": zero, "x_high": x, "y_low": zero, "y_high": y * 2}
        series = (
            PlotSeries("line", x, np.array([5.0, np.nextafter(5.0, 6.0)]), "line", axis="y2"),
            PlotSeries("band", x, y, "band", y_low=zero, y_high=y * 2, group="b"),
            PlotSeries("points", x, y, "points", group="b"),
            PlotSeries("error", x, y, "error", **ends),
            PlotSeries("bar", x, y, "bar", x_low=zero, x_high=x),
        )
        return Figure(self.title, Axis("load"), Axis("latency (ms)"), series, y2=Axis("share"))


def report(folder: Path, count: int, *, installed: bool = False) -> Path:
    """A page of runs with canaries; *installed*: with the figures of the installed plots."""
    runs = sample_runs(folder, count, everything=True)
    for run in runs:
        path = run.directory / "profile_export_aiperf.json"
        about = {"models": {"items": [{"name": CANARY}]}, "phases": [{"kind": "profiling", "concurrency": 1}]}
        wild = {"input_config": about, "warnings": [CANARY], "measurement": {"verdict": "suspect", "reasons": [CANARY]}}
        path.write_text(json.dumps(json.loads(path.read_text()) | wild))
    options = PluginOptions(Registry.discover(), {}, {})
    if not installed:
        plots = {"course": Course, "loads": Loads, "close": Close}
        rows = [Descriptor("plots", name, f"{__name__}:{plot.__name__}", "acme", "1") for name, plot in plots.items()]
        options = PluginOptions(Registry(rows, kernel_options=()), {}, {})
        options.registry.load = lambda category, name: plots[name]  # type: ignore[method-assign]
    request = PageRequest(tuple(run.directory for run in runs), options, lambda place: {}, "1", None, folder / "page.html")
    return write_page(request).path


@asynccontextmanager
async def opened(path: Path, width: int, scheme: str, **more: Any) -> AsyncIterator[tuple[Any, Any, list[str]]]:
    """Context and page, and what the page should not have done; that is empty at the end."""
    async with playwright.async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        page, faults = await context.new_page(), list[str]()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        own = (path.as_uri(), "data:")
        page.on("request", lambda request: None if request.url.startswith(own) else faults.append(request.url))
        await page.goto(path.as_uri())
        yield context, page, faults
        assert faults == []
        await browser.close()


async def until(page: Any, expression: str) -> None:
    """Wait until the expression is true; the page's policy forbids that the browser does it."""
    async with asyncio.timeout(120):
        while not await page.evaluate(expression):
            await asyncio.sleep(0.05)


async def violations(context: Any, page: Any) -> list[str]:
    """What axe finds; its script comes by the debugger, as the page allows none."""
    script = next(Path(axe_package.__file__).parent.rglob("axe.min.js")).read_text()
    await (await context.new_cdp_session(page)).send("Runtime.evaluate", {"expression": script + ";1"})
    found = await page.evaluate("axe.run()")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


async def all_drawn(page: Any) -> None:
    """Bring each figure near the screen."""
    for box in await page.locator(".figure").all():
        await box.scroll_into_view_if_needed()
    await until(page, "[...document.querySelectorAll('.figure')].every((each) => each.querySelector('.plot svg'))")


def run(check: Any) -> None:
    asyncio.run(asyncio.wait_for(check, 600))


def test_the_page_asks_for_nothing_and_axe_finds_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(report(tmp_path, 2), 400, "dark") as (context, page, _):
            await all_drawn(page)
            assert await page.evaluate("window.canary") is None
            assert await page.evaluate("document.documentElement.scrollWidth") <= 400
            assert await violations(context, page) == []

    run(check())


@pytest.mark.long
def test_figures_are_zoomed_by_mouse_and_keys(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(report(tmp_path, 2), 1280, "light") as (_, page, _faults):
            await all_drawn(page)
            course, loads = page.locator("#figure-course .plot"), page.locator("#figure-loads .plot")
            whole = await course.locator("svg[role=img]").inner_html()
            box = await course.bounding_box()
            await page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 100)
            await page.mouse.down()
            await page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 100, steps=4)
            await page.mouse.up()
            assert await course.locator("svg[role=img]").inner_html() != whole
            end = page.get_by_role("button", name="End all zooms")
            await end.click()
            assert await course.locator("svg[role=img]").inner_html() == whole
            assert await end.is_disabled()
            await loads.focus()
            for key in ("ArrowRight", "ArrowRight"):
                await page.keyboard.press(key)
            assert "load: 2" in await loads.locator(".tip").inner_text()
            before = await loads.locator("svg[role=img]").inner_html()
            await page.keyboard.press("+")
            assert await loads.locator("svg[role=img]").inner_html() != before
            await loads.dblclick()
            assert await end.is_disabled()
            await page.keyboard.press("+")
            assert await end.is_enabled()
            await page.keyboard.press("Escape")
            assert await end.is_disabled()
            await page.locator("#figure-course .legend button").first.click()
            assert await page.locator("#figure-course .legend button").first.get_attribute("aria-pressed") == "false"
            await page.get_by_role("button", name="Light/dark").click()
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark"

    run(check())


def test_zeros_on_decades_and_nearly_equal_values_are_drawn(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(report(tmp_path, 2), 1280, "light") as (_, page, _faults):
            await all_drawn(page)
            close = page.locator("#figure-close")
            picture = await close.locator(".plot svg[role=img]").inner_html()
            decades = "{width: 600, height: 300, logs: {x: true, y: true}, zoom: null}"
            island = "JSON.parse(document.querySelector('#figure-close script').textContent)"
            drawn = await page.evaluate(f"new Figures.Drawing({island}, {decades}).svg.outerHTML")
            assert "NaN" not in drawn and "Infinity" not in drawn
            plot = close.locator(".plot")
            await plot.focus()
            for _ in range(70):
                await page.keyboard.press("+")
            assert await close.locator(".plot svg[role=img]").inner_html() != picture
            names = close.locator(".legend button")
            colours = [await each.evaluate("(name) => name.innerHTML") for each in await names.all()]
            await names.nth(1).focus()
            await page.keyboard.press("Enter")
            assert await names.nth(1).get_attribute("aria-pressed") == "false"
            assert await page.evaluate("document.activeElement.textContent") == "band"
            assert [await each.evaluate("(name) => name.innerHTML") for each in await names.all()] == colours

    run(check())


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 3])
def test_figures_of_installed_plots_are_drawn_and_printed(tmp_path: Path, count: int) -> None:
    async def check() -> None:
        async with opened(report(tmp_path, count, installed=True), 1280, "dark") as (context, page, _):
            assert len(await page.pdf(format="A4", prefer_css_page_size=True)) > 50_000
            await all_drawn(page)  # drawn for paper, too
            assert await page.locator(".plot svg[role=img]").count() >= 8
            assert await page.evaluate("document.documentElement.dataset.theme") is None
            assert await violations(context, page) == []
            await page.emulate_media(media="print")
            await page.set_viewport_size({"width": 703, "height": 900})  # A4 without its margins
            narrow, cut = "[...document.querySelectorAll('.scroll:not(.wide)')]", "each.scrollWidth > each.clientWidth + 1"
            assert await page.evaluate(f"{narrow}.filter((each) => {cut}).map((each) => each.innerText)") == []

    run(check())


MISPLACED = """[...document.querySelectorAll('.plot svg[role=img]')].flatMap((picture) => {
  const frame = picture.getBoundingClientRect(), inner = picture.querySelector('svg'), found = [];
  const texts = [...picture.querySelectorAll('text')].map((each) => [each, each.getBoundingClientRect()]);
  for (const [text, box] of texts) {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      found.push(`cut off: ${text.textContent}`);
    for (const [other, more] of texts) if (text !== other && inner.contains(text) === inner.contains(other))
      if (box.left < more.right - 1 && more.left < box.right - 1 && box.top < more.bottom - 3 && more.top < box.bottom - 3)
        found.push(`${text.textContent} over ${other.textContent}`);
  }
  const numbers = texts.filter(([each]) => each.getAttribute('text-anchor') === 'middle' && !inner.contains(each));
  if (numbers.length < 4) found.push(`one number beside an axis: ${picture.getAttribute('aria-label')}`);
  return found;
})"""


@pytest.mark.long
@pytest.mark.parametrize(("count", "width"), [(1, 1280), (3, 400), (3, 600)])
def test_texts_of_figures_stand_apart_and_are_whole(tmp_path: Path, count: int, width: int) -> None:
    async def check() -> None:
        async with opened(report(tmp_path, count, installed=True), width, "light") as (_context, page, _faults):
            await all_drawn(page)
            assert await page.locator(".plot svg[role=img]").count() >= 8
            assert await page.evaluate(MISPLACED) == []

    run(check())


@pytest.mark.long
def test_tables_and_pictures_are_there_without_a_script(tmp_path: Path) -> None:
    pytest.importorskip("aiperf_painting")

    async def check() -> None:
        async with opened(report(tmp_path, 1), 1280, "light", java_script_enabled=False) as (_, page, _faults):
            assert await page.locator(".figure img").count() == 3
            assert all([await each.is_visible() for each in await page.locator(".figure img").all()])
            assert await page.get_by_role("cell", name="Time to first token", exact=True).first.is_visible()

    run(check())
