"""The page in a browser: nothing from elsewhere, no error, nothing for axe to find, and foreign text as text."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""
playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
axe_package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium is installed: apt-get install chromium")
CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&"
TOKEN = "a-token-of-twenty-characters"
WORDS = ["--no-sandbox", "--disable-gpu"]


def axe() -> str:
    return next(Path(axe_package.__file__).parent.rglob("axe.min.js")).read_text()


async def watched(context, live) -> tuple[object, list[str]]:
    """The page of a run, and what it should not have done."""
    page, faults = await context.new_page(), list[str]()
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    own = (live.url, "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else faults.append(request.url))
    await page.goto(f"{live.url}/#{TOKEN}")
    await page.wait_for_selector("#charts canvas")
    return page, faults


async def until(page, expression: str) -> None:
    """Wait until the expression is true; the page's policy forbids that the browser does it."""
    async with asyncio.timeout(120):
        while not await page.evaluate(expression):
            await asyncio.sleep(0.05)


async def violations(context, page) -> list[str]:
    """What axe finds; its script comes by the debugger, as the page allows none."""
    debugger = await context.new_cdp_session(page)
    await debugger.send("Runtime.evaluate", {"expression": axe() + ";1"})
    found = await page.evaluate("axe.run()")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_run_is_shown_stopped_and_ended(served, tmp_path, width, scheme):
    async def check():
        async with served(str(tmp_path)) as live, playwright.async_playwright() as browsers:
            browser = await browsers.chromium.launch(executable_path=BROWSER, args=WORDS)
            context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            await live.begin(CANARY)
            await live.log(f"12:00:00.000 INFO {CANARY}")
            await live.show(*range(1, 60), text=CANARY)
            page, faults = await watched(context, live)
            assert await page.evaluate("location.hash") == ""
            await live.show(60, text=CANARY)
            await until(page, "document.querySelector('#tiles').textContent.includes('600')")
            assert await page.evaluate("window.canary") is None
            assert CANARY in await page.inner_text("#title")
            assert CANARY in await page.inner_text("#failures")
            assert "TTFT ≤ 150 ms" in await page.inner_text("#charts")
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await violations(context, page) == []
            if folder := os.environ.get("AIPERF_TEST_SCREENSHOTS"):
                await page.screenshot(path=f"{folder}/page-{width}.png", full_page=True)
            await page.click("#stop")
            await until(page, "document.querySelector('#stop').textContent === 'Cancel'")
            assert live.asked == ["stop"]
            (tmp_path / "a.json").write_text("{}")
            (tmp_path / ".aiperf_results_ready.json").write_text('{"files": ["a.json"]}')
            await live.end(failure=f"stopped {CANARY}")
            await page.wait_for_selector("#file-list a")
            assert CANARY in await page.inner_text("#banner")
            assert await page.is_hidden("#stop")
            async with page.expect_download() as download:
                await page.click("#file-list a")
            assert (await download.value).suggested_filename == "a.json"
            assert faults == []
            await browser.close()

    asyncio.run(asyncio.wait_for(check(), 600))


def test_charts_have_tables_files_and_keys(served, tmp_path):
    async def check():
        async with served(str(tmp_path)) as live, playwright.async_playwright() as browsers:
            browser = await browsers.chromium.launch(executable_path=BROWSER, args=WORDS)
            context = await browser.new_context(viewport={"width": 1280, "height": 900})
            await live.begin()
            await live.show(*range(1, 200))
            page, faults = await watched(context, live)
            if folder := os.environ.get("AIPERF_TEST_SCREENSHOTS"):
                await page.screenshot(path=f"{folder}/run-page.png")
            chart = page.locator("section.chart", has_text="Requests (requests/s)").first
            await chart.get_by_role("button", name="Table: Requests").click()
            assert await chart.locator("tbody tr").count() > 100
            async with page.expect_download() as download:
                await chart.get_by_role("button", name="CSV: Requests").click()
            lines = Path(await (await download.value).path()).read_text().splitlines()
            assert lines[0].startswith("seconds,done")
            done = sum(float(line.split(",")[1]) * 0.5 for line in lines[1:])
            assert round(done) == 1990
            await page.keyboard.press("1")
            await until(page, "Charts.zoomed() !== null")
            assert await chart.locator("tbody tr").count() < 130
            await page.keyboard.press("Escape")
            await until(page, "Charts.zoomed() === null")
            await page.keyboard.press("t")
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
            assert await violations(context, page) == []
            await page.keyboard.press("?")
            assert await page.is_visible("#help")
            assert faults == []
            await browser.close()

    asyncio.run(asyncio.wait_for(check(), 600))
