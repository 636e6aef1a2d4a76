"""What to do instead of options and commands of other programs, and of later versions of this one."""

from __future__ import annotations

from fnmatch import fnmatchcase

from aiperf import hookimpl

from aiperf_hook_other_tools.words import COMMANDS, LATER_OPTIONS, OTHER_TOOLS, PLUGINS

_OPTIONS = {**OTHER_TOOLS, **LATER_OPTIONS}


class OtherTools:
    """A guide: it answers for words that nothing installed has."""

    @hookimpl
    def aiperf_unknown_plugin(self, category: str, name: str) -> str | None:
        return next((said for pattern, said in PLUGINS.get(category, {}).items() if fnmatchcase(name, pattern)), None)

    @hookimpl
    def aiperf_unknown_option(self, flag: str) -> str | None:
        return _OPTIONS.get(flag) or _OPTIONS.get(flag.replace("--no-", "--", 1))

    @hookimpl
    def aiperf_unknown_command(self, name: str) -> str | None:
        return COMMANDS.get(name)


__all__ = ["OtherTools"]
