"""Options of the upload to Weights & Biases."""

from __future__ import annotations

from aiperf import ConfigError, Options, option

LIMIT = "AIPERF_WANDB_EXPORT_TIMEOUT_SECONDS"
_GROUP = "Trackers"


class WandbOptions(Options):
    project: str | None = option("--wandb-project", group=_GROUP, metavar="NAME", min_length=1, place="wandb.project",
        help="Upload the run to this project of Weights & Biases, behind its end.")
    entity: str | None = option("--wandb-entity", group=_GROUP, metavar="NAME", min_length=1, place="wandb.entity",
        shown="the key's own", help="The team or user that the project belongs to.")
    run_name: str | None = option("--wandb-run-name", group=_GROUP, metavar="NAME", min_length=1, place="wandb.run_name",
        shown="aiperf- and 8 digits of the run's id", help="Name of the run there.")
    tags: list[str] = option("--wandb-tag", default=[], group=_GROUP, metavar="WORD", place="wandb.tags",
        help="Further tags of the run there.")


class WandbStudyOptions(WandbOptions):
    """The options of the upload of all runs of a study."""


class WandbRunOptions(WandbOptions):
    """The options of the upload of a run; they speak for both plugins."""

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of an upload that isn't made."""
        if self.project is None:
            idle = [flag for field, flag in typed.items() if field != "project"]
            return [f"{flag} needs --wandb-project: it says how\nadd --wandb-project, or drop {flag}" for flag in idle]
        if wrong := [tag for tag in self.tags if not 1 <= len(tag) <= 64]:
            return [f"{typed.get('tags', '--wandb-tag')} {wrong[0]!r} must have 1 to 64 characters\nshorten it"]
        from aiperf_uploads import limit_s  # in no run without an upload

        try:
            limit_s(LIMIT)
        except ConfigError as error:
            return [error.message]
        return []


__all__ = ["LIMIT", "WandbOptions", "WandbRunOptions", "WandbStudyOptions"]
