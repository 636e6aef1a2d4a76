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
    uuid_and_strip: bool = option(
        "--uuid-and-strip",
        default=False,
        group="Chat endpoint",
        place="endpoint.uuid_and_strip",
        help="Send an image whose uuid an earlier turn of the session sent by its uuid alone, for servers that keep images.",
    )
