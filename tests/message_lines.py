"""Wrong command lines, and what each must say: the first table of docs/troubleshooting.md."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

from command_lines import Did, Given, run

START = ("-m", "m", "--tokenizer", "builtin")
"""What ``…`` stands for."""


class Line(NamedTuple):
    """A wrong command line, behind ``aiperf``; variables of its environment may stand before it.

    said: parts of the message; the first names what is wrong as it was typed.
    """

    text: str
    code: int
    said: tuple[str, ...]

    def given(self) -> Given:
        words = shlex.split(self.text)
        environment = {}
        while words and words[0].partition("=")[0].isupper():
            name, _, environment[name] = words.pop(0).partition("=")
        words = [part for word in words for part in (START if word == "…" else (word,))]
        return {"words": words, "environment": environment}


FILES = {
    "prompts.jsonl": '{"text": "Hello"}\n',
    "row.jsonl": '{"text": "Hello"}\n{"text": 5}\n',
    "words.jsonl": "hello world\n",
    "cut.jsonl": '{"text": "Hello"}\n{"text"\n',
    "empty.jsonl": "",
    "other.jsonl": '{"question": "Hello?"}\n',
    "notes.txt": "Hello\n",
    "good.yaml": "benchmark:\n  models: m\n",
    "typo.yaml": "benchmark:\n  endpoint: {urls: [http://h], tpye: chat}\n  profiling: {type: concurrency, requests: 3}\n",
    "type.yaml": "benchmark:\n  profiling:\n    type: concurency\n    requests: 3\n",
    "value.yaml": "benchmark:\n  profiling: {type: poisson, rate: fast, requests: 3}\n",
    "tab.yaml": "benchmark:\n\tendpoint: {}\n",
    "flat.yaml": "model: m\nbenchmark: {}\n",
    "empty.yaml": "",
    "list.yaml": "[1, 2]\n",
}
"""Files that the lines name, and ``empty``, a directory."""
GROUPS: dict[str, tuple[Line, ...]] = {
    "Commands and options": (
        Line("profil", 2, ("'profil'", "did you mean profile?")),
        Line("analyze", 2, ("--sweep-range", "--sweep-list", "which values")),
        Line("analyze --sweep-range 1:2 --sweep-list 3", 1, ("--sweep-range and --sweep-list exclude each other",)),
        Line("config", 2, ("needs a word", "init, validate, expand, schema")),
        Line("create-template --bogus", 2, ("--bogus", "aiperf create-template --help")),
        Line("speed-bench-report", 2, ("needs a directory", "one that holds them")),
        Line("help", 2, ("'help'", "aiperf --help")),
        Line("--verson", 2, ("--verson", "did you mean --version?")),
        Line("--model m", 2, ("--model", "aiperf profile --help")),
        Line("profile", 1, ("no model is given", "--model")),
        Line("profile … --image-widht-mean 64", 2, ("--image-widht-mean", "did you mean --image-width-mean")),
        Line("profile … --concurency 3", 2, ("--concurency", "did you mean --concurrency?")),
        Line("profile … --hepl", 2, ("--hepl", "did you mean --help?")),
        Line("profile … -c 3", 2, ("-c", "use --concurrency")),
        Line("profile … --qps 5", 2, ("--qps", "use --request-rate")),
        Line("profile … --endpoint-type vllm", 2, ("'vllm'", "use chat, completions or responses")),
        Line("profile … --idle-cap 5", 2, ("--idle-cap", "aiperf profile --help")),
        Line("profile … -concurrency 3", 2, ("-concurrency", "did you mean --concurrency?")),
        Line("profile … -vvv", 2, ("-vvv", "did you mean -vv?")),
        Line("profile … --api-key sk key", 2, ("--api-key", "one value", "quotation marks")),
        Line("profile … --service-kind openai", 2, ("--service-kind", "--endpoint-type")),
        Line("profile … --max-threads 3", 2, ("--max-threads", "--workers-max")),
        Line("profile … --wandb-tag a", 1, ("--wandb-tag", "add --wandb-project")),
        Line("profile … stray", 2, ("'stray'", "aiperf profile --help")),
        Line("profile … —concurrency 3", 2, ("'—concurrency'", "begins with --, not with —")),
        Line("profile … -- --concurrency 3", 2, ("'--'", "drop it")),
        Line("profile … --concurrency", 2, ("--concurrency", "needs a value")),
        Line("profile … --concurrency 1 --concurrency 2", 2, ("--concurrency", "multiple times", "keep one")),
        Line("profile … --streaming false", 2, ("--streaming", "'false'", "--no-streaming")),
    ),
    "Values": (
        Line("profile … --concurrency 0", 2, ("--concurrency", "0", "at least 1")),
        Line("profile … --concurrency 2.5", 2, ("--concurrency", "'2.5'", "whole number")),
        Line("profile … --warmup-concurrency 1,2,4", 2, ("--warmup-concurrency", "'1,2,4'", "a run for each")),
        Line("profile … --request-count many", 2, ("--request-count", "'many'")),
        Line("profile … --request-rate fast", 2, ("--request-rate", "'fast'")),
        Line("profile … --request-rate -3", 2, ("--request-rate", "-3", "more than 0")),
        Line("profile … --request-rate inf", 2, ("--request-rate", "inf", "finite")),
        Line("profile … --benchmark-duration 5x", 2, ("--benchmark-duration", "'5x'", "5m")),
        Line("profile … --request-cancellation-rate 120", 2, ("--request-cancellation-rate", "120", "at most 100")),
        Line("profile … --failed-request-threshold 5", 2, ("--failed-request-threshold", "5", "at most 1")),
        Line("profile … --random-seed pi", 2, ("--random-seed", "'pi'")),
        Line("profile … --percentiles 0", 2, ("--percentiles", "0 is out of range", "above 0 and below 100")),
        Line("profile … --percentiles 50,101", 2, ("--percentiles", "101 is out of range", "above 0 and below 100")),
        Line("profile … --percentiles 50,90,50", 2, ("--percentiles", "50 is given twice", "once")),
        Line("profile … --percentiles fast", 2, ("--percentiles", "'fast'", "such as 50,90,99.9")),
        Line("profile … --columns mean", 2, ("--columns", "'mean'", "did you mean avg?")),
        Line("profile … --columns rate", 2, ("--columns", "'rate'", "avg, min, max, sum, std, count")),
        Line("profile … --percentile-metrics ttft", 2, ("--percentile-metrics", "--percentiles 50,90,99.9")),
        Line("profile … --isl ten", 2, ("--isl", "'ten'")),
        Line("profile … --osl 0", 2, ("--osl", "0", "at least 1")),
        Line("profile … --goodput ttft", 2, ("--goodput", "'ttft'", "TAG:NUMBER")),
        Line("profile … --goodput request_latency=200", 2, ("--goodput", "'request_latency=200'", "TAG:NUMBER")),
        Line("profile … --goodput request_latency:1 request_latency:2", 2, ("--goodput", "request_latency", "twice")),
        Line("profile … --goodput ttft:fast", 2, ("--goodput", "'fast'", "TAG:NUMBER")),
        Line("profile … --request-count 1 --goodput tfft:200", 2, ("--goodput", "'tfft'", "time_to_first_token")),
        Line("profile … --request-count 1 --goodput ttft:200", 1, ("--goodput", "add --streaming")),
        Line("profile … --header nocolon", 1, ("--header", "NAME:VALUE", "X-Team")),
        Line("profile … -H 'bad name: x'", 1, ("-H", "'bad name'")),
        Line("profile … --extra-inputs temperature", 1, ("--extra-inputs", "'temperature'", "temperature:0.7")),
        Line("profile … --extra-inputs temperature=0.5", 1, ("--extra-inputs", "'temperature=0.5'", "write temperature:0.5")),
        Line("profile … --sequence-distribution abc", 2, ("--sequence-distribution", "'abc'", "ISL,OSL:PERCENT")),
        Line("profile … --conversation-turn-mean 0", 2, ("--conversation-turn-mean", "0", "at least 1")),
        Line("profile … --audio-length-mean long", 2, ("--audio-length-mean", "'long'", "30s")),
        Line("profile … --request-count 1 --endpoint-type template --payload-template '{\"api_key\": \"sk-12345678\"}'", 1,
            ("--payload-template", "api_key", "--extra-inputs api_key:VALUE")),
        Line("profile … --extra-inputs '{bad'", 1, ("--extra-inputs", "'{bad'", "JSON", "temperature:0.7")),
        Line("profile … --api-key ''", 1, ("--api-key", "empty", "variable")),
        Line("profile -m '' --tokenizer builtin", 1, ("-m", "empty")),
        Line("profile … --input-file ''", 2, ("--input-file", "empty", "variable")),
    ),
    "Names to choose from": (
        Line("profile … --endpoint-type chatt", 2, ("--endpoint-type", "'chatt'", "did you mean 'chat'?")),
        Line("profile … --request-rate 5 --arrival-pattern possion", 2, ("--arrival-pattern", "'possion'", "'poisson'")),
        Line("profile … --url-strategy roundrobin", 2, ("--url-strategy", "'roundrobin'", "'round_robin'")),
        Line("profile … --transport quic", 2, ("--transport", "'quic'", "installed: ")),
        Line("profile … --ui tui", 2, ("--ui", "'tui'", "installed: ")),
        Line("profile … --silent", 2, ("--silent", "use --quiet")),
        Line("profile … -q --ui simple", 1, ("--ui simple and -q exclude each other", "drop --ui simple, or -q")),
        Line("profile … -q -v", 1, ("-v and -q exclude each other", "keep -v and drop -q")),
        Line("profile … --export-level everything", 2, ("--export-level", "'everything'", "records")),
        Line("profile … --public-dataset nothing", 2, ("--public-dataset", "'nothing'", "--input-file")),
        Line("profile … --accuracy-grader nothing", 2, ("--accuracy-grader", "'nothing'", "installed: ")),
        Line("profile … --disable-plugin endpoints:chatt", 2, ("--disable-plugin", "'chatt'", "'chat'")),
        Line("profile … --disable-plugin chat", 2, ("--disable-plugin", "'chat'", "endpoints:chat")),
        Line("profile … --plugin endpoints:chat=nobody", 2, ("--plugin", "nobody", "aiperf-endpoint-chat")),
        Line("profile … --plugin endpoints:chat", 2, ("--plugin", "'endpoints:chat'", "endpoints:chat=")),
    ),
    "Options together": (
        Line("profile … --num-sessions 4 --request-count 4", 1, ("--request-count", "--num-sessions", "keep")),
        Line("profile … --arrival-pattern constant", 1, ("--arrival-pattern", "--request-rate", "drop")),
        Line("profile … --benchmark-grace-period 3", 1, ("--benchmark-grace-period", "--benchmark-duration")),
        Line("profile … --prefill-concurrency 3", 1, ("--prefill-concurrency", "--streaming", "drop")),
        Line("profile … --num-users 5", 1, ("--num-users", "--user-centric-rate")),
        Line("profile … --fixed-schedule", 1, ("--fixed-schedule", "--input-file")),
        Line("profile … --warmup-concurrency 2", 1, ("--warmup-concurrency", "--warmup-request-count", "drop")),
        Line("profile … --workers 3 --workers-max 2", 1, ("--workers", "--workers-max", "keep")),
        Line("profile … --request-cancellation-delay 3", 1, ("--request-cancellation-delay", "--request-cancellation-rate")),
        Line("profile … --input-file prompts.jsonl --isl 5 --request-count 1", 1, ("--isl", "'synthetic'", "drop --isl")),
        Line("profile … --num-prefix-prompts 3", 1, ("--num-prefix-prompts", "--prefix-prompt-length", "drop")),
        Line("profile … --reset-kv-cache-path /flush", 1, ("--reset-kv-cache-path", "add --reset-kv-cache, or drop")),
        Line("profile … --scheduling-mode user_centric --request-count 1", 1, ("--scheduling-mode", "add --user-centric-rate")),
        Line("profile … --concurrency 8 --request-count 4", 1, ("--concurrency 8", "--request-count 4", "lower")),
        Line("profile … --tokenizer-revision v1 --request-count 1", 1, ("--tokenizer-revision", "'builtin'", "drop")),
        Line("profile … --endpoint-type completions --image-width-mean 64 --request-count 1", 1,
            ("--image-width-mean", "endpoint type", "drop")),
        Line("profile … --request-content-type xml", 1, ("--request-content-type", "application/json", "drop")),
    ),
    "Server and tokenizer": (
        Line("profile … -u ftp://h", 1, ("-u", "'ftp://h'", "http://host:port")),
        Line("profile … -u http://", 1, ("-u", "'http://'", "no host")),
        Line("profile … -u http://h:99999", 1, ("-u", "'http://h:99999'", "0-65535")),
        Line("profile … -u 'http://h 1:8000'", 1, ("-u", "white space")),
        Line("profile … -u http://user:secret@h", 1, ("-u", "user name", "--api-key")),
        Line("profile … -u http://h:80=x", 1, ("-u", "a weight is a number")),
        Line("profile … -u http://a=2 http://b=1", 1, ("-u", "weights", "weighted")),
        Line("profile … -u http://a=0 --url-strategy weighted", 1, ("-u", "the weight 0", "above 0")),
        Line("profile … --endpoint v1/chat", 1, ("--endpoint", "'v1/chat'", "/v1/chat")),
        Line("profile … --ca-file no.pem -u https://h", 1, ("--ca-file", "no.pem", "PEM")),
        Line("profile … --client-key notes.txt -u https://h", 1, ("--client-key", "--client-cert")),
        Line("profile … --api-key-file no.key", 1, ("--api-key-file", "no.key")),
        Line("AIPERF_HTTP_IP_VERSION=5 profile …", 1, ("AIPERF_HTTP_IP_VERSION", "'5'", "4, 6 or auto")),
        Line("AIPERF_SERVICE_START_TIMEOUT=abc profile …", 1, ("AIPERF_SERVICE_START_TIMEOUT", "'abc'", "100000")),
        Line("AIPERF_HTTP_TRUST_ENV=1 HTTP_PROXY=http://proxy:3128 NO_PROXY=x profile … -u http://h --transport kernel", 1,
            ("AIPERF_HTTP_TRUST_ENV", "http://h", "--transport aiohttp")),
        Line("HF_HUB_OFFLINE=1 profile -m m --tokenizer bulitin --request-count 1", 1, ("'bulitin'", "--tokenizer builtin")),
        Line("HF_HUB_OFFLINE=1 profile -m team/model --request-count 1", 1, ("'team/model'", "OFFLINE", "--tokenizer builtin")),
        Line("profile -m m --tokenizer ./nothing --request-count 1", 1, ("'./nothing'", "--tokenizer builtin")),
    ),
    "Networks": (
        Line("profile … -u grpc://h", 1, ("-u", "'grpc://h'", "chat", "--endpoint-type dynamic_grpc or kserve")),
        Line("profile … -u unix://run/server.sock", 1, ("-u", "'unix://run/server.sock'", "three slashes")),
        Line("profile … -u unix:///usr", 1, ("-u", "a directory, not a socket", "listens")),
        Line("profile … -u 'unix:///run/s?x=1'", 1, ("-u", "a query", "percent-encode")),
        Line(f"profile … -u unix:///{'deep/' * 22}s", 1, ("-u", "112 bytes", "at most 107")),
        Line("profile … --endpoint-type kserve -u grpc://h http://h --request-count 1", 1,
            ("-u", "grpc and http", "one scheme")),
        Line("profile … --endpoint-type kserve --transport aiohttp --request-count 1", 1,
            ("the scheme grpc", "'aiohttp'", "--transport")),
        Line("profile … --endpoint-type kserve -u unix:///run/s --transport kernel --request-count 1", 1,
            ("'kserve' to unix URLs", "'http2'", "drop --transport")),
        Line("profile … --streams-per-connection 0", 2, ("--streams-per-connection", "at least 1")),
        Line("profile … --streams-per-connection 5 --request-count 1", 1, ("--streams-per-connection", "'http2'", "drop")),
        Line("profile -m m --endpoint-type dynamic_grpc --grpc-method Echo --request-count 1", 2,
            ("--grpc-method", "package.Service/Method")),
        Line("profile … --grpc-allow-commands --request-count 1", 1, ("--grpc-allow-commands", "'grpc_messages'", "drop")),
        Line("profile … --server-control-url grpc://h", 1, ("--server-control-url", "'grpc://h'", "http://host:port")),
        Line("profile … --endpoint-type kserve --reset-kv-cache --request-count 1", 1,
            ("--reset-kv-cache", "--server-control-url http://host:port")),
        Line("AIPERF_HTTP_TRUST_ENV=1 ALL_PROXY=socks5://proxy NO_PROXY=x profile … -u http://h --transport http2", 1,
            ("AIPERF_HTTP_TRUST_ENV", "'http2'", "--transport aiohttp")),
        Line("AIPERF_HTTP_VIDEO_POLL_INTERVAL=often profile … --endpoint-type video_generation --request-count 1", 1,
            ("AIPERF_HTTP_VIDEO_POLL_INTERVAL", "'often'", "0.001 to 10")),
    ),
    "Files": (
        Line("profile … --input-file nothing.jsonl", 1, ("--input-file", "nothing.jsonl", "check the path")),
        Line("profile … --input-file empty.jsonl", 1, ("--input-file", "empty.jsonl", "at least one row")),
        Line("profile … --input-file other.jsonl", 1, ("--input-file", "question", "--custom-dataset-type")),
        Line("profile … --input-file row.jsonl --request-count 2", 1, ("row.jsonl:2", "--input-file", "text is 5")),
        Line("analyze-trace words.jsonl", 1, ("words.jsonl:1: no JSON", "one JSON object per line")),
        Line("profile … --input-file cut.jsonl --request-count 2", 1,
            ("cut.jsonl:2", "--input-file", "one JSON object per line")),
        Line("profile … --custom-dataset-type single_turn", 1, ("--custom-dataset-type", "--input-file")),
        Line("profile … --input-file prompts.jsonl --fixed-schedule", 1, ("--fixed-schedule", "'timestamp'")),
        Line("profile … --artifact-dir notes.txt --request-count 1", 1, ("--artifact-dir", "notes.txt", "it is a file")),
        Line("profile … --config ''", 2, ("--config", "empty", "variable")),
        Line("profile … --config good.yaml --config good.yaml", 2, ("--config", "multiple times", "keep one")),
        Line("profile … --config nothing.yaml", 1, ("--config", "nothing.yaml", "YAML")),
        Line("profile … --config empty.yaml", 1, ("empty.yaml", "benchmark:")),
        Line("profile … --config list.yaml", 1, ("list.yaml", "benchmark:")),
        Line("profile … --config tab.yaml", 1, ("tab.yaml:2", "spaces")),
        Line("profile … --config flat.yaml", 2, ("model (flat.yaml:1)", "below benchmark:")),
        Line("profile … --config typo.yaml", 2, ("benchmark.endpoint.tpye (typo.yaml:2)", "did you mean type?")),
        Line("profile … --config type.yaml", 2, ("benchmark.profiling.type (type.yaml:3)", "did you mean concurrency?")),
        Line("profile … --config value.yaml", 2, ("benchmark.profiling.rate (value.yaml:2)", "'fast'")),
    ),
    "Other commands": (
        Line("report", 2, ("DIR", "aiperf report --help")),
        Line("report nowhere", 1, ("nowhere", "directory of a run")),
        Line("report empty", 1, ("empty", "directory of a run")),
        Line("report empty --json --output there", 2, ("--json", "--output", "drop one")),
        Line("plot nowhere", 1, ("nowhere", "directory of a run")),
        Line("plot empty --format gif", 2, ("--format", "'gif'", "svg")),
        Line("plot empty --only nothing", 2, ("--only", "'nothing'", "installed: ")),
        Line("validate nowhere", 1, ("nowhere", "directory of a run")),
        Line("validate dataset", 2, ("validate dataset", "FILE")),
        Line("validate dataset nothing.jsonl", 1, ("nothing.jsonl", "check the path")),
        Line("validate prompts.jsonl", 1, ("prompts.jsonl", "directory of a run")),
        Line("plugins endpoins", 2, ("'endpoins'", "did you mean endpoints?")),
        Line("plugins endpoints chatt", 2, ("'chatt'", "'chat'")),
        Line("plugins endpoints --markdown --json", 2, ("--markdown", "--json", "drop one")),
        Line("plugins new endpoint 'Bad Name!'", 2, ("'Bad Name!'", "my-dialect")),
        Line("simulate --port 99999", 2, ("--port", "99999", "65535")),
        Line("simulate --fault explode", 2, ("--fault", "'explode'", "fail=STATUS")),
        Line("simulate --freeze-every 3", 1, ("--freeze-every", "--freeze-for")),
        Line("simulate --host 203.0.113.7", 1, ("203.0.113.7", "an address of this machine")),
        Line("completion tcsh", 2, ("'tcsh'", "bash")),
    ),
}  # fmt: skip
LINES = tuple(line for lines in GROUPS.values() for line in lines)


def told(folder: Path) -> list[Did]:
    """What the program does with each of the lines, in a *folder* with the files."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    given = [line.given() for line in LINES]
    for each in given:
        each["environment"]["HF_HOME"] = str(folder / "cache")
    return run(given, folder)


def sentences(did: Did) -> list[str]:
    """The lines of the message: the error, and its hints.  What the log says before is left out."""
    lines = did.err.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("error: ")), len(lines))
    return lines[first:]
