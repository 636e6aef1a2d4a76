"""A judge model: it is asked about each answer, and its own failures are nobody's wrong answers."""

from __future__ import annotations

import json
import urllib.request

from aiperf import Case, ConfigError, Grade, Grader

from acme_tribunal.options import RefereeOptions

_TASK = "Say RIGHT if the answer means the same as the expected one, else WRONG."


class Referee(Grader[RefereeOptions]):
    def __init__(self, options: RefereeOptions) -> None:
        super().__init__(options)
        if options.url is None:
            raise ConfigError("the grader referee asks a judge model, and has no server", "add --referee-url URL")
        self._url = f"{options.url.rstrip('/')}/v1/chat/completions"
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def grade(self, case: Case) -> Grade:
        """The judge's verdict.  An answer without a verdict is ungraded: an exception says so, with its reason."""
        if not case.response.strip():
            return Grade(correct=False, unparsed=True, explanation="there is nothing to judge")
        verdict = self._asked(f"{_TASK}\nQuestion: {case.turn.text}\nExpected: {case.expected}\nAnswer: {case.response}")
        word = verdict.strip().partition(" ")[0].strip(".,:*").upper()
        if word not in ("RIGHT", "WRONG"):
            raise ValueError(f"the judge says neither RIGHT nor WRONG: {verdict[:80]!r}")
        return Grade(correct=word == "RIGHT", extracted=case.response, explanation=verdict)

    def _asked(self, prompt: str) -> str:
        body = {"model": self.options.model, "messages": [{"role": "user", "content": prompt}], "temperature": 0}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with self._open(request, timeout=self.options.limit_s) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])
