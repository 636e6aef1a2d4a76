"""A finished request to a row: what was answered, how many tokens it has, and whether it counts."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.parts.loading import calls, endpoint_of, failure, is_strange, why
from aiperf.parts.segments import JournalRequest, is_merged
from aiperf.parts.tokenizers import ChatCounter, open_tokenizer
from aiperf.sdk.columns import ABSENT, POLL_GAP, Leg, Row, WireTrace
from aiperf.sdk.endpoint import Endpoint, drains, follows
from aiperf.sdk.errors import ENDPOINT_ERROR, BadJournal, BadResponse
from aiperf.sdk.framing import is_stream
from aiperf.sdk.model import HIDDEN, REFUSED, ErrorDetails
from aiperf.sdk.plan import Plan
from aiperf.sdk.redaction import shown_headers
from aiperf.sdk.tokenizer import count_behind
from aiperf.sdk.transport import EXHAUSTED, RECONNECTED, RESENT, REUSED, STREAMED

from aiperf_reducer_columns.reduce.answer import MARKED, Answer, read_answer, read_trailers
from aiperf_reducer_columns.reduce.answered_models import AnsweredModels
from aiperf_reducer_columns.reduce.batches import OpenBatch, Rows
from aiperf_reducer_columns.reduce.bulk import BulkRows, Ends
from aiperf_reducer_columns.reduce.drained import read_drained
from aiperf_reducer_columns.reduce.grading import Grading
from aiperf_reducer_columns.reduce.heads import decoded, encoding_of
from aiperf_reducer_columns.reduce.live import Reduced
from aiperf_reducer_columns.reduce.prompts import Prompts
from aiperf_reducer_columns.reduce.request_errors import FIRST_BYTES, Report, RequestErrors
from aiperf_reducer_columns.reduce.several_answers import Choices, prompts_in
from aiperf_reducer_columns.reduce.tool_calls import has_tool_calls, tool_calls
from aiperf_reducer_columns.reduce.usage import Usage, read_usage
from aiperf_reducer_columns.statistics.phase_counts import CLIENT_LIMIT, CUT, EMPTY, FAILED

log = logging.getLogger("aiperf.reducer")

_ENDED = journal.DONE_FIELDS.index("ended_ns")
_CACHED_TEXTS, _CACHED_CHARACTERS = 4096, 2048
"""How many texts, of which length at most, have their counts remembered."""


class TokenCounts(dict[str, int]):
    """Tokens of texts, by *count*: servers repeat answers, where temperature is 0 or the server is a simulator."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, text: str) -> int:
        count = self._count(text)
        if len(text) <= _CACHED_CHARACTERS:
            if len(self) >= _CACHED_TEXTS:
                self.clear()
            self[text] = count
        return count


class RowMaker:
    """Makes rows of finished requests with the run's endpoint, tokenizer and grader.

    *counting* False: the tokenizer is opened with the first request that needs it.  *secret_texts*: removed from errors.
    *singly*: no answers are read together, by column: their texts are wanted.
    """

    # More than 20 attributes: what a row is made with is looked up once for a run, not for each request.

    def __init__(
        self, plan: Plan, store: Store, report: Report, *, zero_ns: int, counting: bool, secret_texts: Sequence[str] = (),
        singly: bool = False,
    ) -> None:  # fmt: skip
        self.live = Reduced()
        self._plan, self._store, self._report, self._zero_ns = plan, store, report, zero_ns
        self._errors = RequestErrors(str(plan.plugins.endpoint), report, secret_texts, zero_ns)
        self.scrubbed = self._errors.scrubbed
        self._endpoint = endpoint_of(plan)
        self._strange = is_strange(plan.plugins.endpoint)
        self._capabilities = self._endpoint.capabilities
        self._follows = follows(type(self._endpoint))
        self._counts_items = type(self._endpoint).items_of is not Endpoint.items_of
        self.numbers = (*self._endpoint.numbers, *((POLL_GAP,) if self._follows else ()))
        self.notes: dict[str, str] = {}
        """By name, a sentence on a number of answers that the endpoint does not declare, or that is no number."""
        self._server_counts, self._traces = plan.target.use_server_token_count, plan.output.http_trace
        self._counts: TokenCounts | None = None
        self.prompts = Prompts(store)
        if counting and not self._server_counts:
            self._open_tokenizer()
        self.grading = Grading(plan, store, report)
        self.ends = Ends(plan.load.phases)
        self.models = AnsweredModels(plan.target.models, len(plan.target.urls))
        self._bulk: BulkRows | None = None
        grades, numbers = plan.plugins.grader is not None, bool(self.numbers)
        self._usual = not (self._traces or self._server_counts or self._follows or self._counts_items or grades or numbers)
        self._usual = self._usual and not drains(type(self._endpoint))
        self._several = plan.data.several_answers
        self._usual = self._usual and not (singly or self._several) and BulkRows.can_read(self._endpoint)

    def finish(self, requests: Sequence[JournalRequest], shard: int, batch: OpenBatch) -> None:
        """Add the rows of requests, in their order, and their content to *batch*."""
        self.models.look(requests)
        parts: Iterable[Rows | JournalRequest] = requests
        if self._usual:
            if self._bulk is None:
                self._bulk = BulkRows(self._endpoint, self._store, self.ends, self._open_tokenizer(), zero_ns=self._zero_ns)
            parts = self._bulk.take(requests, shard)
        for part in parts:
            if isinstance(part, JournalRequest):
                self.finish_request(part, shard, batch)
            else:
                batch.extend(part)
                self.live.done += len(part.numbers[0])

    def _open_tokenizer(self) -> TokenCounts | None:
        """Counts of the run's tokenizer; None where nothing is tokenized."""
        if self._counts is None and (tokenizer := open_tokenizer(self._plan)) is not None:
            self._counts = TokenCounts(tokenizer.count)
            self.prompts.behind = TokenCounts(count_behind(tokenizer))
            self.prompts.chats = ChatCounter(self._endpoint, tokenizer)
        return self._counts

    def finish_request(self, request: JournalRequest, shard: int, batch: OpenBatch) -> None:
        """Add the request's row, and its content, to *batch*; an answer that no row can be made of is an error."""
        try:
            self._add(request, None, shard, batch)
        except (OSError, BadJournal):  # the disk's, and not the answer's
            raise
        except Exception as error:  # a server may have answered anything
            log.debug("traceback:", exc_info=error)
            raw = b"".join(request.pieces)[: 4 * FIRST_BYTES]
            unreadable = Answer(whole=True, error=BadResponse(f"no row can be made of the answer: {why(error)}", raw=raw))
            self._add(msgspec.structs.replace(request, texts={}), unreadable, shard, batch)

    def _add(self, request: JournalRequest, answer: Answer | None, shard: int, batch: OpenBatch) -> None:
        """*answer*: None reads it."""
        _, ending, status, flags, connected, sent, sent_end, ack, ended, sent_bytes, received, dns, connect, tls = request.done
        number, n, phase, session, turn, entry, url, model, due, started, held, after, lane, by = request.sent
        reads, zero = request.reads, self._zero_ns
        if answer is None:
            answer = self._read(request, ending, status, flags, ack)
        if self._counts_items and answer.items and answer.error is None and ending == journal.COMPLETED:
            answer.error = self._miscounted(answer, self._store.body(entry, turn, model))
        error = self._errors.of(request, answer)
        outcome = journal.ERROR if error is not None and ending == journal.COMPLETED else ending
        several = len(answer.apart) > 1
        usage, unread = answer.counts(prompts_in(self._store.body(entry, turn, model)) if several else 1)
        inputs, outputs, reasoning = self._tokens(request, answer, usage)
        stamps = answer.stamps
        last_byte = reads[-1][0] if reads else ABSENT
        answered = bool(reads) and outcome == journal.COMPLETED
        requested = self._store.max_tokens(entry, turn)
        opening = answer.first_usage if self._server_counts else None
        first_tokens = ABSENT if opening is None else _known(read_usage(opening).completion)
        ended_at = last_byte if answered or not ended else ended - zero
        # Of a closed loop alone: with due times, the arrival that takes a slot is late, or held.
        before = ABSENT
        if self.ends.closed[phase]:
            self.ends.add(shard, (number,), (ended_at,))
            if due < 0:
                (before,) = self.ends.take(shard, (after,))
        turnaround = sent - zero - before - dns - connect - tls if sent else ABSENT
        # By place, in the order of the fields: by name they take ten times as long, a fifth of all that a plain request costs.
        row = Row(
            n, phase, session, turn, entry, url, model, sent_bytes, received, dns, connect, tls,
            shard, number, outcome, ABSENT if error is None else _fault(ending, status, answer, error, begun=bool(reads)),
            status or ABSENT,
            due - zero if due >= 0 else ABSENT, held if due >= 0 else ABSENT, turnaround, started - zero,  # due_ns … started_ns
            connected - zero if connected else ABSENT, sent - zero if sent else ABSENT, sent_end - zero if sent_end else ABSENT,
            # ack_ns: read stamps are ours, and may be later than the kernel's stamp of the body behind the head.
            (min(ack - zero, reads[0][0]) if reads else ack - zero) if ack else ABSENT,
            reads[0][0] if reads else ABSENT, last_byte, ended_at,  # first_byte_ns … ended_ns
            stamps[0] if stamps else ABSENT, _second(answer),  # first_token_ns, second_token_ns
            _known(answer.first_output_ns), _known(answer.unreadable_ns), stamps[-1] if stamps else ABSENT,  # … last_token_ns
            _known(answer.first_event_ns), _known(answer.last_event_ns),
            _known(inputs), _known(outputs), _known(reasoning), requested if requested >= 0 else ABSENT, first_tokens,
            1.0 if flags & REUSED else 0.0, 1.0 if flags & RECONNECTED else 0.0,  # reused, reconnected
            1.0 if flags & RESENT else 0.0,
            answer.marked, len(reads), answer.unreadable,  # coalesced, reads, unreadable
            _finish(answer) if not answer.whole and ending == journal.COMPLETED else ABSENT,
            self._store.images(entry, turn), self._store.audio_s(entry, turn), answer.events, *self._store.prefix(entry, turn),
            1.0 if unread else ABSENT, lane if lane >= 0 else ABSENT, by if by >= 0 else ABSENT,  # unread_usage, lane, held_by
        )  # fmt: skip
        missing = None if outcome == journal.COMPLETED else f"no answer: {journal.OUTCOMES[outcome]}"
        grade = self.grading.of(entry, turn, answer, missing)
        trace = _trace(request) if self._traces else None
        reason = answer.reason
        if answer.extra:
            answer.extra.pop(REFUSED, None)
        further = self._further(answer) if self.numbers or answer.extra else []
        texts = self._texts(answer.extra) if answer.extra and self._endpoint.texts else None
        legs = self._exchanges(request, further) if self._follows else None
        batch.add(row, usage, answer, error, trace, grade, further, legs, texts, reason)
        self.live.done += 1

    def _read(self, request: JournalRequest, ending: int, status: int, flags: int, ack: int) -> Answer:
        """What the endpoint reads; an error where it ends the program or never returns.  It is not asked again then."""
        ref = self._plan.plugins.endpoint
        if ref.key in calls.left:
            return Answer(whole=True, error=BadResponse("it was left behind at an earlier answer", kind=ENDPOINT_ERROR))
        try:
            with calls.of(ref) if self._strange else contextlib.nullcontext():
                return self._answer(request, ending, status, flags, ack)
        except SystemExit as error:
            return Answer(whole=True, error=BadResponse(f"it could not read an answer: {why(error)}", kind=ENDPOINT_ERROR))

    def _answer(self, request: JournalRequest, ending: int, status: int, flags: int, ack: int) -> Answer:
        """What the endpoint reads in the request's answer."""
        reads = request.reads
        if reads and journal.DRAINED in request.texts:
            return read_drained(reads, request.texts[journal.DRAINED], self._endpoint.drained)
        # The part of an answer that was cut counts, too: its segment may be gone later.
        if reads and (200 <= status < 300 or ending == journal.UNFINISHED):
            framing, asked = self._endpoint.framing, self._plan.target.streaming
            event_stream = bool(flags & STREAMED or (ending == journal.UNFINISHED and asked))
            streamed = is_stream(framing, event_stream=event_stream, asked=asked)
            repeats = self._endpoint.repeats_envelope
            empty = request.empty_before(reads, self._zero_ns) if any(is_merged(read[2]) for read in reads) else ()
            if encoding := encoding_of(request.texts.get("head")):
                try:
                    reads = decoded(reads, encoding, asked=self._plan.target.accept_encoding)
                except BadResponse as error:
                    return Answer(whole=not streamed, error=error)
            choices = Choices(self._endpoint) if self._several or self._endpoint.takes_back else None
            reader = self._endpoint.reader if choices is None else choices.reader
            repeats = repeats and choices is None
            answer = read_answer(reads, reader, streamed=streamed, repeats=repeats, empty=empty, framing=framing)
            if choices is not None:
                choices.put_apart(answer)
            if self.grading.wanted and answer.error is None and has_tool_calls(answer):
                try:
                    answer.tool_calls = tool_calls(reads, self._endpoint.reader, streamed=streamed, framing=framing)
                except Exception as error:  # noqa: BLE001  # code of a plugin
                    answer.no_tool_calls = f"the endpoint can't tell the tool calls: {why(error)}"
        else:
            answer = Answer(whole=not flags & STREAMED)  # an event stream may end without any event
        trailers = request.texts.get("trailers")
        if trailers is not None and 200 <= status < 300:
            at_ns = reads[-1][0] if reads else (request.done[_ENDED] or ack) - self._zero_ns
            if not reads and ending == journal.COMPLETED:  # a call without messages: its status is all of the answer
                read_trailers(answer, self._endpoint.reader().close, at_ns)
            read_trailers(answer, lambda: self._endpoint.trailers(_joined(trailers)), at_ns)
        if HIDDEN in answer.reasoning:
            answer.reasoning = answer.reasoning.replace(HIDDEN, "")
        return answer

    def _miscounted(self, answer: Answer, body: bytes) -> BadResponse | None:
        """The error of an answer with another number of items than the request with this *body* asks for; None without."""
        try:
            wanted = self._endpoint.items_of(body)
        except Exception as error:  # noqa: BLE001  # code of a plugin
            return BadResponse(f"the endpoint can't count the items of the request: {why(error)}", kind=ENDPOINT_ERROR)
        if wanted is None or wanted == answer.items:
            return None
        unit = self._endpoint.numbers["items"].value if "items" in self._endpoint.numbers else "items"
        return BadResponse(f"{unit}: {answer.items} in the answer, {wanted} asked for")

    def _further(self, answer: Answer) -> list[float]:
        """The declared numbers of the answer."""
        for name in answer.extra or ():
            if name not in self._endpoint.numbers and name not in self._endpoint.texts:
                self._note(name, f"answers have the number {name!r}, which its numbers don't declare; it is ignored")
        values = []
        for name in self._endpoint.numbers:
            try:
                values.append(answer.number(name))
            except (TypeError, ValueError, OverflowError):
                values.append(ABSENT)
                self._note(name, f"the number {name!r} of an answer is no number; it is absent")
        return values

    def _texts(self, extra: dict[str, Any]) -> dict[str, str]:
        """The declared texts of an answer, without secrets."""
        named = ((name, extra.get(name)) for name in self._endpoint.texts)
        return {name: self.scrubbed(text) for name, text in named if isinstance(text, str)}

    def _exchanges(self, request: JournalRequest, further: list[float]) -> str | None:
        """The legs of the request as JSON, None where it had none; appends the column POLL_GAP to *further*."""
        legs = _legs(request, self._zero_ns)
        further.append(_poll_gap(legs))
        return msgspec.json.encode(legs).decode() if legs else None

    def _note(self, name: str, sentence: str) -> None:
        if name not in self.notes:
            self.notes[name] = f"{self._plan.plugins.endpoint}: {sentence}"
            log.warning("%s", self.notes[name])

    def _tokens(self, request: JournalRequest, answer: Answer, usage: Usage) -> tuple[int | None, int | None, int | None]:
        """Input, output and reasoning tokens.  A server's count of 0 for what is there is unknown."""
        if self._server_counts:
            output = usage.completion if usage.completion or not (answer.text or answer.reasoning) else None
            return usage.prompt or None, None if output is None else max(0, output - (usage.reasoning or 0)), usage.reasoning
        inputs = outputs = reasoning = None
        counts, ref = self._open_tokenizer(), self._plan.plugins.tokenizer
        if counts is None or ref is None:
            return None, None, None
        try:
            if self._capabilities.tokenizes_input:
                inputs = self.prompts.tokens(request, counts)
            if self._capabilities.gives_tokens(streaming=self._plan.target.streaming):
                outputs = counts[answer.text] if answer.text else None
                reasoning = counts[answer.reasoning] if answer.reasoning else None
                if answer.choices:
                    apart = zip(*answer.choices, strict=True)
                    outputs, reasoning = (sum(counts[text] for text in each if text) or None for each in apart)
        except Exception as error:  # noqa: BLE001  # code of a plugin, once per request: no context manager
            self._report(str(ref), failure(ref, "failed", error).message)
            return None, None, None
        return inputs, outputs, reasoning


def _known(value: float | None) -> float:
    return ABSENT if value is None else value


def _finish(answer: Answer) -> float:
    """The column ``finish`` of a stream."""
    return 2.0 if answer.finish is not None else float(answer.end_marker)


def _second(answer: Answer) -> float:
    """The second distinct instant; absent where merged reads hide it."""
    first = answer.stamps[0] if answer.stamps else 0
    for i, stamp in enumerate(answer.stamps):
        if stamp != first:
            merged = answer.marked and any(kind & MARKED for kind in answer.kinds[: i + answer.stamps.count(stamp)])
            return ABSENT if merged else stamp
    return ABSENT


def _fault(outcome: int, status: int, answer: Answer, error: ErrorDetails, *, begun: bool) -> float:
    """The column ``fault``.  *outcome* is the transport's.  *begun*: a byte of the answer's body came."""
    if outcome in (journal.CANCELLED, journal.OVERFLOWED):
        return ABSENT
    if outcome == journal.COMPLETED:
        return EMPTY if answer.error is None else FAILED
    if error.cause == EXHAUSTED:
        return CLIENT_LIMIT
    refused = answer.error is not None and not begun  # by trailers alone, as gRPC refuses a call
    return CUT if 200 <= status < 300 and not refused else FAILED


def _legs(request: JournalRequest, zero_ns: int) -> list[Leg]:
    """The legs that the journal has; the last ends with the request's answer, whose stamps are better."""
    legs = [
        Leg(started - zero_ns, ended - zero_ns, first - zero_ns if first else None, status or None, polled)
        for started, first, ended, status, polled in request.texts.get("legs", ())
    ]
    if legs and request.reads:
        last, reads = legs[-1], request.reads
        legs[-1] = Leg(last.started_ns, reads[-1][0], reads[0][0], last.status, last.polled)
    return legs


def _poll_gap(legs: list[Leg]) -> float:
    """The column POLL_GAP: from the start of the exchange before the last poll to the start of that poll."""
    gaps = (float(later.started_ns - earlier.started_ns) for earlier, later in reversed(list(pairwise(legs))) if later.polled)
    return next(gaps, ABSENT)


def _trace(request: JournalRequest) -> str:
    """The request's :class:`WireTrace` as JSON."""
    sizes = [(read[0], len(read[3])) for read in request.reads]
    return traced(request.texts.get("request"), request.texts.get("head"), sizes, request.texts.get("trailers") or ())


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Values of one name, joined by commas (RFC 9110, 5.3)."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def traced(
    request: dict[str, Any] | None, head: dict[str, Any] | None, reads: Iterable[tuple[int, int]],
    trailers: Iterable[tuple[str, str]] = (),
) -> str:  # fmt: skip
    """A :class:`WireTrace` as JSON, from the journal's texts ``request`` and ``head`` (None where the exchange broke off)."""
    reason, fields = (None, ()) if head is None else (head["reason"], head["headers"])
    sent = request["headers"] if request is not None else {}
    trace = WireTrace(sent, reason, shown_headers(_joined(fields)), tuple(reads), shown_headers(_joined(trailers)))
    return msgspec.json.encode(trace).decode()
