"""Numbers of Ollama's answers, by the field that has them: durations in ns."""

from __future__ import annotations

from aiperf.sdk.metric import Unit

DURATIONS = {
    "total_duration": "server_total_ns",
    "load_duration": "server_load_ns",
    "prompt_eval_duration": "server_prompt_eval_ns",
    "eval_duration": "server_eval_ns",
}
NUMBERS = dict.fromkeys(DURATIONS.values(), Unit.NANOSECONDS)
