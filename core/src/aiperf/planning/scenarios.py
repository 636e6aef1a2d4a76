"""The plan of a run with a scenario: what its rules don't allow is refused, or noted."""

from __future__ import annotations

from aiperf.errors import ConfigError
from aiperf.planning.problems import Draft
from aiperf.registry.third_party import blamed, load
from aiperf.sdk.model import names
from aiperf.sdk.plan import Plan
from aiperf.sdk.scenario import AskedSettings, BenchmarkScenario, Conflict


def ruled(draft: Draft, plan: Plan) -> Plan:
    """The plan with what ``--unsafe-override`` allows against the rules of its scenario; as it is without one.

    Every conflict is a refusal of the draft; with ``--unsafe-override`` those are that are final, and the others are warnings.
    """
    ref, override = plan.plugins.scenario, draft.kernel.unsafe_override
    flag = draft.flag("unsafe_override")
    if ref is None:
        if override:
            draft.warn(f"{flag} has no effect without {draft.flag('scenario')}")
        return plan
    found: tuple[Conflict, ...] = ()
    title = ref.name
    with draft.collected(), blamed(ref, "can't check the plan"):
        scenario: BenchmarkScenario[object] = load(ref)(plan.plugins.options_of(ref))
        title = scenario.title
        found = tuple(scenario.conflicts(plan, draft.settings.asked or AskedSettings()))
    refused = [each for each in found if each.final or not override]
    hint = f"change what is named here, or add {flag}: the run then doesn't count for {title}"
    for each in refused:
        hints = [hint] if each is refused[-1] and not any(one.final for one in refused) else []
        draft.errors.append(ConfigError(each.sentence(title), *hints))
    if draft.settings.filled:
        draft.hint(f"{title} fills in {names(list(draft.settings.filled))}")
    for each in found if override else ():
        draft.warn(f"{each.sentence(title)}; {flag} allows it, and the run doesn't count for {title}")
    return plan.replacing(overridden=found if override else ())
