"""What the contract of endpoints tries jobs with."""

from __future__ import annotations

from aiperf.sdk.endpoint import Answered
from aiperf.testing import EndpointContract

from acme_jobs import Jobs

_RESULT = b'{"result":"a picture of a cat","file":"/files/j1"}'


class JobsContract(EndpointContract):
    endpoint = Jobs()
    transcript = (_RESULT,)
    answer = "a picture of a cat"
    followed = (
        Answered(0, 200, b'{"id":"j1"}'), Answered(1, 202, b""), Answered(2, 202, b""), Answered(3, 200, _RESULT),
        Answered(4, 200, b"\xff\xd8\xff"),
    )  # fmt: skip
