"""One request being answered: tokens in, events out, faults where they were asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as ListOf

import msgspec
from msgspec import Struct

from aiperf_command_simulate.calls import Call
from aiperf_command_simulate.dialect import Ask, Dialect, EventWriter, Piece, Usage, Writer
from aiperf_command_simulate.engine import Sequence
from aiperf_command_simulate.faults import BODIES, Faults
from aiperf_command_simulate.http1 import Responder
from aiperf_command_simulate.meters import Meters
from aiperf_command_simulate.truth import COMPLETED, CUT, ERROR_SAID, RESET, Record, Truth
from aiperf_command_simulate.words import Wording


def error_of(dialect: Dialect) -> bytes:
    """What an answer says that was told to fail."""
    return dialect.error("the simulator was told to fail here", "SimulatedError", 500)


class Length(Struct, frozen=True):
    """Tokens of one choice, the share of reasoning, and the reason of its end."""

    tokens: int
    reasoning: int
    finish: str


class Choice:
    """One of the texts of an answer.  tokens_done: tokens so far; shown: of these, how many were sent."""

    def __init__(self, answer: Answer, index: int, length: Length, wording: Wording) -> None:
        self.answer = answer
        self.index = index
        self.length = length
        self.wording, wording.reasoning = wording, length.reasoning
        self.tokens_done = 0
        self.shown = 0
        self.last_ns: int | None = None
        self.sequence: Sequence[Choice] | None = None

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return self.answer.record.model

    def token(self, at_ns: int) -> None:
        """The engine made one more token."""
        if not self.answer.ask.prefill_only:
            self.answer.meters.count("generated")
        self.answer.token(self)

    def piece(self, first: int, end: int) -> Piece:
        """Tokens *first* to *end* as text and reasoning."""
        length = self.length
        thought = min(end, length.reasoning)
        text = self.wording.text(max(first, length.reasoning), end) if end > length.reasoning else ""
        reasoning = self.wording.text(first, thought) if first < thought else ""
        finish = length.finish if end == length.tokens else None
        if self.answer.call is None:
            if self.answer.faults.pad and not first:
                text = "x" * self.answer.faults.pad + text
            return Piece(self.index, text, reasoning, finish, "", end)
        text = msgspec.json.encode(text).decode()[1:-1]
        call = ('{"text":"' if text and first <= length.reasoning else "") + text + ('"}' if text and finish else "")
        return Piece(self.index, "", reasoning, finish, call, end)

    @property
    def text(self) -> str:
        return self.wording.text(self.length.reasoning, self.length.tokens)


class Answer:
    """Sends what the engine makes, and keeps the request's row of the truth.

    *ended* is called once with the outcome, after the last write and before the connection goes on.  *timed*: an answer of one
    choice says its times.
    """

    def __init__(
        self,
        connection: Responder,
        record: Record,
        ask: Ask,
        faults: Faults,
        dialect: Dialect,
        frame: EventWriter,
        writer: Writer,
        meters: Meters,
        truth: Truth,
        ended: Callable[[Answer, str], None],
        *,
        tokens_per_chunk: int,
        framing: str,
        timed: bool,
        block_size: int,
    ) -> None:
        self.connection = connection
        self.record = record
        self.ask = ask
        self.faults = faults
        self.meters = meters
        self.choices: ListOf[Choice] = ()
        self.over = False
        self.call = writer.opened.call
        self._dialect = dialect
        self._frame = frame
        self._writer = writer
        self._truth = truth
        self._ended = ended
        self._tokens_per_chunk = tokens_per_chunk
        self._framing = framing
        self._timed = timed
        self._block_size = block_size
        self._unfinished = 0

    def start(self, choices: ListOf[Choice]) -> None:
        """The request was taken: an answer that streams begins with its headers."""
        self.choices = choices
        self._unfinished = len(choices)
        self.record.status = 200
        if not self.faults.done and isinstance(self.connection, Call):
            self.connection.omit_status()
        if self.ask.stream:
            usual = self._writer.content_type or self._dialect.framing.content_type
            kind = usual if self.faults.body != "html" else "text/html"
            headers = {"Content-Type": kind, "Cache-Control": "no-cache", **self._further()}
            self.connection.begin(200, headers, until_eof=self._framing == "eof")
            begun = b"" if self.faults.body else self._frame.keep_alive() + self._writer.begin(self.record.prompt_tokens)
            if begun:
                self.connection.piece(begun)

    def token(self, choice: Choice) -> None:
        """The engine made one more token of *choice*."""
        if self.over:  # ended by a fault earlier in the same batch of tokens
            return
        choice.tokens_done += 1
        if self.record.made_mono_ns is None:
            self.record.made_mono_ns = time.monotonic_ns()
        last = choice.tokens_done == choice.length.tokens
        if last:
            self._unfinished -= 1
            self.meters.finished(choice.length.finish)
        if not self.ask.stream:
            if not self._unfinished:
                self._whole()
        elif last or choice.tokens_done - choice.shown >= self._tokens_per_chunk:
            self._chunk(choice)

    def _chunk(self, choice: Choice) -> None:
        if not self.record.chunks:
            self._admitted()
            if self._broken_off() or self._replaced():
                return
        piece = choice.piece(choice.shown, choice.tokens_done)
        opening = self._writer.opening(choice.index) if not choice.shown else b""
        record = self.record
        record.completion_tokens += choice.tokens_done - choice.shown
        record.reasoning_tokens += max(0, min(choice.tokens_done, choice.length.reasoning) - choice.shown)
        choice.shown = choice.tokens_done
        usage = self._usage() if self.ask.continuous_usage and self.ask.include_usage and self.faults.usage else None
        data = opening + self._writer.event(piece, usage)
        complete = not self._unfinished and not self._breaks(record.chunks + 1)
        if complete:
            data += self._closing()
        now = self._stamp(choice)
        if complete:
            self.connection.end(data)
            self._finish(COMPLETED, now)
        else:
            self.connection.piece(data)
            self._broken_off()

    def _replaced(self) -> bool:
        """Whether something else stands in place of the stream; if so, sends it."""
        if self.faults.body is None:
            return False
        self.connection.end(BODIES[self.faults.body])
        self._finish(ERROR_SAID, time.monotonic_ns())
        return True

    def _whole(self) -> None:
        self._admitted()
        record = self.record
        if not self.ask.prefill_only:
            record.completion_tokens = sum(choice.length.tokens for choice in self.choices)
            record.reasoning_tokens = sum(choice.length.reasoning for choice in self.choices)
        faults = self.faults
        outcome = COMPLETED
        usage = self._usage() if faults.usage and self.ask.include_usage else None
        headers, status = {"Content-Type": self._writer.whole_type, **self._further()}, 200
        if faults.body is not None:
            body, outcome = BODIES[faults.body], ERROR_SAID
            headers["Content-Type"] = "text/html" if body else headers["Content-Type"]
        elif faults.error is not None or faults.error_event is not None:
            body, outcome = error_of(self._dialect), ERROR_SAID
            status = 200 if self._dialect.in_band else 500
        elif self.ask.prefill_only:
            body = self._writer.whole([Piece(choice.index, "") for choice in self.choices], usage)
        else:
            body = self._writer.whole([choice.piece(0, choice.length.tokens) for choice in self.choices], usage)
        if faults.cut is not None or faults.reset is not None:
            now = self._stamp(self.choices[0])
            self.connection.begin(200, headers, length=len(body))
            self.connection.piece(body[: len(body) // 2])
            self._cut(now)
            return
        now = self._stamp(self.choices[0])
        if self._framing == "eof":
            self.connection.begin(200, headers, until_eof=True)
            self.connection.end(body)
        else:
            self.connection.respond(status, body, headers)
        self._finish(outcome, now)

    def _breaks(self, chunks: int) -> bool:
        faults = self.faults
        return chunks in (faults.cut, faults.reset, faults.error, faults.error_event)

    def _broken_off(self) -> bool:
        """Whether the answer ends here, after the chunks sent so far, by a fault; if so, ends it."""
        chunks = self.record.chunks
        if not self._breaks(chunks):
            return False
        now = time.monotonic_ns()
        if chunks in (self.faults.cut, self.faults.reset):
            self._cut(now)
            return True
        event = self._frame(error_of(self._dialect), b"error" if chunks == self.faults.error_event else b"")
        self.connection.end(event + self._done())
        self._finish(ERROR_SAID, now)
        return True

    def _cut(self, now: int) -> None:
        reset = self.faults.reset is not None and self.faults.cut is None
        self.over = True
        self._ended(self, RESET if reset else CUT)
        self.connection.cut(reset=reset)

    def _finish(self, outcome: str, now: int) -> None:
        self.over = True
        if outcome == COMPLETED:
            self._metered(now)
        self._ended(self, outcome)
        self.connection.release()

    def _metered(self, now: int) -> None:
        """The answer is complete: its times and lengths are seen from now on."""
        record, meters = self.record, self.meters
        meters.observe("latency", now - record.received_mono_ns)
        meters.observe("output_tokens", record.completion_tokens)
        made = now if record.made_mono_ns is None else record.made_mono_ns
        if record.admitted_mono_ns is not None:
            meters.observe("prefill", max(0, made - record.admitted_mono_ns))
        meters.observe("decode", now - made)
        if record.completion_tokens > 1:
            meters.observe("per_token", (now - made) // (record.completion_tokens - 1))
        if record.drafts is not None:
            meters.drafted(record.drafts)

    def _stamp(self, choice: Choice) -> int:
        """Note the time of a piece, just before the socket gets it."""
        record = self.record
        record.chunks += 1
        now = time.monotonic_ns()
        record.last_mono_ns, record.last_wall_ns = now, time.time_ns()
        if record.first_mono_ns is None:
            record.first_mono_ns, record.first_wall_ns = now, record.last_wall_ns
            made = now if self.ask.stream or record.made_mono_ns is None else record.made_mono_ns
            self.meters.observe("first_token", made - record.received_mono_ns)
        if choice.last_ns is not None:
            self.meters.observe("between_tokens", now - choice.last_ns)
            self._truth.gaps.add(now - choice.last_ns)
        choice.last_ns = now
        return now

    def _admitted(self) -> None:
        record = self.record
        first_choices = self.choices[:: self.ask.choices]
        sequences = [choice.sequence for choice in first_choices if choice.sequence is not None]
        record.cached_tokens = sum(sequence.cached_tokens for sequence in sequences)
        record.admitted_mono_ns = min(
            (sequence.admitted_ns for sequence in sequences if sequence.admitted_ns is not None), default=None
        )
        self.meters.admitted(record.prompt_tokens, record.cached_tokens, self._block_size)
        if record.admitted_mono_ns is not None:
            self.meters.observe("queued", max(0, record.admitted_mono_ns - record.received_mono_ns))

    def _usage(self) -> Usage:
        record = self.record
        drafts = None if self._unfinished else record.drafts
        if self._timed and not self._unfinished and len(self.choices) == 1 and record.timing is None:
            record.timing = record.timed(time.monotonic_ns())
        return Usage(
            record.prompt_tokens, record.completion_tokens, record.cached_tokens, record.reasoning_tokens, drafts, record.timing
        )

    def _closing(self) -> bytes:
        return self._writer.closing(self._usage() if self.ask.include_usage and self.faults.usage else None) + self._done()

    def _done(self) -> bytes:
        done = self._dialect.done
        return b"" if done is None or not self.faults.done else self._frame(done)

    def _further(self) -> dict[str, str]:
        headers = {} if self.record.request_id is None else {"X-Request-ID": self.record.request_id}
        return headers if self.faults.compressed is None else {**headers, "grpc-encoding": self.faults.compressed}
