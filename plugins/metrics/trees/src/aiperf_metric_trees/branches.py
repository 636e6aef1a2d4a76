"""Counts of what branches did: ``branch_stats`` of the summary JSON, by the names of the reference."""

from __future__ import annotations

from collections import Counter

from aiperf_metric_trees.ending import Ending
from aiperf_metric_trees.gathering import Request, Tree
from aiperf_metric_trees.waiting import Waits

NAMES = (
    "children_spawned", "children_completed", "children_errored", "children_truncated", "children_delayed",
    "parents_suspended", "parents_resumed", "parents_failed_due_to_child_error", "joins_suppressed", "graphs_admitted",
    "graphs_completed_to_end",
)  # fmt: skip


def branch_stats(tree: Tree, waits: Waits, ending: Ending) -> Counter[str]:
    """The counts of one tree.  A child counts from its first request on; a parent that waited was resumed, failed with a child,
    or its join was suppressed."""
    counts: Counter[str] = Counter()
    children = [number for number in tree.streams if number]
    for number in children:
        counts["children_spawned"] += 1
        counts[f"children_{_end(tree, number)}"] += 1
        counts["children_delayed"] += waits.delayed(number)
    for number in tree.streams:
        counts += _joins(tree, waits, number)
    if tree.plan.streams and not tree.plan.streams[0].turns:
        counts["graphs_admitted"] += 1
        counts["graphs_completed_to_end"] += ending.settled
    return counts


def _end(tree: Tree, number: int) -> str:
    last = tree.streams[number][-1]
    if last.over and not last.good:
        return "errored"
    return "completed" if last.over and last.turn == tree.plan.streams[number].turns - 1 else "truncated"


def _joins(tree: Tree, waits: Waits, number: int) -> Counter[str]:
    """How often the stream had to wait for a join, and how each wait ended."""
    counts: Counter[str] = Counter()
    sent = {each.turn: each for each in tree.streams[number]}
    for turn in {branch.joins for branch in tree.plan.streams[number].branches if branch.joins}:
        before = sent.get(turn - 1)
        if before is None or not before.over or (number and not before.good):
            continue
        ends = waits.ends_of_join(number, turn)
        if ends and all(end.over and end.end_ns <= before.end_ns for end in ends):
            continue
        counts["parents_suspended"] += 1
        if turn in sent:
            counts["parents_resumed"] += 1
        elif _stayed(tree, ends, before):
            counts["parents_failed_due_to_child_error"] += 1
        else:  # the phase ended first
            counts["joins_suppressed"] += 1
    return counts


def _stayed(tree: Tree, ends: list[Request], before: Request) -> bool:
    """Whether a child's failure ended the parent: it did not go on, and the phase did."""
    failed = [end for end in ends if end.over and not end.good]
    return bool(failed) and tree.last_start_ns > max(before.end_ns, *(end.end_ns for end in ends if end.over))
