"""Material for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Result
from aiperf.sdk.model import ToolCall
from aiperf.testing import EndpointContract, VerdictContract, sample_evidence

from aiperf_endpoint_ollama import Ollama
from aiperf_endpoint_ollama.verdict import OllamaVerdict

END = (
    '"done":true,"done_reason":"stop","total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":26,'
    '"prompt_eval_duration":342546000,"eval_count":4,"eval_duration":4535599000'
)


def line(message: str, rest: str = '"done":false') -> bytes:
    return f'{{"model":"m","created_at":"2026-11-22T08:19:43.385406Z","message":{message},{rest}}}'.encode()


class OllamaContract(EndpointContract):
    endpoint = Ollama()
    transcript = (
        line('{"role":"assistant","content":"","thinking":"Hm. "}'),
        line('{"role":"assistant","content":"Grüße,"}'),
        line('{"role":"assistant","content":" cat"}'),
        line('{"role":"assistant","content":"","tool_calls":[{"function":{"name":"weather","arguments":{"at":"Lucca"}}}]}'),
        line('{"role":"assistant","content":""}', END),
    )
    answer = 'Hm. Grüße, catweather{"at":"Lucca"}'
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 26, "completion_tokens": 4}
    numbers: ClassVar[dict[str, float] | None] = {
        "server_total_ns": 4883583458, "server_load_ns": 1334875, "server_prompt_eval_ns": 342546000,
        "server_eval_ns": 4535599000,
    }  # fmt: skip
    whole = line(
        '{"role":"assistant","content":"Grüße, cat","thinking":"Hm. ",'
        '"tool_calls":[{"function":{"name":"weather","arguments":{"at":"Lucca"}}}]}',
        END,
    )
    calling = (transcript, (whole,))
    called = (ToolCall("", "weather", '{"at":"Lucca"}'),)
    silent = (line('{"role":"assistant","content":""}'), line("{}"), line("null"), line("{}", END))
    failure = b'{"error":"busy"}'


def _cold(longest: float) -> Result:
    return Result("server_timing_load_duration", "Server Load Duration", "ms", {"avg": 1.0, "max": longest, "count": 24})


def _truncated(count: float) -> Result:
    return Result("truncated_prompt_count", "Truncated Prompt Count", "requests", {"avg": count})


class OllamaVerdictContract(VerdictContract):
    verdict = OllamaVerdict
    cases = (
        (sample_evidence(), ()),
        (sample_evidence(_cold(1000.0), _truncated(0.0)), ()),
        (sample_evidence(_cold(1000.1)), ("cold_model",)),
        (sample_evidence(_truncated(1.0)), ("truncated_prompts",)),
        (sample_evidence(_cold(9000.0), _truncated(24.0)), ("cold_model", "truncated_prompts")),
    )
