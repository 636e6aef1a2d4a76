"""Options of a dag_jsonl file."""

from __future__ import annotations

from aiperf.sdk.options import Finite, option
from aiperf_dataset_synthetic.options import CommonOptions


class DagJsonlOptions(CommonOptions):
    """Also bounds the times between turns."""

    delay_cap_s: Finite | None = option("--inter-turn-delay-cap-seconds", ge=0, group="Input",
        metavar="SECONDS", place="dataset.inter_turn_delay_cap_seconds", shown="no bound",
        help="Longest delay and think time of a file of conversations that start others; longer ones are cut.")
