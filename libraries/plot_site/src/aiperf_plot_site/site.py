"""The routes of the page; all answer to GET, and change nothing."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiperf import AiperfError, Figure, PlotRun
from aiperf.sdk.exporter import visible
from aiperf.sdk.redaction import redact_json, shown_fields
from aiperf_pages.assets import STATIC, Assets, body
from aiperf_pages.guard import Refusal
from aiperf_pages.server import application
from aiperf_results import metrics_of

from aiperf_plot_site import objectives
from aiperf_plot_site.archive import address, packed
from aiperf_plot_site.catalog import RunCatalog
from aiperf_plot_site.drawer import Change, Drawer, RunCard
from aiperf_plot_site.failed_requests import failure_of, failures_of
from aiperf_plot_site.rolled import rolled
from aiperf_plot_site.single_request import request_of

_PAGES = Path(__file__).parent / "static"
PUBLIC = frozenset(("/", "/static/{name:.+}"))
"""Routes that need no token: they say nothing of a run."""
_JSON = "application/json"
_MOST_WINDOW = 10_000
"""Requests of a rolling percentile."""
_T = TypeVar("_T")


class PlotSite:
    """The routes over the runs of *catalog*, whose figures *drawer* draws."""

    def __init__(self, catalog: RunCatalog, drawer: Drawer) -> None:
        self._catalog, self._drawer = catalog, drawer
        self._assets = Assets(_PAGES, STATIC)
        self._drawing = threading.Lock()

    def application(self) -> web.Application:
        app = application()
        app.on_startup.append(self._begin)
        app.on_cleanup.append(self._end)
        for path, handler in (
            ("/", self._page), ("/static/{name:.+}", self._assets.answer), ("/api/runs", self._list),
            ("/api/runs/{run}", self._run), ("/api/runs/{run}/requests/{row}", self._request),
            ("/api/runs/{run}/failures", self._failures), ("/api/runs/{run}/failures/{number}", self._failure),
            ("/api/choices", self._choices), ("/api/figures", self._figures), ("/api/objectives", self._objectives),
            ("/api/zip", self._zip),
        ):  # fmt: skip
            app.router.add_get(path, handler)
        return app

    async def _begin(self, app: web.Application) -> None:
        threading.Thread(target=self._catalog.read, name="cards", daemon=True).start()

    async def _end(self, app: web.Application) -> None:
        self._catalog.end()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return self._assets.body("plots.html").answer(request)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        page = _number(query.get("page", "0"), "page", 1_000_000)
        listed = partial(self._catalog.listed, query.get("find", ""), query.get("model", ""), query.get("load", ""), page)
        return await _answer(request, listed)

    async def _run(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["run"]

        def about() -> dict[str, Any]:
            (run,) = self._catalog.opened([name])
            card = self._drawer.card(run)
            shown: dict[str, Any] = shown_fields(dict(run.summary.get("input_config", {})))
            return {
                "id": name, "label": run.label, "card": card, "configuration": shown, "repeats": len(run.parts()),
                "metrics": metrics_of(dict(run.summary)),
            }  # fmt: skip

        return await _answer(request, about)

    async def _request(self, request: web.Request) -> web.StreamResponse:
        name, row = request.match_info["run"], _number(request.match_info["row"], "the request", 1 << 53)

        def about() -> dict[str, Any]:
            with self._drawing:
                return request_of(self._catalog.opened([name])[0], row)

        return await _answer(request, about)

    async def _failures(self, request: web.Request) -> web.StreamResponse:
        name, query = request.match_info["run"], request.query
        low, high = (_seconds(query.get(end, ""), end) for end in ("from", "to"))

        def about() -> dict[str, Any]:
            return failures_of(self._catalog.opened([name])[0], low, high, query.get("kind", ""))

        return await _answer(request, about)

    async def _failure(self, request: web.Request) -> web.StreamResponse:
        name, number = request.match_info["run"], _number(request.match_info["number"], "the failed request", 1 << 53)
        return await _answer(request, lambda: failure_of(self._catalog.opened([name])[0], number))

    async def _zip(self, request: web.Request) -> web.StreamResponse:
        """The figures that the file declares, as numbers and pictures, the file, and the page's address."""
        names, file, state = _listed(request, "runs"), request.query.get("file", ""), request.query.get("state", "")
        window = _number(request.query.get("window", "0"), "window", _MOST_WINDOW)
        if not names or not file:
            raise Refusal(400, "give runs=ID,ID and the text of a file that names pictures, file=TEXT")

        def made() -> bytes:
            with self._drawing:
                runs = self._catalog.opened(names)
                files = self._drawer.files(runs, file.encode(), _rolling(window))
            chosen = [{"id": name, "label": run.label} for name, run in zip(names, runs, strict=True)]
            about = {"address": address(names, state), "runs": chosen}
            text = redact_json(msgspec.json.format(msgspec.json.encode(about), indent=2).decode())
            return packed({**files, "plots.yaml": file.encode(), "state.json": visible(text.encode())})

        try:
            content = await asyncio.to_thread(made)
        except AiperfError as error:
            raise Refusal(400, "; ".join((error.message, *error.hints))) from error
        headers = {"Content-Disposition": 'attachment; filename="pictures.zip"'}
        return web.Response(body=content, content_type="application/zip", headers=headers)

    async def _choices(self, request: web.Request) -> web.StreamResponse:
        """Plots and metrics that the chosen runs have."""
        names = _listed(request, "runs")

        def choices() -> dict[str, Any]:
            found: dict[str, dict[str, Any]] = {}
            highest: dict[str, float] = {}
            for run in self._catalog.opened(names):
                with contextlib.suppress(AiperfError):
                    for tag, entry in metrics_of(dict(run.summary)).items():
                        kept = found.setdefault(tag, {"tag": tag, "unit": str(entry.get("unit", "")), "stats": {}})
                        top = run.number(tag, "max") or 0.0
                        highest[tag] = max(top, highest.get(tag, 0.0))
                        kept["stats"] |= dict.fromkeys(stat for stat in entry if run.number(tag, stat) is not None)
            ranges = {tag: {"least": 0.0, "most": most} for tag, most in highest.items()}
            offered = [plot for plot in self._drawer.offered() if _fits(plot.runs, plot.most_runs, len(names))]
            return {"plots": offered, "ranges": ranges,
                    "metrics": [{**each, "stats": list(each["stats"])} for each in found.values()]}  # fmt: skip

        return await _answer(request, choices)

    async def _figures(self, request: web.Request) -> web.StreamResponse:
        names, only, file = _listed(request, "runs"), _listed(request, "only"), request.query.get("file", "")
        window = _number(request.query.get("window", "0"), "window", _MOST_WINDOW)
        if not names:
            raise Refusal(400, "no run is chosen; give runs=ID,ID")
        if bool(only) == bool(file):
            raise Refusal(400, "give names of plots, only=NAME,NAME, or the text of a file that declares some, file=TEXT")

        def drawn() -> dict[str, Any]:
            with self._drawing:
                runs = self._catalog.opened(names)
                by_label = {run.label: name for name, run in zip(names, runs, strict=True)}
                made = self._drawer.draw(runs, only, file.encode(), _rolling(window))
                return {"figures": made.figures, "failures": made.failures, "caption": made.caption, "ids": by_label}

        return await _answer(request, drawn)

    async def _objectives(self, request: web.Request) -> web.StreamResponse:
        names = _listed(request, "runs")
        share = _number(request.query.get("share", "95"), "share", 100)

        def judged() -> dict[str, Any]:
            wanted = objectives.parsed(_listed(request, "limits"))
            if not wanted:
                raise AiperfError("no objective is given", "limits=time_to_first_token:300")
            with self._drawing:
                runs = []
                for name, run in zip(names, self._catalog.opened(names), strict=True):
                    card = self._catalog.card(name)
                    run.expect(each.tag for each in wanted)
                    if isinstance(card, RunCard):
                        runs.append((name, run, card.cut_off))
                return objectives.judged(runs, wanted, float(share))

        return await _answer(request, judged)


def _rolling(window: int) -> Change:
    """Adds rolling percentiles of so many requests; 0 adds none."""

    def change(figure: Figure, used: Sequence[PlotRun]) -> Figure:
        return rolled(figure, window) if window else figure

    return change


def _fits(least: int, most: int | None, count: int) -> bool:
    return least <= count and (most is None or count <= most)


def _listed(request: web.Request, name: str) -> list[str]:
    """The parts of a parameter between commas, each once."""
    return list(dict.fromkeys(filter(None, request.query.get(name, "").split(","))))


def _number(text: str, what: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 16 or int(text) > most:
        raise Refusal(400, f"{what} is {text[:40]!r}, and no whole number from 0 to {most:,}")
    return int(text)


def _seconds(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Refusal(400, f"{what} is {text[:40]!r}, and no number of seconds")
    return value


async def _answer(request: web.Request, make: Callable[[], _T]) -> web.StreamResponse:
    """What *make*, in a thread, gives, as JSON without secrets; a sentence where it can't."""

    def encoded() -> bytes:
        return visible(redact_json(msgspec.json.encode(make(), enc_hook=_plain).decode()).encode())

    try:
        return body(await asyncio.to_thread(encoded), _JSON).answer(request)
    except AiperfError as error:
        raise Refusal(400, "; ".join((error.message, *error.hints))) from error


def _plain(value: Any) -> Any:
    return value.tolist()


__all__ = ["PUBLIC", "PlotSite"]
