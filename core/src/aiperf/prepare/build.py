"""Builds everything that must exist before load: the encoded data set, files of data set exporters, and due times.

It runs in its own process, streams the data set, and depends on the plan alone: the same plan gives the same bytes for any
number of workers.  Sending may begin before the data set is whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from aiperf.errors import ConfigError, PluginError
from aiperf.prepare import pace
from aiperf.prepare.due_times import StoredTurns, with_due_times
from aiperf.prepare.encoder import Encoder
from aiperf.prepare.entries import Entries
from aiperf.prepare.exports import DatasetExports
from aiperf.prepare.first_use import Promised, first_use
from aiperf.prepare.kept import Kept, KeptDataset
from aiperf.prepare.shares import fitted, log_reuse
from aiperf.prepare.tokenizers import files_for_sites, open_tokenizer
from aiperf.registry.guides import where_is
from aiperf.registry.hooks import Hooks
from aiperf.registry.registry import Registry
from aiperf.registry.third_party import blamed, endpoint_of, load, made
from aiperf.rundir.store import Store
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.cache_bust import marker_tokens
from aiperf.sdk.dataset import Dataset, DatasetContext, Promise
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.framing import framing_of
from aiperf.sdk.grader import Grader
from aiperf.sdk.model import names
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.tokenizer import Tokenizer, chat_template


def build(
    plan: Plan, publish: Callable[[Plan], Callable[[], bool]] | None = None, kept: Kept | None = None
) -> Plan:  # fmt: skip
    """Write the data set and the due times below ``plan.output.journal``.

    publish: called with the plan where sending may begin before the data set is whole; what it returns says whether to stop.
    None makes the data set whole.  kept: what a process keeps of the plan before.

    Returns:
        The plan with the number of entries, their order, and the entries, due times, sessions and limits of each phase.

    Raises:
        BadTokenizer, BadDataset, PluginError, ConfigError: With a message for the user.
    """
    try:
        dataset = None if kept is None else kept.linked(plan)
        if dataset is not None:
            return _again(plan, dataset)
        with contextlib.nullcontext() if kept is None else kept.heard():
            return _made(plan, publish, kept)
    except OSError as error:
        raise ConfigError(
            f"the data set can't be written to {plan.output.journal}: {error.strerror or error}",
            "choose another --artifact-dir",
        ) from error


def _made(plan: Plan, publish: Callable[[Plan], Callable[[], bool]] | None, kept: Kept | None) -> Plan:
    asked, plugins, target = plan, plan.plugins, plan.target
    endpoint = endpoint_of(plan)
    with blamed(plugins.endpoint, "can't be used"):
        framing_of(endpoint)
    grader: Grader | None = None
    if plugins.grader is not None:
        grader = made(plugins.grader, plugins.options_of(plugins.grader))  # refuses a grader that lacks a dependency
    tokenizer = open_tokenizer(plan) if kept is None else kept.tokenizer(plan)
    plan = plan.replacing(tokenizer_files=files_for_sites(plan, tokenizer))
    context = _context(plan, endpoint, tokenizer)
    with blamed(plugins.dataset, "can't be used"):
        dataset: Dataset = load(plugins.dataset)(plugins.options_of(plugins.dataset), context)
    order = _order(plan, dataset)
    promise = None if publish is None else _promise(plan, dataset)
    encoder, exports = Encoder(plan, endpoint, tokenizer), DatasetExports(plan)
    with StoreWriter(Path(plan.output.journal), len(target.models), target.given_path) as writer, exports:
        entries = Entries(plan, dataset, endpoint, encoder, writer, exports, promise, grader)
        store = entries.promised or entries.whole()
        total = entries.whole().entries if promise is None else promise.count
        with blamed(plugins.dataset, "can't tell of its source"):
            facts = dataset.source_facts()
        plan = _with_entries(plan, order, total).replacing(facts=facts)
        _check_encoding(plan, store.max_turns)
        if promise is None or promise.turns is not None:
            log_reuse(plan.load.phases, store)
        plan = _all_timed(plan, store)
        use = None if promise is None else first_use(plan, promise)
        whole = use is None or entries.head(use)
        plan = plan.replacing(several_answers=entries.several_answers)
        if publish is not None and use is not None and not whole:
            entries.publish(store.max_turns)
            if promise is not None and promise.sparing:
                pace.tell_sparing(writer.entries, total)
            elif use.due_ns is None:
                pace.tell(entries.pace, total)
            whole = entries.rest(publish(plan))
        elif promise is not None and promise.turns is None:
            log_reuse(plan.load.phases, entries.whole())
    if kept is not None and whole:
        kept.keep(asked, plan, promise, exports.files)
    return plan


def _again(plan: Plan, dataset: KeptDataset) -> Plan:
    """The plan with a data set that was made for another one, and whose files are in its journal."""
    dataset.tell()
    exports = DatasetExports(plan, dataset.exports)
    with exports:
        exports.out_of_order()
        exports.finish()
    promise, whole = dataset.promise, Store(Path(plan.output.journal))
    store: StoredTurns = whole if promise is None else Promised(promise, lambda: whole)
    plan = _with_entries(plan, dataset.order, dataset.total).replacing(facts=dataset.facts)
    _check_encoding(plan, store.max_turns)
    log_reuse(plan.load.phases, store if promise is None or promise.turns is not None else whole)
    plan = _all_timed(plan, store)
    return plan.replacing(several_answers=dataset.several_answers, tokenizer_files=dataset.tokenizer_files)


def _all_timed(plan: Plan, store: StoredTurns) -> Plan:
    """The plan with the due times and the rising limits of its phases."""
    hooks = Hooks.load(plan.plugins.hooked("aiperf_make_schedule"))
    return plan.replacing(phases=tuple(_timed(plan, phase, store, hooks) for phase in plan.load.phases))


def _context(plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> DatasetContext:
    data, run = plan.data, plan.run
    source = None if data.source is None else Path(data.source)
    return DatasetContext(
        data.entries, run.seed, run.seeded, tokenizer, endpoint.capabilities, source, data.name, data.row,
        marker_tokens(data.cache_bust, tokenizer), data.cache_bust.in_system,
        any(phase.replay is not None for phase in plan.load.phases),
        chat_template(tokenizer) if data.chat_template and tokenizer is not None else None,
        tuple(plan.target.models),
    )  # fmt: skip


def _order(plan: Plan, dataset: Dataset) -> str:
    """The order in which sessions use the entries.

    Raises:
        PluginError: No package has the order that the data set prefers.
    """
    order, plugins = plan.data.sampling or dataset.preferred_sampling, plan.plugins
    if order not in plugins.samplers:
        orders = names(sorted(plugins.samplers))
        hints = where_is("samplers", order, Registry.discover())
        raise PluginError(f"{plugins.dataset} prefers the order {order!r}; there are {orders}", *hints)
    return order


def _timed(plan: Plan, phase: PhasePlan, store: StoredTurns, hooks: Hooks) -> PhasePlan:
    """The phase with its due times and its rising limits."""
    phase = with_due_times(plan, phase, store, hooks)
    if not phase.concurrency_ramp_ns and not phase.prefill_ramp_ns:
        return phase
    from aiperf.prepare.ramped_limits import with_limits  # numpy

    return with_limits(plan, phase)


def _promise(plan: Plan, dataset: Dataset) -> Promise | None:
    """What the data set promises; None where it must be whole before the load: an engine's workers may be elsewhere."""
    engine = plan.plugins.engine
    if plan.data.whole or not (engine is None or load(engine).shares_memory):
        return None
    with blamed(plan.plugins.dataset, "can't be used"):
        promise = dataset.promise()
    if promise is None or promise.count < 1:
        return None
    if promise.trees and promise.outline is None:  # a driver must know what a tree has before it begins
        return None
    return replace(promise, count=min(promise.count, plan.data.first or promise.count))


def _check_encoding(plan: Plan, turns: int) -> None:
    """
    Raises:
        ConfigError: Workers, which don't decompress, would have to read encoded answers beside the load.
    """
    prefills = any(phase.prefill_concurrency is not None for phase in plan.load.phases)
    if plan.target.accept_encoding in ("", "identity") or (turns == 1 and not prefills):
        return
    what = "repeated in later turns" if turns > 1 else "watched for their first token (--prefill-concurrency)"
    raise ConfigError(
        f"answers that are encoded (Accept-Encoding: {plan.target.accept_encoding}) can't be {what}",
        "drop that header, or use single turns without a limit of prefills",
    )


def _with_entries(plan: Plan, order: str, entries: int) -> Plan:
    """The plan with the order and the number of entries, and the parts that its phases have of them."""
    config = {**plan.run.config}
    if config.get("datasets"):
        first, *plugin_options = config["datasets"]
        config["datasets"] = [{**first, "entries": entries, "sampling": order}, *plugin_options]
    plan = plan.replacing(sampling=order, entries=entries, config=config)
    return plan.replacing(phases=fitted(plan, entries))
