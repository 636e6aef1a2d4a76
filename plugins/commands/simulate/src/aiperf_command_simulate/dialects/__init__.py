"""The dialects of the server: a module for each API or family.  A module's ``ROUTES`` has its dialects and pages.

The modules are found in this folder; a new one edits no other file.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from aiperf_command_simulate.dialect import Dialect, Page
from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.talks import Talk

Route = Dialect | Page | Talk


def found() -> list[Route]:
    """The dialects and pages of all modules, in the order of their names."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return [route for module in modules for route in module.ROUTES]


class Routes:
    """Finds the route of a request: by its path, its method, and where several dialects share both, by what they claim."""

    def __init__(self, routes: Sequence[Route]) -> None:
        # Those that look at the request before those that take any.
        ordered = sorted(routes, key=lambda route: isinstance(route, Dialect) and type(route).claims is Dialect.claims)
        self._plain: dict[str, list[Route]] = {}
        self._patterns: list[tuple[list[str], Route]] = []
        for route in ordered:
            for path in route.paths:
                if "{" in path:
                    self._patterns.append((path.split("/"), route))
                else:
                    self._plain.setdefault(path, []).append(route)

    def at(self, path: str) -> tuple[list[Route], dict[str, str]]:
        """All routes at the path, none for an unknown one, and the variables in it."""
        routes = self._plain.get(path)
        if routes is not None:
            return routes, {}
        segments = path.split("/")
        for pattern, _ in self._patterns:
            variables = _variables(pattern, segments)
            if variables is not None:
                return [route for other, route in self._patterns if other == pattern], variables
        return [], {}


def method_of(route: Route) -> str:
    """The one method that it takes."""
    return route.method if isinstance(route, Page) else "POST"


def pick(routes: list[Route], request: Request) -> Dialect | Page | None:
    """The route that takes a whole request; None where its method is wrong."""
    method = "GET" if request.method == "HEAD" else request.method
    fitting = [route for route in routes if not isinstance(route, Talk) and method_of(route) == method]
    return next((route for route in fitting if isinstance(route, Page) or route.claims(request)), None)


def _variables(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    """The values of the ``{name}`` segments; None where the path is another."""
    if len(pattern) != len(segments):
        return None
    variables = {}
    for wanted, segment in zip(pattern, segments, strict=True):
        if wanted.startswith("{") and segment:
            variables[wanted[1:-1]] = segment
        elif wanted != segment:
            return None
    return variables
