"""Which reader a transport takes, and what it says of it."""

from __future__ import annotations

import logging

import aiperf_reader
import pytest
from aiperf.sdk.errors import ConfigError
from aiperf_reader import ReaderError
from aiperf_transport_sockets.poller import chosen_reader

WHY = "it was installed where there is no C compiler, or no headers of Python"


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no compiled file."""
    monkeypatch.setattr(aiperf_reader, "_missing", WHY)


@pytest.mark.parametrize("value", [None, "", " AUTO "])
def test_without_a_word_the_thread_reads(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIPERF_READER") if value is None else monkeypatch.setenv("AIPERF_READER", value)
    try:
        aiperf_reader.SocketReader.opened().close()
    except ReaderError as error:
        pytest.skip(str(error))
    reader = chosen_reader()
    assert reader is not None
    reader.close()


@pytest.mark.usefixtures("missing")
def test_without_a_compiled_file_the_loop_reads_and_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AIPERF_READER")
    with caplog.at_level(logging.INFO, "aiperf"):
        assert chosen_reader() is None
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        "the workers' loops read the sockets, so that more chunks merge on a busy machine:"
        f" aiperf-reader has no compiled file for this machine: {WHY}"
    )


@pytest.mark.usefixtures("missing")
def test_a_thread_that_is_demanded_and_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_READER", "compiled")
    with pytest.raises(ConfigError) as caught:
        chosen_reader()
    assert str(caught.value) == (
        f"AIPERF_READER is compiled, and aiperf-reader has no compiled file for this machine: {WHY};"
        " AIPERF_READER=python reads without it"
    )
    monkeypatch.setenv("AIPERF_READER", "python")
    assert chosen_reader() is None


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_READER", "fast")
    with pytest.raises(ConfigError, match="AIPERF_READER is 'fast'; it must be auto, compiled or python"):
        chosen_reader()
