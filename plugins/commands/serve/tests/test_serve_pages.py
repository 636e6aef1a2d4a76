"""The list and the page of finished runs in a browser."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from aiperf_command_serve.runs import ServedRuns
from aiperf_command_serve.site import Site
from aiperf_live_api.routes import PUBLIC
from aiperf_pages.guard import Guard
from aiperf_pages.ports import listen
from aiperf_pages.server import Server

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""
playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
axe_package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium is installed: apt-get install chromium")
REFERENCE = Path(__file__).parent / "reference"
CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&"


async def violations(context, page) -> list[str]:
    """What axe finds; its script comes by the debugger, as the page allows none."""
    script = next(Path(axe_package.__file__).parent.rglob("axe.min.js")).read_text()
    await (await context.new_cdp_session(page)).send("Runtime.evaluate", {"expression": script + ";1"})
    found = await page.evaluate("axe.run()")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (400, "light")])
def test_a_run_is_found_and_shown(tmp_path, width, scheme):
    for name in ("first", "second"):
        shutil.copytree(REFERENCE, tmp_path / name)
    summary = tmp_path / "second" / "profile_export_aiperf.json"
    changed = json.loads(summary.read_text())
    changed["input_config"]["models"]["items"][0]["name"] = CANARY
    summary.write_text(json.dumps(changed))

    async def check():
        runs = ServedRuns([tmp_path])
        runs.look()
        listening = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = Server(Site(runs).application(asyncio.Event()), Guard("127.0.0.1", "a" * 20, PUBLIC), listening)
        await server.start()
        async with playwright.async_playwright() as browsers:
            browser = await browsers.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
            context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page, faults = await context.new_page(), []
            page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: faults.append(str(error)))
            own = (url, "data:", "blob:")
            page.on("request", lambda request: None if request.url.startswith(own) else faults.append(request.url))
            await page.goto(f"{url}/")
            await page.wait_for_selector("#runs tbody tr")
            assert CANARY in await page.inner_text("#runs")
            assert await violations(context, page) == []
            await page.get_by_role("button", name="requests/s").click()
            await page.fill("#find", "second")
            assert await page.locator("#runs tbody tr").count() == 1
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            await page.click("#runs tbody a")
            await page.wait_for_selector("#charts canvas")
            await page.wait_for_selector("#file-list a")
            assert CANARY in await page.inner_text("#title")
            assert await page.inner_text("#status") == "complete"
            assert await page.is_hidden("#stop")
            assert await page.evaluate("window.canary") is None
            assert await violations(context, page) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert faults == []
            await browser.close()
        await server.stop()

    asyncio.run(asyncio.wait_for(check(), 600))
