"""The endpoint contract: a codec between turns and HTTP bodies.

An endpoint never awaits, opens a socket or reads a clock; the kernel does that once for all endpoints.  Workers import
endpoint modules, so these must stay light: msgspec is already loaded, pydantic is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from aiperf.sdk.bad_answers import decoded, in_band_error, unreadable
from aiperf.sdk.exchanges import Answered, Done, Drained, Follow
from aiperf.sdk.framing import Framing, ServerSentEvents
from aiperf.sdk.headers import merged
from aiperf.sdk.model import Conversation, Delta, HttpRequest, Message, ToolCall, Turn, joined
from aiperf.sdk.options import OptionsT, WithOptions
from aiperf.sdk.trees import said_before

if TYPE_CHECKING:
    from aiperf.sdk.asking import Ask
    from aiperf.sdk.metric import AnyUnit
    from aiperf.sdk.plan import TargetPlan


class Capabilities(Struct, frozen=True, omit_defaults=True):
    """The abilities of an endpoint; the manifest repeats them, so that they are known without an import.

    takes: keys of ``--extra-inputs`` that are fields of the endpoint's options, in every process, and not of the body.
    inline_media: local files and http(s) URLs among the media are read by the build and arrive as ``data:`` URIs.
    keeps_urls: of these the http(s) URLs stay, for the server to fetch.

    produces_tokens: answers have tokens.  tokens_streamed: they have some where they are streamed, and *produces_tokens* is
    false.
    path: below the base URL; "" leaves the URL as it is.  streaming_path: path of streamed requests, None is the same path.
    title: heading of the report's table.  media_in, media_out: kinds of media accepted and produced.
    service_kind: word in automatic directory names.  multi_turn: accepts history.  per_chunk_usage: can request token counts
    with each piece of a stream.  verbatim: sends tools and verbatim messages (``Turn.tools``, ``Message.item``) as they are.
    follows: a request may take several exchanges (``Endpoint.follow``).  forms: bodies are forms (multipart/form-data).
    named: names of the texts of a turn that the endpoint reads (``Turn.named``); generated data sets make them.
    cache_bust: prompts may have a marker (``--cache-bust``): they are chats.
    settings: names in the dialect for settings of turns (``Turn.settings``) that it calls otherwise than chat completions, ""
    for those that it doesn't have: ``{stop: stop_sequences, seed: ""}``.
    chat_template: servers put the messages through the model's chat template (``Endpoint.chat_of``, for
    ``--apply-chat-template``).
    transport: name of the transport plugin that the dialect needs, None is one for the URL; ``--transport`` wins.
    schemes: those of URLs that it takes, each with the name of its transport, "" for one that serves it; the first is that of a
    bare ``host:port``.  Without any it takes HTTP: http, https, and what else transports serve for all endpoints.  All URLs of
    a run have one of them, and ``Turn.scheme`` tells which.
    takes_ids: requests have token ids in place of texts (``Turn.ids``, which the build makes): of single turns alone.
    counts_tokens: answers always carry their token counts, which are taken: as with ``--use-server-token-count``.
    url: the default of ``--url``; "" leaves it http://localhost:8000.
    """

    path: str = ""
    streaming_path: str | None = None
    streaming: bool = False
    produces_tokens: bool = False
    tokenizes_input: bool = False
    media_in: tuple[str, ...] = ()
    media_out: tuple[str, ...] = ()
    system_message: bool = False
    multi_turn: bool = False
    per_chunk_usage: bool = False
    title: str = "LLM Metrics"
    service_kind: str = "openai"
    verbatim: bool = False
    takes: tuple[str, ...] = ()
    inline_media: bool = False
    transport: str | None = None
    follows: bool = False
    forms: bool = False
    named: tuple[str, ...] = ()
    cache_bust: bool = False
    chat_template: bool = False
    settings: dict[str, str] = {}
    schemes: dict[str, str] = {}
    url: str = ""
    takes_ids: bool = False
    counts_tokens: bool = False
    keeps_urls: bool = False
    tokens_streamed: bool = False

    def gives_tokens(self, *, streaming: bool) -> bool:
        """Whether answers have tokens."""
        return self.produces_tokens or (self.tokens_streamed and streaming)


class Prompt(Struct, frozen=True):
    """What counts as input tokens of a request: *texts*, which are joined with spaces, and *ids*, each a token."""

    texts: Sequence[str] = ()
    ids: Sequence[int] = ()


class ChatPrompt(Struct, frozen=True):
    """The chat of a request, for the chat template of the model.

    messages: as :meth:`aiperf.sdk.tokenizer.ChatTemplate.count` takes them.  tools: the texts of tools, which are counted
    apart.
    """

    messages: Sequence[dict[str, Any]] = ()
    tools: Sequence[str] = ()


class Reader:
    """Reads one answer.  ``Endpoint.reader`` makes it for that answer alone: it keeps what it needs in itself.

    The reducer reads every answer; a worker reads those that a later turn needs, to call ``replay`` and ``state``.
    """

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        """A Delta, or None, for each event: server-sent data, a message of another framing, or the whole body.

        *names*: of server-sent events, None where one has no name.  Events come in batches of any size, which say nothing.

        Raises:
            BadResponse: As :meth:`Endpoint.decode`.  The kernel then reads the answer again, one event at a time.
        """
        raise NotImplementedError(f"{type(self).__name__} must define feed(events, names)")

    def close(self) -> Delta | None:
        """The last Delta of the answer, which is over, whole or not; None adds nothing.

        Raises:
            BadResponse: The answer must not end so.
        """
        return None

    def replay(self) -> Sequence[Message] | None:
        """The messages for the answer in the next turn's history, asked for behind ``close``.

        None: one message of the assistant with the answer's text, or its reasoning where it has no text.  ``Message.of`` makes
        one of the API's own form.
        """
        return None

    def state(self) -> dict[str, Any]:
        """Values for the session's next request, its ``Turn.state``."""
        return {}

    def tool_calls(self) -> Sequence[ToolCall]:
        """The answer's calls of tools in their order, of several choices those of the first.

        Asked for behind ``close``, of an answer that is graded and has a ``Delta.tool``; a new reader has then read all of it.
        """
        return ()

    def choices(self) -> Sequence[Delta] | None:
        """Text, reasoning, tool calls and ``finish`` of each of several answers, asked for behind ``close`` where requests ask
        for several (``n``): their tokens are counted apart, because pieces of several texts come mixed.  None: there is one.

        ``usage`` is that of the one answer, where the server counts each by itself: completions are then added, and the prompt
        is the same.  None in all of them: the usage is that of all answers together.  None in some: it can't be told apart, and
        is unknown.
        """
        return None


class DecodingReader(Reader):
    """Reads each event by itself.

    A subclass may add ``replay``, ``state`` and ``tool_calls``, and ``feed`` for what they need; where they aren't asked for,
    the kernel may call *decode* in place of ``feed``.
    """

    def __init__(self, decode: Callable[[bytes], Delta | None]) -> None:
        self.decode = decode

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return list(map(self.decode, events))


class Endpoint(WithOptions[OptionsT]):
    """One API's dialect.

    options: the endpoint's own (None where it declares none).  *capabilities* must equal
    those of the manifest.

    *framing*: how the bytes of a stream divide into events, a class of :mod:`aiperf.sdk.framing` or of the author's own.
    Server-sent events are known by their content type; an answer of another type is then one event.

    *repeats_envelope* promises: where events differ only inside one JSON string, and one of them decodes to that string as
    its text (or as its reasoning) and nothing else, all of them do.  The kernel then decodes a series of such events at a
    part of the cost: the reducer shows a Reader the first and the last of a series.

    *plain_prompts* promises: the prompt of a plain turn (``Turn.plain``) is the texts of its messages.  The kernel then calls
    ``prompt_of`` for the other turns alone.

    *splices_text* promises: the requests for two turns that differ in their one text alone differ only in one JSON string of
    the body, that text.  The kernel then encodes one turn of each kind, and puts the other texts in its place.

    *appends_messages* promises: the messages of a turn (``Turn.messages``) stand in one list of a JSON body, each in a form
    that doesn't depend on the others, and nothing else of the request depends on them; system messages before all others
    may do as they like.  What ``prompt_of`` reads is in their order, with the texts of the tools behind.  The kernel then
    encodes the new messages of a later turn alone, and puts them behind those of the turn before.  An instance may set it,
    where its options decide.

    *answers_each_text*: a turn's several texts are prompts with an answer each (``Reader.choices``).

    *takes_back*: an event of a stream may take back text of the events before it.  ``Reader.choices`` is then asked behind
    every answer, and gives the text that stayed: a list of one for one answer; None where nothing was taken back.

    *numbers*: names and units of the numbers in its answers that metrics may read, each a column (``batch["joules"]``) of the
    metrics that have it in ``needs``.  ``items`` is the sum of ``Delta.items``; any other is the last value of that name in
    ``Delta.extra``.  NaN where an answer has none.  A name that isn't declared is ignored, with one
    warning.  A name of a column of the kernel is refused before load.

    *templates_ids*: ``Turn.ids`` are those of the model's chat template.  An instance may set it, where its options decide.

    *prepared*: what :meth:`prepare` gave; None before, in a dry run, which asks no server, and without it.

    *texts*: names of the texts in its answers that metrics may read (``batch.texts["draft"]``): the last value of that name in
    ``Delta.extra``; None where an answer has none.
    """

    capabilities: ClassVar[Capabilities]
    framing: ClassVar[type[Framing]] = ServerSentEvents
    numbers: ClassVar[Mapping[str, AnyUnit]] = {}
    texts: ClassVar[Sequence[str]] = ()
    repeats_envelope: ClassVar[bool] = False
    plain_prompts: ClassVar[bool] = False
    splices_text: ClassVar[bool] = False
    answers_each_text: ClassVar[bool] = False
    takes_back: ClassVar[bool] = False
    appends_messages: bool = False
    templates_ids: bool = False
    prepared: dict[str, Any] | None = None

    def path(self, *, streaming: bool) -> str:
        """The path of a request below the base URL."""
        capabilities = self.capabilities
        return capabilities.streaming_path if streaming and capabilities.streaming_path else capabilities.path

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn: path, method, headers and body.  Deterministic: the same turn gives the same bytes.

        ``--endpoint`` replaces the path; ``{model}`` in it becomes the name of the turn's model.
        """
        raise NotImplementedError(f"{type(self).__name__} must define encode(turn)")

    def probe(self) -> Turn:
        """A small turn that any server of this dialect answers, to ask whether one is ready.  The kernel adds the model."""
        return Turn(("Hello",), max_tokens=1)

    def prepare(self, ask: Ask) -> dict[str, Any] | None:
        """What the requests need to know of the server, by calls of *ask*: what the model takes, which methods there are.

        Called once for a run, before its data set is made, in the builder.  The result, of JSON values, is *prepared* of the
        endpoint in every process, and stands in ``run.json``: it must have no secret.

        Raises:
            ConfigError: The server has not what the run asks of it.
            AskError: From *ask*; the kernel makes a sentence of it.
        """
        return None

    def unready(self, ask: Ask) -> str | None:
        """Why the server isn't ready for load, None where it is.  An endpoint without this is asked for its ``probe``.

        Called in a thread of the run's own process (``--wait-for-model-timeout``), again and again, before ``prepare``.
        AskError of *ask* is such a reason, too.
        """
        return None

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        """What counts as input tokens of a request that this endpoint encoded; for a turn with a payload, of that body.

        Called in the builder, and in workers for turns behind an answer.  None: the texts of the turn's messages.
        """
        return None

    def chat_of(self, request: HttpRequest) -> ChatPrompt | None:
        """The messages of a request, as the server's chat template gets them; None where the request has none.

        Asked with ``--apply-chat-template``, of endpoints with ``Capabilities.chat_template``: in the builder, and in reducers
        for turns behind an answer.  *request*: with its body alone.
        """
        return None

    def items_of(self, body: bytes) -> int | None:
        """Number of items (vectors, scores) that a good answer to a request with this body has; None: any number is good.

        Called in the reducer, once for each answer with items; another number of ``Delta.items`` fails the request.  A data
        set's payload may be any bytes.
        """
        return None

    def decode(self, event: bytes) -> Delta | None:
        """The content of one event: of a server-sent event's data, or of the whole body of an answer without streaming.

        None: the event has no content (an end marker).

        Raises:
            BadResponse: The event is not of this dialect, or carries an in-band error.
        """
        raise NotImplementedError(f"{type(self).__name__} must define decode(event)")

    def reader(self) -> Reader:
        """A new Reader for one answer, where events mean something only together; unless overridden, it decodes each event."""
        return DecodingReader(self.decode)

    def follow(self, answer: Answered) -> Follow | Done:
        """What follows an answer: a poll, a download, or nothing.

        For requests that take several exchanges, with ``Capabilities.follows``; called in workers, on the measuring loop,
        behind each good answer (2xx); another status ends the request.  One answer is the request's, which alone is decoded:
        the last, unless one was kept (``Follow.keep``).  The latency ends with the last exchange, and the timeout covers all.
        An exception fails the request, and the report names the plugin; of an answer that can't be read return Done, and
        ``decode`` raises BadResponse.
        """
        return Done()

    def drained(self, start: bytes, received: int) -> Drained:
        """The content of an answer that was drained (``HttpRequest.drain``), in place of ``decode``.

        *start*: its first bytes, at most ``DRAINED_START``.  *received*: the number of all.

        Raises:
            BadResponse: It is none, or carries an error.
        """
        raise NotImplementedError(f"{type(self).__name__} must define drained(start, received)")

    def trailers(self, trailers: Mapping[str, str]) -> Delta | None:
        """What the trailers behind an answer add to it: usage, a finish reason, extra values; None for nothing.

        Raises:
            BadResponse: They carry an error, such as the status of a remote procedure call.
        """
        return None

    def auth_headers(self, key: str) -> dict[str, str]:
        """The headers that carry an API key."""
        return {"Authorization": f"Bearer {key}"}


def follows(endpoint: type[Endpoint[Any]]) -> bool:
    """Whether requests of the endpoint can take several exchanges."""
    return endpoint.follow is not Endpoint.follow


def drains(endpoint: type[Endpoint[Any]]) -> bool:
    """Whether requests of the endpoint may have ``HttpRequest.drain``."""
    return endpoint.drained is not Endpoint.drained


def completed(
    conversation: Conversation, index: int, target: TargetPlan, model: str, history: Sequence[Message] = (),
    state: dict[str, Any] | None = None,
) -> Turn:  # fmt: skip
    """Turn *index* as an endpoint encodes it.  Of this session: *history*, behind the opening messages, and *state*."""
    turn = conversation.turns[index]
    tools = turn.tools
    if not conversation.alone:
        before = said_before(conversation.streams, index) if conversation.streams else range(index)
        earlier = iter(before[::-1])
        while tools is None and (at := next(earlier, None)) is not None:
            tools = conversation.turns[at].tools
    history = (*conversation.prelude, *(() if turn.reset or conversation.alone else history[: turn.keeps]), *turn.before)
    state = {} if state is None or turn.reset or conversation.alone else state
    return filled(turn, target, model, history=history, state=state, tools=tools)


def filled(
    turn: Turn, target: TargetPlan, model: str, *, history: tuple[Message, ...], state: dict[str, Any],
    tools: tuple[dict[str, Any], ...] | None,
) -> Turn:  # fmt: skip
    """The turn with what is the run's, and the session's: its whole history, the state and the tools in force."""
    run_extra = {**target.yielding(turn.settings), **target.extra} if turn.settings else target.extra
    return replace(
        turn, model=turn.model or model, path=target.given_path,
        stream=target.streaming, per_chunk_usage=target.per_chunk_usage, history=history, tools=tools, state=state,
        extra={**run_extra, **turn.extra}, run_extra=run_extra, row_extra=turn.extra,
        server_counts=target.use_server_token_count, scheme=target.scheme,
    )  # fmt: skip


def prompt(endpoint: Endpoint, turn: Turn, request: HttpRequest) -> Prompt:
    """What counts as input tokens of the request for the turn.

    Raises:
        TypeError: The endpoint returned something else.
    """
    own = None if endpoint.plain_prompts and turn.plain else endpoint.prompt_of(request)
    if own is None:
        return Prompt([text for message in turn.messages for text in message.words])
    if not isinstance(own, Prompt):
        raise TypeError(f"prompt_of returned {type(own).__name__}, not Prompt")
    return own


def encoded(endpoint: Endpoint, turn: Turn, path: str | None = None) -> HttpRequest:
    """The request of *endpoint* for the turn, with the turn's payload and headers where it has any.

    *path* (``--endpoint``) replaces the endpoint's; None leaves it.  ``{model}`` in either becomes the model's name.

    Raises:
        TypeError: The endpoint returned something else.
        ValueError: Its path is none, it is drained and nothing reads the answer, or its parts are wrong.
    """
    request = endpoint.encode(turn)
    if not isinstance(request, HttpRequest):
        raise TypeError(f"encode returned {type(request).__name__}, not HttpRequest")
    path, payload = request.path if path is None else path, turn.payload
    if path and not path.startswith("/"):
        raise ValueError(f"encode gave the path {path!r}, which must begin with /")
    if request.drain and not drains(type(endpoint)):
        raise ValueError("encode gave a request with drain=True, and the endpoint doesn't define drained(start, received)")
    if "{model}" in path:
        path = path.replace("{model}", quote(turn.model, safe=""))
    if path != request.path or turn.headers:
        request = replace(request, path=path, headers=merged(request.headers, turn.headers))
    if payload is None:
        return joined(request)
    return replace(request, parts=(), body=payload if isinstance(payload, bytes) else msgspec.json.encode(payload))


__all__ = [
    "Answered", "Capabilities", "ChatPrompt", "DecodingReader", "Done", "Drained", "Endpoint", "Follow", "Prompt", "Reader",
    "completed", "decoded", "drains", "encoded", "follows", "in_band_error", "unreadable",
]  # fmt: skip
