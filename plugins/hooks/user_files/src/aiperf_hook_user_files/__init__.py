"""Files of the user in the artifact directory, written before the load."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf import Artifact, ConfigError, hookimpl
from aiperf.sdk.exporter import atomic

if TYPE_CHECKING:
    from aiperf import Plan, Summary, Target
    from aiperf.sdk.fetch import Servers

    from aiperf_hook_user_files.options import UserFile, UserFilesOptions


class UserFiles:
    """Renders the files where the plan is made, so that what is wrong in them ends no run, and again where they are written."""

    options: UserFilesOptions | None = None

    @hookimpl
    def aiperf_plan_validated(self, plan: Plan) -> None:
        for _ in self._rendered(plan):
            pass

    @hookimpl
    def aiperf_run_configured(self, plan: Plan, servers: Servers) -> None:
        folder = Path(plan.output.artifacts)
        for file, text in self._rendered(plan):
            path = folder / file.path
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.parent.resolve().is_relative_to(folder.resolve()):
                    raise ConfigError(f"--user-files: {file.path} leads out of {folder}", "is there a link on its way?")
                with atomic(path) as draft:
                    draft.write_text(text, encoding="utf-8")
                    if plan.output.private:
                        draft.chmod(0o600)
            except OSError as error:
                why = error.strerror or error
                raise ConfigError(f"--user-files: {path} can't be written: {why}", "choose another path") from error

    @hookimpl
    def aiperf_export(self, summary: Summary, target: Target) -> list[Artifact]:
        found = (target.directory / file.path for file in self._files())
        return [Artifact("User File", path) for path in found if path.is_file()]

    def _files(self) -> tuple[UserFile, ...]:
        if self.options is None or self.options.user_files is None:
            return ()
        from aiperf_hook_user_files.options import read

        return read(self.options.user_files).files

    def _rendered(self, plan: Plan) -> list[tuple[UserFile, str]]:
        """Each file with its text.

        Raises:
            ConfigError: An expression can't be computed; names the file.
        """
        if self.options is None or self.options.user_files is None:
            return []
        from aiperf_rendering.expressions import Expressions

        from aiperf_hook_user_files.options import read

        given = read(self.options.user_files)
        names = given.variables | _of_run(plan)
        expressions = Expressions(names.__getitem__, names)
        return [(file, _text(file, _filled(expressions, file.path, file.content))) for file in given.files]


def _of_run(plan: Plan) -> dict[str, str]:
    target = plan.public().target
    folder = Path(plan.output.artifacts)
    return {
        "model": target.models[0] if target.models else "", "endpoint_url": target.urls[0] if target.urls else "",
        "artifact_dir": str(folder.absolute()), "job_name": folder.name, "namespace": "", "epoch": str(int(time.time())),
    }  # fmt: skip


def _filled(expressions: Any, path: str, content: Any) -> Any:
    from aiperf_rendering.expressions import BadExpression

    if isinstance(content, dict):
        return {key: _filled(expressions, path, below) for key, below in content.items()}
    if isinstance(content, list):
        return [_filled(expressions, path, below) for below in content]
    if not isinstance(content, str) or ("{{" not in content and "{%" not in content):
        return content
    try:
        return expressions.value(content)
    except BadExpression as error:
        raise ConfigError(f"--user-files: {path}: {error}", "{{ '{{' }} stands for two braces") from error


def _text(file: UserFile, content: Any) -> str:
    if file.form == "text":
        return str(content)
    if file.form == "yaml":
        import yaml

        return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    import msgspec

    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


__all__ = ["UserFiles"]
