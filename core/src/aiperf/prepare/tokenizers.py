"""The run's tokenizer, and prompts counted with its chat template, for the builder and the reducers."""

from __future__ import annotations

from pathlib import Path

from aiperf.errors import AiperfError, BadTokenizer
from aiperf.registry.third_party import blamed, load, why
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.model import HttpRequest
from aiperf.sdk.plan import Plan
from aiperf.sdk.tokenizer import Tokenizer, TokenizerSource, chat_template, files


def open_tokenizer(plan: Plan) -> Tokenizer | None:
    """The run's tokenizer, at a site that of the files that were sent; None where nothing is tokenized.

    Raises:
        BadTokenizer: The tokenizer can't be opened.
    """
    ref, name = plan.plugins.tokenizer, plan.data.tokenizer_name
    if ref is None or name is None:
        return None
    try:
        source: TokenizerSource = load(ref)(plan.plugins.options_of(ref))
        directory, open_from = plan.data.tokenizer_directory, getattr(source, "open_from", None)
        if directory is not None and open_from is not None:
            sent: Tokenizer = open_from(Path(directory), name)
            return sent
        return source.open(name)
    except AiperfError:
        raise
    except Exception as error:  # third-party code; no run is possible without it
        raise BadTokenizer(
            f"the tokenizer {name!r} can't be opened: {why(error)}",
            "use --tokenizer builtin, which needs no download",
        ) from error


def files_for_sites(plan: Plan, tokenizer: Tokenizer | None) -> dict[str, str]:
    """The files of the run's tokenizer that its sites need, by their names; {} where it has no sites, or they must have it.

    Raises:
        AiperfError: Its package fails.
    """
    ref = plan.plugins.tokenizer
    if not plan.run.sites or ref is None or tokenizer is None or not hasattr(load(ref), "open_from"):
        return {}
    with blamed(ref, "can't name the files of its tokenizer"):
        return {name: str(path.absolute()) for name, path in files(tokenizer).items()}


class ChatCounter:
    """Counts requests of *endpoint* with the chat template of *tokenizer* (``--apply-chat-template``)."""

    def __init__(self, endpoint: Endpoint, tokenizer: Tokenizer) -> None:
        self._endpoint, self._tokenizer = endpoint, tokenizer

    def tokens(self, body: bytes) -> int:
        """Tokens of the messages in the template, with what opens the answer, and of the texts of tools.

        Raises:
            BadTokenizer: The template refuses the messages, or *body* has none.
        """
        chat = self._endpoint.chat_of(HttpRequest("", body))
        if chat is None:
            raise BadTokenizer("the body has no messages for a chat template", "drop --apply-chat-template")
        tools = self._tokenizer.count(" ".join(chat.tools)) if chat.tools else 0
        return chat_template(self._tokenizer).count(chat.messages) + tools
