"""Options of the chat dialect."""

from __future__ import annotations

from aiperf import Options, option


class ChatOptions(Options):
    use_legacy_max_tokens: bool = option(
        "--use-legacy-max-tokens",
        default=False,
        group="Chat endpoint",
        place="endpoint.use_legacy_max_tokens",
        help="Send the asked output length as max_tokens instead of max_completion_tokens.",
    )
