"""When, how far and why the clocks of GPUs were held down."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf_gpus import SOURCES


class ClockThrottling(Verdict[None]):
    """Advice on GPUs whose SM clock was lower for a part of the profiling phase, with the reasons that the driver gave.

    Samples count while requests of the run were in flight for a second and longer, and the GPU says that it works; one
    that sticks out is replaced by the median of itself and its neighbours.  y is how far (share) a sample is below the GPU's
    median clock; where the clock was high for a tenth of the time and 5 % above the median, the median of that part is taken
    instead.  C = max(0, C + y - k) is added up from sample to sample (CUSUM for drops of 2 k), for k = 0.025 and for k =
    0.05.  An excursion of C is a drop where all of this holds:

    - its highest C is above h = s2 ln(2 n / 0.001) / (2 k).  By Lundberg's inequality C exceeds h, for either k, somewhere in n
      samples of noise with the long-run variance s2 with a probability of at most 0.001; n is that of all GPUs.
      (s2 and the normal approximation of sums are estimates.)  s2 comes from the squared differences of the means of
      neighbouring blocks of 2 s (a twelfth of a short run) at every place, without the largest fifth, and without as many as
      the edges of a drop make, so that neither the drop nor samples that depend on their neighbours mislead it;
    - the mean of y in it is 5 % or more; and it lasts a second.

    Confidence: 1 where the driver gave a reason meanwhile, 0.8 where it gives none at all, 0.5 where it gave none then.
    A GPU without a clock is judged by thermal and hardware slowdowns, a throttle status, or power violations of a second and
    longer while it worked.  Without GPUs, nothing is said.
    """

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        if not any(source.name in SOURCES and source.series for source in evidence.summary.telemetry):
            return
        from aiperf_verdict_clock_throttling.told import told

        found = told(evidence)
        if found is not None:
            yield Finding("clock_throttling", FindingLevel.ADVICE, found.sentence, found.confidence, found.numbers)


__all__ = ["ClockThrottling"]
