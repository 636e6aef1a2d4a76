"""Which variables of the environment a child process gets."""

import pytest
from aiperf import environment

VARIABLES = {
    "WANDB_API_KEY": "wandb-key-1", "AWS_SECRET_ACCESS_KEY": "aws-key-1", "HTTPS_PROXY": "http://user:proxy-word@host:9",
    "AIPERF_API_KEY": "own-key-1", "LANG": "C",
}  # fmt: skip


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    for name in environment.os.environ:
        monkeypatch.delenv(name)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def test_a_process_gets_no_key_of_another_program(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert environment.for_children() == {"LANG": "C"}


def test_a_process_that_logs_in_elsewhere_gets_all_but_the_own_key(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert environment.for_children(secrets=True) == {name: VARIABLES[name] for name in VARIABLES if name != "AIPERF_API_KEY"}


def test_the_texts_of_secrets_are_values_and_passwords():
    found = environment.secret_texts()
    assert set(found) == {"wandb-key-1", "aws-key-1", "own-key-1", "proxy-word"}
    assert found == sorted(found, key=len, reverse=True), "a secret that holds another one is replaced first"
