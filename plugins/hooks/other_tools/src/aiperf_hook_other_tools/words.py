"""Words of other programs, and our word for each; words of the reference that a later version will have, by subject."""

from __future__ import annotations

from aiperf.sdk.command import LATER


def _each(words: str, answer: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), answer)


def _later(subject: str, words: str) -> dict[str, str]:
    return _each(words, f"{subject}: {LATER}")


_MADE = "--isl and --osl set the lengths of prompts that are made"
_DATA = f"use --input-file FILE, or --public-dataset NAME; {_MADE}"
_SAVED = "results are always saved; --artifact-dir says where"
_SENT = "use --extra-inputs {0}:VALUE, which is sent with every request"
_NO_STEPS = "not applicable here; use --request-count or --benchmark-duration"

OTHER_TOOLS = {
    # load
    **_each("--qps --rate --rps --target-rate --arrival-rate", "use --request-rate, in requests per second"),
    **_each(
        "--rate-type --profile-type",
        "a constant rate is --request-rate R --arrival-pattern constant, and a number of requests in flight is --concurrency N",
    ),
    **_each("--burstiness", "use --arrival-smoothness"),
    **_each("--ramp-up-strategy --ramp-up-start-rps --ramp-up-end-rps", "use --request-rate-ramp-duration, in seconds"),
    **_each(
        "-c --vus --connections --max-concurrency --clients --parallel --threads --num-threads --session-concurrency",
        "use --concurrency",
    ),
    **_each("--users", "use --concurrency N, or --user-centric-rate R --num-users N for users who pause"),
    **_each("--duration --max-seconds --max-duration --run-time --time-limit", "use --benchmark-duration, in seconds"),
    **_each("-n --max-requests --requests --iterations --total-requests --number", "use --request-count"),
    **_each("--num-warmups --warmup --warmup-requests", "use --warmup-request-count N, or --warmup-duration S"),
    **_each("--max-error-rate --max-errors", "use --failed-request-threshold, a share from 0 to 1"),
    **_each("--measurement-interval -p --stability-percentage -s --max-trials --measurement-mode", _NO_STEPS),
    **_each("--max-threads", "use --workers-max"),
    # server
    **_each("--target --base-url --server --server-url --address --endpoint-url --api-base", "use --url"),
    **_each("--host --port", "use --url with both, for example --url http://localhost:8000"),
    **_each("--service-kind --api", "name the API with --endpoint-type, and the server with -u"),
    **_each("--headers", "use --header NAME:VALUE, once for each"),
    **_each("--timeout --request-timeout", "use --request-timeout-seconds"),
    **_each("--disable-stream --no-stream", "leave --streaming out: answers come whole without it"),
    **_each("--disable-ssl-verify --no-verify --skip-tls-verify --no-check-certificate", "use --insecure"),
    **_each("--profile", "use --server-profiler, which starts and stops the server's profiler"),
    # data
    **_each("--data --dataset --dataset-path --data-path --data-file --prompts --prompt-file --input --trace", _DATA),
    **_each(
        "--dataset-name",
        f"use --public-dataset NAME, or --input-file FILE with --custom-dataset-type FORMAT; {_MADE}",
    ),
    **_each(
        "--random-input-len --random-input --input-len --input-length --input-tokens --prompt-tokens --prompt-length",
        "use --isl",
    ),
    **_each(
        "--random-output-len --random-output --sharegpt-output-len --output-len --output-length --output-tokens --max-tokens"
        " --max-new-tokens --max-output-tokens",
        "use --osl",
    ),
    **_each("--random-prefix-len --prefix-len", "use --prompt-prefix-length with --prompt-prefix-pool-size"),
    **_each("--num-turns --turns", "use --session-turns-mean"),
    **_each("--seed", "use --random-seed"),
    **_each("--trust-remote-code", "use --tokenizer-trust-remote-code"),
    **_each("--ignore-eos", "use --extra-inputs ignore_eos:true"),
    **{f"--{name.replace('_', '-')}": _SENT.format(name) for name in (
        "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "min_tokens",
        "stop", "logprobs",
    )},
    # results
    **_each("--save-result --save-results --result-dir --results-dir --output-dir --output-path --out --output -o", _SAVED),
    **_each("--result-filename --output-file", "use --profile-export-prefix for names of files; --artifact-dir is their place"),
    **_each("--save-detailed --append-result", "each request is in profile_export.jsonl; --export-level raw adds its answer"),
    **_each(
        "--percentile-metrics --metric-percentiles --selected-percentiles",
        "all metrics are measured; --percentiles 50,90,99.9 chooses percentiles, and --columns the columns of tables",
    ),
    **_each("--slo --sla", 'use --goodput, for example --goodput "time_to_first_token:250"'),
    **_each("--silent", "use --quiet"),
    **_each("--disable-tqdm --disable-progress --no-progress --disable-progress-bar", "use --ui none, or --quiet"),
    **_each("--checkpoint-dir --enable-checkpointing", "the journal does it: aiperf report DIR after a crash"),
    **_each("--generate-plots", "use --auto-plot, or aiperf plot afterwards"),
    **_each("--server-metrics-url --server-metrics-urls", "use --gpu-telemetry URL: it means exporters of GPUs"),
    "--zmq-dual-bind": "control messages use one socket: --zmq-host for TCP, or --zmq-ipc-path for a directory",
    **_each("--sweep-range --sweep-list", "give the option itself several values, for example --concurrency 1,2,4"),
    "--bo-constraint-mode": "has no effect in AIPerf either: leave it out",
}  # fmt: skip
"""Options that have no equivalent of that name, and what to do instead."""

LATER_OPTIONS = {
    **_later(
        "the search for a load",
        "--search-space --search-metric --search-stat --search-direction --search-max-iterations --search-initial-points"
        " --search-random-seed --search-planner --search-percentile-pooling --search-sla-tier --search-recipe"
        " --search-style --optuna-sampler --optuna-acquisition --optuna-terminator --ttft-sla-ms --itl-sla-ms --tpot-sla-ms"
        " --e2e-sla-ms --error-rate-sla --slo-attainment-fraction --degradation-threshold --degradation-metric-tag"
        " --degradation-stat --isl-osl-pairs --concurrency-min --concurrency-max --concurrency-steps --isl-min --isl-max"
        " --isl-steps --osl-min --osl-max --osl-steps",
    ),
}  # fmt: skip
"""Options of the reference for which no package is there yet."""

COMMANDS = {
    "chat": "aiperf profile --request-count 1 --export-outputs-json sends one request and keeps the answer in outputs.json",
    "proxy": "the processes of a run need no message bus, and so no proxy: leave it out",
    "kube": "there is no operator: run aiperf profile in a job of your cluster, and keep its artifact directory",
    "process-export-files": "aiperf report DIR reads a run again",
    **_each("run bench benchmark load perf start", "use aiperf profile"),
    "compare": f"the comparison of two runs: {LATER}",
    "help": "aiperf --help lists the commands", "version": "aiperf --version prints it",
}  # fmt: skip
"""Commands of other programs, and what to do instead."""

PLUGINS = {
    "endpoints": {
        **_each("openai vllm", "use chat, completions or responses"),
    },
    "datasets": {
        **_each("sharegpt", "use --public-dataset sharegpt"),
    },
    "planners": _later("the search for a load", "adaptive_search bayesian optuna monotonic_sla smooth_isotonic"),
    "ramps": {"poisson": "steps at random instants would make no two runs alike: use linear, or a package of your own"},
}  # fmt: skip
"""By category, patterns of names of the reference that no package has, and what to do instead."""

__all__ = ["COMMANDS", "LATER_OPTIONS", "OTHER_TOOLS", "PLUGINS"]
