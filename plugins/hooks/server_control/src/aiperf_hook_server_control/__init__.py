"""Resets the prefix cache of the run's servers before the load, and profiles them during it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from aiperf import AiperfError, ConfigError, hookimpl
from aiperf.sdk.fetch import FetchError
from aiperf.sdk.model import names

if TYPE_CHECKING:
    from aiperf import PhasePlan, Plan
    from aiperf.sdk.fetch import Servers

    from aiperf_hook_server_control.options import ServerControlOptions

log = logging.getLogger(__name__)

RESET_PATHS = ("/reset_prefix_cache", "/flush_cache")
"""vLLM's, and SGLang's."""
_AGAIN = (409, 423, 429, 503)
_MOST_PAUSE_S = 8.0


class ServerControl:
    """The POSTs belong to the server and not to the dialect: they have no body, and go to each server."""

    options: ServerControlOptions | None = None

    def __init__(self) -> None:
        self._profiled: Servers | None = None
        self._warned = False

    @hookimpl
    def aiperf_plan_validated(self, plan: Plan) -> None:
        options = self.options
        if options is None or plan.target.http_urls:
            return
        asked = [flag for flag, given in (("--reset-kv-cache", options.reset_kv_cache),
                                          ("--server-profiler", options.server_profiler)) if given]  # fmt: skip
        if asked:
            hint = f"add --server-control-url http://host:port, or drop {names(asked)}"
            raise ConfigError(f"{names(asked)} asks over HTTP, and {names(plan.public().target.urls)} is none", hint)

    @hookimpl
    def aiperf_run_configured(self, plan: Plan, servers: Servers) -> None:
        if self.options is None:
            return
        if self.options.reset_kv_cache:
            for url in servers.urls:
                self._reset(self.options, servers, url)
        if self.options.server_profiler and plan.load.phases[0].kind == "profiling":
            self._profile(self.options, servers)

    @hookimpl
    def aiperf_phase_ended(self, plan: Plan, phase: PhasePlan, servers: Servers) -> None:
        if self.options is None or not self.options.server_profiler:
            return
        later = [each.kind for each in plan.load.phases if each.index > phase.index]
        if self._profiled is None:
            if phase.kind != "profiling" and later[:1] == ["profiling"]:
                self._profile(self.options, servers)
        elif "profiling" not in later:
            self._stop(self.options)

    @hookimpl
    def aiperf_teardown(self) -> None:
        if self.options is not None and self._profiled is not None:  # the run ended before the phase did
            self._stop(self.options)

    def _reset(self, options: ServerControlOptions, servers: Servers, url: str) -> None:
        paths = RESET_PATHS if options.reset_kv_cache_path is None else (options.reset_kv_cache_path,)
        until_s, pause_s = time.monotonic() + options.reset_kv_cache_timeout_s, 1.0
        while True:
            left_s = until_s - time.monotonic()
            try:
                return _post(servers, url, paths, max(left_s, 0.1))
            except FetchError as error:
                if error.status not in _AGAIN or left_s <= pause_s:
                    hint = "is the feature switched on at the server?" if error.status == 404 else "drop --reset-kv-cache"
                    raise AiperfError(f"--reset-kv-cache: {error.message}", hint) from error
            if not servers.wait(pause_s):
                return None  # the run is to end
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)

    def _profile(self, options: ServerControlOptions, servers: Servers) -> None:
        self._profiled = servers
        self._post_all(servers, options.server_profiler_start_path, options.server_profiler_timeout_s)

    def _stop(self, options: ServerControlOptions) -> None:
        servers, self._profiled = self._profiled, None
        if servers is not None:
            self._post_all(servers, options.server_profiler_stop_path, options.server_profiler_timeout_s)

    def _post_all(self, servers: Servers, path: str, timeout_s: float) -> None:
        """POST to each server; the first failure of the run is a warning."""
        for url in servers.urls:
            try:
                servers.post(url, path, timeout_s)
            except FetchError as error:
                if not self._warned:
                    self._warned = True
                    log.warning("--server-profiler: %s; the run goes on without it", error.message)


def _post(servers: Servers, url: str, paths: tuple[str, ...], timeout_s: float) -> None:
    """POST to the first of the paths that the server has."""
    first, *others = paths
    try:
        servers.post(url, first, timeout_s)
    except FetchError as error:
        if error.status != 404 or not others:
            raise
        try:
            _post(servers, url, tuple(others), timeout_s)
        except FetchError as other:
            raise (error if other.status == 404 else other) from None


__all__ = ["ServerControl"]
