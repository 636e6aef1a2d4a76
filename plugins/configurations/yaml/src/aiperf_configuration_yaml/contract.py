"""A configuration file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import ConfigurationContract

from aiperf_configuration_yaml import Yaml


class YamlContract(ConfigurationContract):
    configuration = Yaml
    example = "benchmark:\n  models: [a, b]\n  endpoint: {streaming: true}\n  phases: {type: concurrency, requests: 7}\n"
    sets = {"models": ["a", "b"], "streaming": True, "concurrency": ["1"], "request_count": ["7"]}
    mistake = "benchmark: {modle: m}"
    cells = "sweep: {type: grid, parameters: {concurrency: [1, 2], model: [a, b]}}\nbenchmark: {profiling: {type: concurrency}}"
