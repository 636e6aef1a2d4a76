"""Options of both endpoint types, checked before the run."""

from __future__ import annotations

from typing import Annotated

from aiperf import Options, option
from aiperf.sdk.options import After

from aiperf_endpoint_template.checks import checked_path, checked_template

GROUP = "Template endpoint"
_FIELD_HELP = "Where an answer has its text: a JMESPath; without it the usual places are searched."


class TemplateOptions(Options):
    payload_template: Annotated[str | None, After(checked_template)] = option(
        "--payload-template",
        group=GROUP,
        metavar="FILE|TEXT",
        commas=False,
        place="endpoint.template.body",
        help="Body of a request: a Jinja2 template, its file, or nv-embedqa.  Also --extra-inputs payload_template:…",
    )
    response_field: Annotated[str | None, After(checked_path)] = option(
        "--response-field", group=GROUP, metavar="JMESPATH", commas=False, place="endpoint.template.response_field",
        help=_FIELD_HELP,
    )  # fmt: skip


class RawOptions(Options):
    response_field: Annotated[str | None, After(checked_path)] = option(
        "--response-field", group=GROUP, metavar="JMESPATH", commas=False, place="endpoint.template.response_field",
        help=_FIELD_HELP,
    )  # fmt: skip
