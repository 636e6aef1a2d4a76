"""A corpus of recorded agents that is over in seconds, a hub that has it, and a tokenizer with a token for each byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiperf_dataset_public.testing import Hub, Repository

REPOSITORY, COMMIT = "semianalysisai/cc-traces-weka-062126-256k", "8fecd2fc56694469f758f0afbbb6335ad3043740"
FILE = "traces.jsonl"
BLOCK = 64


def request(at_s: float, blocks: list[int], out: int = 8, **more: Any) -> dict[str, Any]:
    tokens = BLOCK * len(blocks)
    return {"t": at_s, "type": "s", "model": "m", "in": tokens, "out": out, "hash_ids": blocks, "api_time": 0.05, **more}


def trace(number: int, turns: int = 8, gap_s: float = 0.3) -> dict[str, Any]:
    """A session of *turns* turns, *gap_s* apart; behind its second turn a subagent, for which the fourth one waits."""
    name, first = f"tr{number}", 100 * number
    requests = [request(round(turn * gap_s, 3), [first + block for block in range(turn + 1)]) for turn in range(turns)]
    begin_s = round(1.3 * gap_s, 3)
    inner = [request(round(begin_s + 0.4 * gap_s * place, 3), [first + 50 + block for block in range(place + 1)], 4)
             for place in range(2)]  # fmt: skip
    agent = {
        "t": begin_s, "type": "subagent", "agent_id": "a1", "subagent_type": "Explore", "duration_ms": round(900 * gap_s),
        "status": "completed", "models": ["m"], "requests": inner,
    }  # fmt: skip
    whole = [*requests[:2], agent, *requests[2:]]
    return {"id": name, "models": ["m"], "block_size": BLOCK, "hash_id_scope": "local", "requests": whole}


def corpus(count: int, **more: Any) -> bytes:
    """The traces, one per line."""
    return "".join(json.dumps(trace(number, **more)) + "\n" for number in range(count)).encode()


def on_hub(hub: Hub, content: bytes) -> None:
    """Let the hub have the corpus at the pinned commit of the set."""
    hub.add(Repository(REPOSITORY)).commit({FILE: content}, commit=COMMIT)


def tokenizer(folder: Path) -> Path:
    """A directory as of a model, whose tokenizer has a token for each byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder
