"""The trees that the reference makes of recorded agents; run by the Python of its environment.

Standard input has the words of ``aiperf profile``; the last line of standard output the conversations.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from reference import SEED, its, run_of


def told(conversation: Any) -> dict[str, Any]:
    turns = [
        {
            "messages": [(one["role"], one["content"]) for one in turn.raw_messages or ()], "reset": turn.reset_context,
            "max_tokens": turn.max_tokens, "delay": turn.delay, "timestamp": turn.timestamp, "model": turn.model,
            "blocks": turn.theoretical_prefix_cache_total_blocks, "hits": turn.theoretical_prefix_cache_hit_blocks,
            "waits": [one.branch_id for one in turn.prerequisites], "starts": turn.branch_ids,
        } for turn in conversation.turns
    ]  # fmt: skip
    branches = [
        {"id": one.branch_id, "children": one.child_conversation_ids, "start": one.start_timestamp_ms}
        for one in conversation.branches
    ]
    parent = None if conversation.is_root else conversation.parent_conversation_id
    return {"id": conversation.session_id, "parent": parent, "turns": turns, "branches": branches}


def main() -> None:
    generator = import_module("aiperf.common.random_generator")
    generator.reset()
    generator.init(SEED)
    tokenizer = its("common.tokenizer.Tokenizer").from_pretrained("builtin")
    composer = its("dataset.composer.custom.CustomDatasetComposer")(run=run_of(json.load(sys.stdin)), tokenizer=tokenizer)
    print(json.dumps([told(one) for one in composer.create_dataset()]))


if __name__ == "__main__":
    main()
