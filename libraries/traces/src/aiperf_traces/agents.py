"""The agents of a recorded session: which requests each sends, who starts it behind which turn, and which turn waits for it.

(Spec: datasets §3.11, conversations, names of worker chains, joins, start offsets.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from aiperf import BadDataset
from msgspec import Struct

from aiperf_traces.blocks import common, packed
from aiperf_traces.chains import Chains
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from aiperf_traces.settings import WorkerRules

MAIN, SUBAGENT, FLAT = "weka_main", "weka_subagent", "weka_flat"
_SLACK_S = 1e-6
_PREAMBLE_TOKENS = 64
"""An answer up to this length is of a call such as one for a title."""
_Placed = tuple[int, RecordedRequest]
"""A request and its place in the list of the session, or of its subagent."""


class Origin(Struct, frozen=True):
    """The turn with whose prompt another one begins: the number of its agent, and of the turn there."""

    agent: int
    turn: int


class Agent(Struct):
    """A stream of a tree.

    kind: MAIN, SUBAGENT or FLAT.  places: of the requests in the session's list, or in that of their subagent, which stands at
    *outer* in the session's.  head_tokens: of definitions of tools and the system prompt at the begin of the first prompt.
    origin: None where the first prompt begins with no other's.
    """

    id: str
    kind: str
    requests: list[RecordedRequest]
    places: list[int]
    outer: int = -1
    head_tokens: int = 0
    origin: Origin | None = None


class Start(Struct, array_like=True):
    """Agents that the root starts together, by their numbers.

    after: the turn of the root behind which they begin; joins: the one that waits for them, None for none.
    at_s: recorded start, the earliest of theirs.
    """

    agents: list[int]
    after: int
    joins: int | None
    at_s: float


class Crew(Struct):
    """All agents of a session, the root first.

    dropped: ids of subagents that no turn stands before.  seams: how many chains were put back behind another.
    """

    agents: list[Agent]
    starts: list[Start]
    dropped: list[str]
    seams: int = 0


def crew_of(session: RecordedSession, rules: WorkerRules, most_input: int | None = None) -> Crew:
    """The agents of the session; requests of the root with more than *most_input* tokens in the prompt are left out.

    Raises:
        BadDataset: Two subagents that are started have one id; the message names session and subagent.
    """
    own = [
        (place, entry) for place, entry in enumerate(session.requests)
        if isinstance(entry, RecordedRequest) and (most_input is None or entry.input_tokens <= most_input)
    ]  # fmt: skip
    family = _Family(own, rules)
    head = session.tool_tokens + session.system_tokens
    main = [own[at] for at in family.main]
    root = Agent(session.id, MAIN, [one for _, one in main], [place for place, _ in main], head_tokens=head)
    crew = Crew([root], [], [], family.seams)
    _add_subagents(session, rules, crew)
    _add_workers(session, family, own, crew)
    return crew


def _add_subagents(session: RecordedSession, rules: WorkerRules, crew: Crew) -> None:
    root, known, groups = crew.agents[0], set[str](), dict[tuple[int, int | None], Start]()
    for place, entry in enumerate(session.requests):
        if not isinstance(entry, Subagent):
            continue
        after = max((turn for turn, outer in enumerate(root.places) if outer < place), default=None)
        if after is None:
            crew.dropped.append(entry.id)
            continue
        if entry.id in known:
            raise BadDataset(f"session {session.id!r} has two subagents {entry.id!r}", "give each an agent_id of its own")
        known.add(entry.id)
        first = len(crew.agents)
        crew.agents += _inner(f"{session.id}::sa:{entry.id}", place, entry, session.block_tokens, rules, first)
        if len(crew.agents) > first:
            if crew.agents[first].requests[0].blocks:
                crew.agents[first].origin = Origin(0, after)
            numbers = list(range(first, len(crew.agents)))
            _add_start(groups, crew, numbers, after, _joining(root, place, after, entry.end_s), entry.at_s)


def _inner(
    identity: str, place: int, entry: Subagent, block_tokens: int, rules: WorkerRules, first: int
) -> list[Agent]:  # fmt: skip
    """The agents of a subagent's requests, the main one first; *first*: its number in the session."""
    own = list(enumerate(entry.requests))
    if not own:
        return []
    family, head = _Family(own, rules), entry.tool_tokens + entry.system_tokens
    agents = []
    for number, chain in enumerate((family.main, *family.workers)):
        name = identity if not number else f"{identity}:{family.name(number - 1)}"
        tokens = head if not number or family.has_head(chain, head, block_tokens) else 0
        requests = [own[at] for at in chain]
        origin = family.origin(number)
        agents.append(Agent(
            name, SUBAGENT, [one for _, one in requests], [inner for inner, _ in requests], place, tokens,
            None if origin is None else Origin(first + origin.agent, origin.turn),
        ))  # fmt: skip
    return agents


def _add_workers(session: RecordedSession, family: _Family, own: Sequence[_Placed], crew: Crew) -> None:
    root, head = crew.agents[0], session.tool_tokens + session.system_tokens
    begin, groups = len(crew.agents), dict[tuple[int, int | None], Start]()
    for number, chain in enumerate(family.workers):
        tokens = head if family.has_head(chain, head, session.block_tokens) else 0
        requests, origin = [own[at] for at in chain], family.origin(number + 1)
        if origin is not None and origin.agent:
            origin = Origin(begin + origin.agent - 1, origin.turn)
        places = [place for place, _ in requests]
        agent = Agent(
            f"{session.id}::{family.name(number)}", FLAT, [one for _, one in requests], places, head_tokens=tokens,
            origin=origin,
        )  # fmt: skip
        crew.agents.append(agent)
        after = max((turn for turn, outer in enumerate(root.places) if outer < places[0]), default=0)
        joins = _joining(root, places[0], after, max(one.end_s for one in agent.requests))
        _add_start(groups, crew, [begin + number], after, joins, agent.requests[0].at_s)


def _add_start(
    groups: dict[tuple[int, int | None], Start], crew: Crew, numbers: list[int], after: int, joins: int | None, at_s: float
) -> None:  # fmt: skip
    start = groups.get((after, joins))
    if start is None:
        start = groups[after, joins] = Start([], after, joins, at_s)
        crew.starts.append(start)
    start.agents += numbers
    start.at_s = min(start.at_s, at_s)


def _joining(root: Agent, place: int, after: int, end_s: float) -> int | None:
    """The first turn behind *after* and *place* that was sent when all had ended; None where there is none."""
    later = ((outer, turn) for turn, outer in enumerate(root.places) if outer > place and turn > after)
    return next((turn for _, turn in sorted(later) if root.requests[turn].at_s + _SLACK_S >= end_s), None)


class _Family:
    """The chains among requests of one list, by the numbers of the requests there.

    main: of the agent itself, in the order of times.  workers: those beside it.
    """

    def __init__(self, own: Sequence[_Placed], rules: WorkerRules) -> None:
        self._own, self._rules = own, rules
        order = sorted(range(len(own)), key=lambda at: (own[at][1].at_s, own[at][0]))
        self.workers: list[list[int]] = []
        self.seams = 0
        self._origins: dict[int, int] = {}
        self._groups: list[tuple[int, int] | None] = []
        if not rules.split or len(own) < 2:
            self.main = self._detected = order
            return
        preamble = _is_preamble([own[at][1] for at in order])
        sorted_in = order[1:] if preamble else order
        chains = Chains([own[at][1] for at in sorted_in], rules.seams)
        self._detected = [sorted_in[number] for number in chains.chains[chains.main].requests]
        self.main = [order[0], *self._detected] if preamble else self._detected
        self.workers = [[sorted_in[number] for number in chains.chains[at].requests] for at in chains.workers]
        forks = [chains.chains[at].fork for at in chains.workers]
        self._origins = {at + 1: sorted_in[fork.tail] for at, fork in enumerate(forks) if fork is not None}
        self.seams = sum(chain.into is not None for chain in chains.chains)
        self._groups = _groups([
            None if fork is None else (fork.tail, *self._interval(worker))
            for fork, worker in zip(forks, self.workers, strict=True)
        ], rules.group)  # fmt: skip

    def _interval(self, chain: Sequence[int]) -> tuple[float, float]:
        requests = [self._own[at][1] for at in chain]
        return requests[0].at_s, max(one.end_s for one in requests)

    def origin(self, number: int) -> Origin | None:
        """Where chain *number* of the family, 0 for the main one, has split off: the chain and the turn in it."""
        request = self._origins.get(number)
        if request is None:
            return None
        for chain, requests in enumerate((self.main, *self.workers)):
            if request in requests:
                return Origin(chain, requests.index(request)) if chain != number else None
        return None

    def has_head(self, chain: Sequence[int], tokens: int, block_tokens: int) -> bool:
        """Whether the first prompt of a worker begins with the same blocks of tools and system prompt as the main chain's."""
        blocks = math.ceil(tokens / block_tokens)
        mine, others = self._first(chain), self._first(self._detected)
        return 0 < blocks <= common(packed(mine), packed(others))

    def _first(self, chain: Sequence[int]) -> Sequence[int]:
        return next((blocks for at in chain if (blocks := self._own[at][1].blocks)), ())

    def name(self, worker: int) -> str:
        """The end of the id of a worker."""
        if self._is_sidecar([self._own[at][1] for at in self.workers[worker]]):
            return f"aux:{worker:03d}"
        if (group := self._groups[worker]) is not None:
            return f"wg:{group[0]:03d}_{group[1]:03d}"
        return f"fa:{worker:03d}"

    def _is_sidecar(self, requests: Sequence[RecordedRequest]) -> bool:
        """Whether it is one call of a tool, for a title or a summary, and no agent."""
        rules, first = self._rules, requests[0]
        main = [self._own[at][1] for at in self._detected]
        if len(requests) <= rules.sidecar_requests:
            longest = max(one.input_tokens for one in main)
            if rules.other_model and first.model != main[0].model:
                return True
            if first.input_tokens < max(rules.sidecar_tokens, int(rules.sidecar_share * longest)):
                return True
        summary = len(requests) == 1 and 0 < first.output_tokens < rules.summary_output
        large = first.input_tokens >= rules.sidecar_tokens
        return summary and large and first.input_tokens > rules.summary_ratio * first.output_tokens


def _is_preamble(requests: Sequence[RecordedRequest]) -> bool:
    """Whether the first request is of no conversation, as one for a title: nothing of its prompt begins another."""
    first, *others = requests
    if not first.blocks or any(one.blocks and one.blocks[0] == first.blocks[0] for one in others):
        return False
    if first.output_tokens <= _PREAMBLE_TOKENS:
        return True
    blocks = set(first.blocks)
    return all(blocks.isdisjoint(one.blocks) for one in others)


def _groups(workers: Sequence[tuple[int, float, float] | None], least: int) -> list[tuple[int, int] | None]:
    """Group and place in it of each worker, None for one that is in none.

    workers: the request from which each has split off, its begin and its end.  A group has split off from one request, and its
    times overlap without a gap.
    """
    named: list[tuple[int, int] | None] = [None] * len(workers)
    found = [group for group in _overlapping(workers) if 0 < least <= len(group)]
    for number, group in enumerate(sorted(found, key=min)):
        for place, worker in enumerate(sorted(group)):
            named[worker] = (number, place)
    return named


def _overlapping(workers: Sequence[tuple[int, float, float] | None]) -> Iterator[list[int]]:
    """Workers of one request whose times overlap; their numbers are in the order of their begins."""
    by_request: dict[int, list[int]] = {}
    for number, worker in enumerate(workers):
        if worker is not None:
            by_request.setdefault(worker[0], []).append(number)
    for numbers in by_request.values():
        group, until_s = list[int](), -math.inf
        for number in numbers:
            _, begin_s, end_s = workers[number] or (0, 0.0, 0.0)
            if group and begin_s >= until_s:
                yield group
                group, until_s = [], -math.inf
            group.append(number)
            until_s = max(until_s, end_s)
        yield group


__all__ = ["FLAT", "MAIN", "SUBAGENT", "Agent", "Crew", "Origin", "Start", "crew_of"]
