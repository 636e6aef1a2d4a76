"""One phase of a run, in the parent process."""

from __future__ import annotations

import logging
import time
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf import environment
from aiperf.planning.phases import target
from aiperf.processes import control
from aiperf.run.builder import with_flag
from aiperf.run.children import POLL_MS, Child, no_messages
from aiperf.run.failure import FEWEST_TO_JUDGE
from aiperf.run.progress import phase_every_s
from aiperf.run.reach import ends_by_time
from aiperf.sdk.plan import PhasePlan
from aiperf.worker.clock import NS_PER_S

if TYPE_CHECKING:
    from aiperf.run.run import PlannedRun

log = logging.getLogger(__name__)

_ASK_S = 1.6
"""Reducers are asked so long before a line of progress: the next snapshot has their numbers, the one behind it the verdict."""
_CANCEL_DRAIN_NS = 5 * NS_PER_S
"""Longest time for requests in flight to finish after a signal."""


class Phase:
    """Drives the workers through *phase*, shows it twice a second, and ends it early at a signal or after failures."""

    def __init__(self, phase: PhasePlan, run: PlannedRun) -> None:
        self._phase, self._run, self._outcome, self._mailbox = phase, run, run.outcome, run.mailbox
        self._timed = ends_by_time(each for each in run.plan.load.phases if each.index >= phase.index)
        self._start_ns = self._stops = 0
        self._kill_at_s: float | None = None
        self._log_every_s = phase_every_s(run.showing.every_s, phase)
        self._logged_s, self._logged = time.monotonic(), (0.0, 0)
        self._asked = False

    def run(self) -> None:
        """Return when every worker has ended the phase."""
        self._begin()
        while len(self._mailbox.ended) < self._run.plan.run.workers:
            self._mailbox.receive(POLL_MS)
            self._run.display.heed(self._outcome.signals)
            self._run.directories.check()
            self._mailbox.watch_workers(self._phase)
            self._mailbox.watch_reducers()
            self._judge_failures()
            self._tell_failures()
            self._judge_reach()
            self._judge_data()
            self._show()
            self._stop_where_asked()
        self._end()

    def _begin(self) -> None:
        phase, mailbox = self._phase, self._mailbox
        mailbox.begin_phase(self._outcome.lost)
        self._run.reach.begin()
        self._run.companions.each(lambda each: each.phase_begins(phase))
        self._start_ns = monotonic_ns() + mailbox.children.lead_ns
        self._outcome.times.setdefault("begin_ns", self._start_ns)
        resume = control.Begin(phase.index, self._start_ns, resumed=True)
        self._run.showing.begin_phase(phase, self._start_ns)
        mailbox.catch_up = lambda child: [resume] if child.role == "worker" else []
        log.info("Phase %s (%s) started | %s", phase.name, phase.kind, target(phase))
        for child in self._running():
            if child.ready:  # another one, in the place of one that died, hears of it when it is
                mailbox.send(child, control.Begin(phase.index, self._start_ns))
        self._run.companions.each(lambda each: each.phase_began(phase, self._start_ns))
        self._run.hooks.call("aiperf_phase_started", plan=self._run.plan, phase=phase, servers=self._run.servers)

    def _judge_failures(self) -> None:
        """End the run once too large a share of the requests has failed."""
        phase, most = self._phase, self._run.plan.load.failed_threshold
        if most is None or phase.kind != "profiling" or self._outcome.incomplete:
            return
        completed, failed = self._mailbox.totals()
        finished = completed + failed
        if finished >= max(FEWEST_TO_JUDGE, phase.concurrency or 0) and failed > most * finished:
            flag = self._run.settings.flag("failed_threshold", "--failed-request-threshold")
            self._outcome.incomplete = f"{failed} of {finished} requests failed, a larger share than {flag} {most:g}"
            self._outcome.warn(self._outcome.incomplete)

    def _tell_failures(self) -> None:
        """Say why many requests fail, once for each cause; the report has the causes of all failures."""
        if not self._mailbox.fresh:
            return
        ended, self._mailbox.fresh = self._mailbox.fresh, []
        if said := self._run.failing.follow(ended):
            self._outcome.warn(said, report=False)

    def _judge_reach(self) -> None:
        """Say that no connection can be opened, and end the run once that lasts too long."""
        reach, settings = self._run.reach, self._run.settings
        counters = [counter for counter in self._mailbox.counters.values() if counter.phase == self._phase.index]
        if said := reach.follow(counters, time.monotonic()):
            sentence, reported = said
            self._outcome.warn(sentence, report=reported)
        limit_s = reach.limit_s(settings.kernel.unreachable_timeout_s, timed=self._timed)
        if limit_s is not None and reach.gap_s >= limit_s and not self._outcome.incomplete:
            flag = settings.flag("unreachable_timeout_s", "--unreachable-timeout")
            why = f"no connection could be opened for {limit_s:g} s ({reach.why}); {flag} 0 goes on trying"
            self._outcome.incomplete = why
            self._outcome.warn(why)

    def _judge_data(self) -> None:
        """End the run where the rest of a data set that it sends already can't be made."""
        if failure := self._run.builder.failure(partial(with_flag, plan=self._run.plan, settings=self._run.settings)):
            self._outcome.incomplete = self._outcome.incomplete or failure
            self._outcome.warn(failure)

    def _show(self) -> None:
        """Show the phase, and log it where the last time is long enough ago."""
        snapshot = self._run.showing.show(sending=self._sends())
        if snapshot is None or not self._log_every_s:
            return
        now_s = time.monotonic()
        left_s = self._logged_s + self._log_every_s - now_s
        if left_s <= _ASK_S and not self._asked:
            self._asked = True
            self._run.showing.ask()
        if left_s <= 0:
            self._logged_s, self._asked = now_s, False
            (before_s, before), done = self._logged, snapshot.completed + snapshot.errors
            self._logged = snapshot.elapsed_s, done
            took_s = snapshot.elapsed_s - before_s
            for line in snapshot.lines((done - before) / took_s if took_s > 0 else None):
                log.info("%s", line)

    def _sends(self) -> bool:
        """Whether the phase still sends, as far as it is known here."""
        ended_ns = self._phase.duration_ns
        over = ended_ns is not None and monotonic_ns() - self._start_ns >= ended_ns
        return not over and not self._stops

    def _stop_where_asked(self) -> None:
        """Stop the workers at a signal, or once the run is incomplete; kill those that don't obey."""
        if self._outcome.signals.count > self._stops or (self._outcome.incomplete and not self._stops):
            self._stops = max(1, self._outcome.signals.count)
            grace_ns = _CANCEL_DRAIN_NS if self._phase.grace_ns is None else self._phase.grace_ns
            # Without a connection no answer is on its way that a drain could wait for.
            at_once = self._outcome.signals.count > 1 or self._run.reach.gap_s > 0
            drain_ns = 0 if at_once else min(grace_ns, _CANCEL_DRAIN_NS)
            for child in self._running():
                self._mailbox.send(child, control.Stop(drain_ns))
            self._kill_at_s = time.monotonic() + drain_ns / NS_PER_S + environment.abort_wait_s()
        if self._kill_at_s is not None and time.monotonic() > self._kill_at_s:
            for child in self._running():
                child.process.kill()

    def _running(self) -> list[Child]:
        return [child for child in self._mailbox.children.workers if child.index not in self._mailbox.ended]

    def _end(self) -> None:
        phase = self._phase
        self._mailbox.catch_up = no_messages
        end_ns = max(self._mailbox.phase_end_ns, self._start_ns)
        signals = self._outcome.signals
        self._outcome.cut = self._outcome.cut or (signals.count > 0 and signals.first_ns < end_ns)
        self._run.showing.end_phase(end_ns)
        self._run.companions.each(lambda each: each.phase_ended(phase, end_ns))
        self._judge_failures()
        completed, errors = self._mailbox.totals()
        elapsed_s = ((self._mailbox.phase_end_ns or monotonic_ns()) - self._start_ns) / NS_PER_S
        ended = completed + errors  # which of them succeeded is known when their answers are read
        log.info("Phase %s (%s) complete | %s requests ended | %.2f s elapsed", phase.name, phase.kind, ended, elapsed_s)
        if phase.kind == "warmup" and errors and not completed:
            self._outcome.warn("every warmup request failed")
        self._run.hooks.call("aiperf_phase_ended", plan=self._run.plan, phase=phase, servers=self._run.servers)
