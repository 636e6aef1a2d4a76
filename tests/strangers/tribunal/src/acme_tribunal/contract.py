"""What `aiperf plugins validate` runs: the judge is a server in a thread, which compares texts."""

from __future__ import annotations

import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiperf import Capabilities, Case, DatasetContext, Turn
from aiperf.sdk.model import ToolCall
from aiperf.testing import DatasetContract, GradedAnswer, GraderContract

from acme_tribunal.calls import Calls
from acme_tribunal.errands import THINGS, Errands
from acme_tribunal.options import RefereeOptions
from acme_tribunal.referee import Referee


class _Judge(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][0]["content"]
        expected, _, answer = asked.partition("\nExpected: ")[2].partition("\nAnswer: ")
        said = "RIGHT" if expected == answer else "**Wrong**: something else is said"
        body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@cache
def _judge() -> str:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Judge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class _JudgeOptions:
    def __get__(self, instance: object, owner: type) -> RefereeOptions:
        return RefereeOptions(url=_judge())


class RefereeContract(GraderContract):
    grader = Referee
    options = _JudgeOptions()
    cases = (GradedAnswer("piano", "piano", correct=True), GradedAnswer("piano", "towel", correct=False))


def _calling(expected: object, *calls: tuple[str, str], correct: bool, unparsed: bool = False) -> GradedAnswer:
    text = json.dumps(expected)
    made = tuple(ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(calls))
    case = Case(expected=text, turn=Turn(("?",), expected=text), text="", conversation_id="c", tool_calls=made)
    return GradedAnswer(text, "", correct, unparsed, case=case)


_TWO = [{"name": "clock"}, {"name": "weather", "arguments": {"at": "Lucca", "days": 3}}]


class CallsContract(GraderContract):
    grader = Calls
    cases = (
        _calling(_TWO, ("weather", '{"days": 3.0, "at":"Lucca"}'), ("clock", ""), correct=True),
        _calling(_TWO, ("clock", "{}"), ("weather", '{"at":"Lucca","days":4}'), correct=False),
        _calling(_TWO, ("clock", "{}"), ("clock", "{}"), correct=False),
        _calling([{"name": "f", "arguments": {"x": 1}}], ("f", '{"x": true}'), correct=False),
        _calling([{"name": "f"}], ("f", '{"x": '), correct=False, unparsed=True),
        _calling([{"name": "f"}], correct=False, unparsed=True),
        _calling([], correct=True),
        _calling([], ("f", "{}"), correct=False),
    )

    def test_silence_is_not_right(self) -> None:
        """An answer without a call is right where none is expected."""


class ErrandsContract(DatasetContract):
    drawn, endless = False, len(THINGS) > 6

    def make(self, entries: int, seed: int) -> Errands:
        return Errands(None, DatasetContext(entries, seed, True, None, Capabilities(path="/v1/chat/completions")))
