"""The page of ``aiperf plot --dashboard`` in a browser."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""
playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
axe_package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium is installed: apt-get install chromium")
DONE = "/ of \\d+ run/.test(document.querySelector('#status').textContent)"


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


async def opened(browser: Any, url: str, width: int, scheme: str) -> tuple[Any, Any, list[str]]:
    """A context, its page, and what the page should not have done."""
    context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
    page, faults = await context.new_page(), list[str]()
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    own = (url, "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else faults.append(request.url))
    await page.goto(f"{url}/")
    await until(page, DONE)
    return context, page, faults


async def saved(page: Any, click: Any) -> Path:
    async with page.expect_download() as download:
        await click
    return Path(await (await download.value).path())


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_runs_have_pictures_without_a_fault(several_runs: Path, dashboard: SimpleNamespace, width: int, scheme: str) -> None:
    async def check() -> None:
        async with dashboard.served(several_runs) as url, playwright.async_playwright() as browsers:
            browser = await browsers.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
            context, page, faults = await opened(browser, url, width, scheme)
            assert await page.locator("#figures svg[role=img]").count() >= 8
            assert "the run broken is left out" in await page.text_content("#reasons")
            assert await page.evaluate("window.canary") is None
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await violations(context, page) == []
            if folder := os.environ.get("AIPERF_TEST_SCREENSHOTS"):
                await page.screenshot(path=f"{folder}/plots-{width}.png", full_page=True)
            assert faults == []
            await browser.close()

    asyncio.run(asyncio.wait_for(check(), 600))


def test_pictures_stand_once_where_runs_are_chosen_in_haste(several_runs: Path, dashboard: SimpleNamespace) -> None:
    async def check() -> None:
        async with dashboard.served(several_runs) as url, playwright.async_playwright() as browsers:
            browser = await browsers.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
            _, page, faults = await opened(browser, url, 600, "light")
            late = asyncio.Event()

            async def hold(route: Any) -> None:
                await late.wait()
                await route.continue_()

            await page.route("**/api/figures?*", hold)
            await page.get_by_label("choose c1", exact=True).click()
            await asked(page, "/api/figures", page.get_by_label("choose c2", exact=True).click())
            late.set()
            await until(page, "document.querySelector('#status').textContent.includes('of 5 runs')")
            titles = await page.locator("#figures h2").all_inner_texts()
            assert len(titles) >= 8
            assert len(set(titles)) == len(titles)
            await looked_into_by_keys(page)
            await verdicts_are_seen(page)
            await nothing_is_chosen(page)
            assert faults == []
            await browser.close()

    asyncio.run(asyncio.wait_for(check(), 600))


async def asked(page: Any, path: str, click: Any) -> None:
    """Click, and wait until the page has asked for the path."""
    async with page.expect_request(lambda request: path in request.url):
        await click


async def looked_into_by_keys(page: Any) -> None:
    """Plus zooms; a name that is pressed keeps the focus, and no point of a hidden series is left to be opened."""
    panel = page.locator("section.figure", has_text="Throughput against the time to first token")
    whole = await panel.locator("svg[role=img]").inner_html()
    await panel.locator(".plot").focus()
    for key in ("ArrowLeft", "ArrowRight", "+"):
        await page.keyboard.press(key)
    assert await panel.locator("svg[role=img]").inner_html() != whole
    await page.keyboard.press("Escape")
    name = panel.locator(".legend button").last
    await name.focus()
    await page.keyboard.press("Enter")
    assert await name.get_attribute("aria-pressed") == "false"
    assert await name.evaluate("(name) => name === document.activeElement")
    await panel.get_by_role("button", name="log y").click()
    assert "NaN" not in await panel.locator("svg[role=img]").inner_html()


async def verdicts_are_seen(page: Any) -> None:
    """The list of runs needs no scrolling at this width."""
    wide = "(runs) => runs.scrollWidth - runs.clientWidth"
    assert await page.locator("#runs").evaluate(wide) <= 1


async def nothing_is_chosen(page: Any) -> None:
    assert await page.text_content("#caption") != ""
    await page.click("#none")
    await until(page, "document.querySelector('#status').textContent === 'no run is chosen'")
    assert await page.text_content("#caption") == ""
    assert await page.locator("#figures section").count() == 0


@pytest.mark.long
def test_points_zoom_objectives_and_files_by_mouse_and_keys(
    several_runs: Path, dashboard: SimpleNamespace, tmp_path: Path
) -> None:  # fmt: skip
    async def check() -> None:
        async with dashboard.served(several_runs) as url, playwright.async_playwright() as browsers:
            browser = await browsers.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
            context, page, faults = await opened(browser, url, 1280, "light")
            await chosen(page, ("c1", "c4", "c8"))
            await zoomed(page)
            await judged(page)
            await own_picture(page, several_runs, tmp_path)
            await looked_into(page)
            await all_numbers(page)
            archive = zipfile.ZipFile(await saved(page, page.click("#zip")))
            assert archive.testzip() is None
            names = set(archive.namelist())
            assert {"plots.yaml", "state.json", "summary.txt"} <= names
            assert {f"ttft_over_time.{ending}" for ending in ("svg", "png", "csv")} <= names
            assert archive.read("ttft_over_time.png").startswith(b"\x89PNG")
            await failed_requests(context, page)
            assert await violations(context, page) == []
            assert faults == []
            await browser.close()

    asyncio.run(asyncio.wait_for(check(), 600))


async def all_numbers(page: Any) -> None:
    """The server's archive has all pictures that are shown."""
    archive = zipfile.ZipFile(await saved(page, page.click("#all-numbers")))
    assert archive.testzip() is None
    shown = {name.removesuffix(".csv") for name in archive.namelist() if name.endswith(".csv")}
    assert len(shown) == await page.locator("#figures section.figure").count()
    state = json.loads(archive.read("state.json"))
    await page.goto(page.url.partition("/?")[0] + state["address"])
    await until(page, DONE)
    assert len(shown) == await page.locator("#figures section.figure").count()


async def failed_requests(context: Any, page: Any) -> None:
    """By keys alone: a bar of failures, its list, a request's error, back; focus stays inside, and comes back."""
    await page.focus("#none")
    await page.keyboard.press("Enter")
    await page.get_by_label("choose other", exact=True).focus()
    await page.keyboard.press("Space")
    await until(page, "document.querySelector('#status').textContent.includes('of 1 run')")
    await until(page, DONE)
    plot = page.locator("section.figure", has_text="Failed requests over the run").locator(".plot")
    await plot.focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowLeft")  # the last bar
    await page.keyboard.press("Enter")
    await until(page, "document.querySelector('#details-title').textContent.includes('failed requests')")
    assert await violations(context, page) == []
    for key in ("Tab", "Shift+Tab"):
        for _ in range(8):
            await page.keyboard.press(key)
            assert await page.evaluate("document.querySelector('#details').contains(document.activeElement)")
    await page.locator("#details tbody button").first.focus()
    await page.keyboard.press("Enter")
    await until(page, "document.querySelector('#details-title').textContent.includes('failed request ')")
    text = await page.inner_text("#details-body")
    assert "=cmd()" in text and "x_request_id" in text and "SECRET" not in text
    assert await page.evaluate("document.querySelector('#details').contains(document.activeElement)")
    assert await violations(context, page) == []
    await page.get_by_role("button", name="Back to the list").click()
    await until(page, "document.querySelector('#details-title').textContent.includes('failed requests')")
    await page.keyboard.press("Escape")
    await until(page, "document.activeElement.matches('.plot')")
    opener = page.locator("#runs").get_by_role("button", name="other", exact=True)
    await opener.focus()
    await page.keyboard.press("Enter")
    await until(page, "document.querySelector('#details').open")
    await page.evaluate("(runs => runs.replaceChildren(...runs.cloneNode(true).children))(document.querySelector('#runs'))")
    await page.keyboard.press("Escape")
    await until(page, "document.activeElement.textContent === 'other'")
    assert await page.evaluate("window.canary") is None


async def chosen(page: Any, labels: tuple[str, ...]) -> None:
    """By keys alone; the back button brings the runs before back."""
    await page.focus("#none")
    await page.keyboard.press("Enter")
    for label in labels:
        await page.get_by_label(f"choose {label}", exact=True).focus()
        await page.keyboard.press("Space")
    await until(page, "document.querySelector('#status').textContent.includes('of 3 runs')")
    await page.go_back()
    await until(page, "document.querySelector('#status').textContent.includes('of 2 runs')")
    await page.go_forward()
    await until(page, "document.querySelector('#status').textContent.includes('of 3 runs')")


async def zoomed(page: Any) -> None:
    """A stretch that is dragged in one figure is that of all figures over time."""
    plot = page.locator("section.figure", has_text="Time to first token over the run").locator(".plot")
    await plot.scroll_into_view_if_needed()
    box = await plot.bounding_box()
    await page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 100)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 100, steps=4)
    await page.mouse.up()
    low, high = [float(await page.input_value(field)) for field in ("#from", "#to")]
    assert 0 < low < high < 3
    flight = page.locator("section.figure", has_text="Requests in flight")
    await flight.get_by_role("button", name="Table: Requests in flight").click()
    first = float(await flight.locator("tbody tr").first.locator("td").nth(1).inner_text())
    assert low <= first <= high
    assert "zoom=" in page.url
    await plot.focus()
    await page.keyboard.press("Escape")
    assert await page.input_value("#from") == ""


async def judged(page: Any) -> None:
    await page.click("#objectives summary")
    await page.click("#add")
    await page.get_by_label("limit of time_to_first_token, ms").fill("18")
    await page.keyboard.press("Tab")
    await until(page, "document.querySelector('#met').textContent.includes('c8')")
    await page.fill("#share", "70")
    await page.keyboard.press("Tab")
    await until(page, "document.querySelector('#highest').textContent.includes('concurrency 4')")
    await page.get_by_label("limit of time_to_first_token", exact=True).focus()
    await page.keyboard.press("End")
    await until(page, "document.querySelector('#highest').textContent.includes('concurrency 8 (100.0 %)')")


async def own_picture(page: Any, runs: Path, folder: Path) -> None:
    """What is drawn from a form is drawn by ``aiperf plot --config`` of the saved file."""
    from aiperf.registry.registry import Registry
    from aiperf.sdk.command import PluginOptions
    from aiperf_command_plot import PlotCommand
    from aiperf_command_plot.configured import read
    from aiperf_command_plot.options import PlotOptions

    await page.click("#own")
    await page.select_option("#own-x", "request_throughput")
    await page.select_option("#own-y", "time_to_first_token")
    await page.select_option("#own-y-stat", "max")
    await page.fill("#own-title", "=cmd, the \"worst\" <b>")
    await page.keyboard.press("Enter")
    await until(page, "document.querySelector('#figures').textContent.includes('=cmd, the')")
    await until(page, DONE)
    path = folder / "plots.yaml"
    path.write_bytes((await saved(page, page.click("#config"))).read_bytes())
    file = read(path)
    (plot,) = file.plots.values()
    assert (plot.name, plot.title) == ("cmd_the_worst_b", '=cmd, the "worst" <b>')
    assert file.several is not None
    assert file.several[0] == plot.name
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    assert command.run(PlotOptions(config=path, as_json=True), [str(runs / label) for label in ("c1", "c4", "c8")]) == 0


async def looked_into(page: Any) -> None:
    """Enter on a point of a run shows its configuration, on one of a request the request."""
    plot = page.locator("section.figure", has_text="Throughput against the time to first token").locator(".plot")
    await plot.focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await until(page, "document.querySelector('#details').open")
    assert "endpoint.type" in await page.inner_text("#details-body")
    assert "SECRET" not in await page.inner_text("#details-body")
    await page.keyboard.press("Escape")
    await page.locator("section.figure", has_text="Time to first token over the run").locator(".plot").focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await until(page, "document.querySelector('#details-title').textContent.includes('request')")
    text = await page.inner_text("#details-body")
    assert "x_request_id" in text
    assert "generation" in text
    await page.keyboard.press("Escape")
    await until(page, "!document.querySelector('#details').open")
