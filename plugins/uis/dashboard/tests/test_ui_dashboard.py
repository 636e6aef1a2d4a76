"""The dashboard's contract, and its screen by keys at each size."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from aiperf.sdk.snapshot import LiveSeries
from aiperf.testing import UiContract
from aiperf_ui_dashboard import Dashboard
from aiperf_ui_dashboard.board import TITLES, Board
from aiperf_ui_dashboard.testing import CANARY, LITERAL, LOG, REASON, picture, snapshot
from msgspec.structs import replace
from textual.geometry import Region
from textual.pilot import Pilot

Steps = Callable[[Pilot[None], Board], Awaitable[None]]
SIZES = [(60, 15), (80, 24), (200, 60)]
PANES = {
    "2": ("Progress", "4,000 of 24,000"), "3": ("Metrics", "phase so far"), "4": ("Workers", "high load"),
    "5": ("Telemetry: server_metrics", "last value"), "6": ("Log", "line 39 of the log"), "7": ("Failures", "503"),
    "8": ("Goodput and measurement", "ITL ≤ 20 ms"), "9": ("Curves", "TTFT p99"), "question_mark": ("Keys", "overview"),
}  # fmt: skip


class TestItKeepsTheContract(UiContract):
    ui = Dashboard


def on_board(size: tuple[int, int], steps: Steps, shown: int = 200) -> list[str]:
    """What a board asked of the run, that showed *shown* snapshots and a log, and went through *steps*."""
    asked: list[str] = []

    async def run() -> None:
        board = Board(asked.append)
        async with board.run_test(size=size) as pilot:
            board.next_run(f"{CANARY}  chat  http://127.0.0.1:8000")
            for line in LOG:
                board.log_line(line)
            for number in range(1, shown + 1):
                board.take(snapshot(number))
            await pilot.pause()
            await steps(pilot, board)

    asyncio.run(run())
    return asked


def screen(board: Board) -> str:
    """The text on the screen, from its picture."""
    root = ElementTree.fromstring(board.export_screenshot())
    texts = [node for node in root.iter("{http://www.w3.org/2000/svg}text") if node.get("y")]
    lines: dict[float, list[tuple[float, str]]] = {}
    for node in texts:
        lines.setdefault(float(node.get("y", 0)), []).append((float(node.get("x", 0)), "".join(node.itertext())))
    return "\n".join("".join(text for _, text in sorted(pieces)) for _, pieces in sorted(lines.items())).replace("\xa0", " ")


def test_it_may_begin_with_the_telemetry_of_gpus() -> None:
    """As ``--gpu-telemetry dashboard`` asks; the GPUs' numbers come later than the server's."""
    watts = LiveSeries("gpu_dcgm", "nvidia_power_usage", 312.5, "W", {"gpu": "0"}, "http://node:9400/metrics", "gauge")

    async def run() -> None:
        board = Board(lambda what: None)
        async with board.run_test(size=(120, 40)) as pilot:
            board.open_telemetry("gpu_")
            board.next_run("m  chat  http://127.0.0.1:8000")
            board.take(snapshot(1))
            await pilot.pause()
            assert "Telemetry: server_metrics" in screen(board)
            later = snapshot(2)
            board.take(replace(later, series=(*later.series, watts)))
            await pilot.pause()
            assert "Telemetry: gpu_dcgm" in screen(board) and "nvidia_power_usage" in screen(board)

    asyncio.run(run())


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
def test_each_key_shows_its_pane_and_escape_the_overview(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        for key, (title, words) in PANES.items():
            await pilot.press(key)
            await pilot.pause(0.15)
            said = screen(board)
            assert title in said and words in said, (key, said)
            await pilot.press("escape")
            said = screen(board)
            assert "Progress" in said and "Metrics" in said and "4,000 of 24,000" in said, said

    on_board(size, steps)


def test_a_wide_overview_has_all_but_workers_and_telemetry() -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        said = screen(board)
        hidden = {"4 Workers", "5 Telemetry", "Keys"}
        assert all(title in said for title in TITLES.values() if title not in hidden), said
        assert not any(f"─ {title} " in said for title in hidden)
        assert "suspect" in said and REASON[:30] in said and LITERAL[:12] in said

    on_board((200, 60), steps)


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
def test_foreign_text_is_literal_in_every_pane(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        for key in ("1", "5", "6", "7"):
            await pilot.press(key, "home")
            await pilot.pause(0.15)
            picture = board.export_screenshot()
            assert "[red]canary" in screen(board), key
            assert "<script" not in picture and "\x1b" not in picture and "\u202e" not in picture

    on_board(size, steps)


def test_the_telemetry_key_goes_through_the_sources() -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        seen = []
        for _ in range(3):
            await pilot.press("5")
            seen += re.findall(r"Telemetry: (\w+)", screen(board))
        assert seen == ["server_metrics", "acme", "server_metrics"]

    on_board((80, 24), steps)


def test_tab_goes_through_the_panes_and_arrows_scroll() -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        await pilot.press("tab", "tab")
        assert "─ 3 Metrics" in screen(board) and "TTFT (ms)" in screen(board)
        await pilot.press("down", "pagedown", "end")
        assert "Metric (unit)" in screen(board) and "TTFT (ms)" not in screen(board), "the header stays"
        await pilot.press("home", "shift+tab")
        assert "─ 2 Progress" in screen(board)

    on_board((60, 9), steps)


def test_the_first_ctrl_c_asks_to_stop_and_the_next_to_cancel() -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        await pilot.press("ctrl+c")
        assert "stopping; ^C again cancels" in screen(board)
        await pilot.press("ctrl+c")
        assert "cancelling" in screen(board)

    assert on_board((80, 24), steps) == ["stop", "cancel"]


def test_the_log_is_copied_and_hidden_by_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(Board, "copy_to_clipboard", lambda self, text: copied.append(text))

    async def steps(pilot: Pilot[None], board: Board) -> None:
        await pilot.press("l")
        assert "6 Log" not in screen(board)
        await pilot.press("l", "c", "3", "c")
        assert "6 Log" not in screen(board)

    on_board((80, 24), steps)
    assert copied[0].splitlines()[38] == f"22:00:08.123 ERROR line 38 of the log {LITERAL}"
    assert (copied[1].startswith("3 Metrics\n") and "TPS/user (tokens/s/user)" in copied[1]) or "TPS/user" in copied[1]


def test_the_picture_of_the_manual_is_the_screen() -> None:
    page = Path(__file__).parents[4] / "docs" / "dashboard.svg"
    drawn = picture(120, 36)
    assert drawn == page.read_text(), "write it again: python -m aiperf_ui_dashboard.testing picture > docs/dashboard.svg"
    assert "http" not in re.sub(r"http://(www\.w3\.org/2000/svg|127\.0\.0\.1:8000)|https://www\.textualize\.io", "", drawn)


def test_ctrl_s_writes_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def steps(pilot: Pilot[None], board: Board) -> None:
        await pilot.press("ctrl+s")
        assert "wrote " in screen(board)

    on_board((80, 24), steps)
    (picture,) = tmp_path.glob("*.svg")
    assert "4,000" in picture.read_text()


def test_only_changed_lines_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Region] = []

    async def steps(pilot: Pilot[None], board: Board) -> None:
        pane = board.query_one("#workers")
        await pilot.press("4")
        monkeypatch.setattr(pane, "refresh", lambda *regions: drawn.extend(regions))
        board.take(snapshot(200))
        board.take(snapshot(200, workers=(*snapshot(200).workers[:2], *snapshot(201).workers[2:3], *snapshot(200).workers[3:])))

    on_board((80, 24), steps)
    assert [(region.y, region.height) for region in drawn] == [(5, 1)]


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (20, 6), (59, 14), (300, 100)])
def test_any_size_is_drawn(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        for key in "1234567891":
            await pilot.press(key)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "─ 3 Metrics" in screen(board)

    on_board(size, steps, shown=3)


def test_the_log_has_the_screen_until_there_are_numbers() -> None:
    async def steps(pilot: Pilot[None], board: Board) -> None:
        await pilot.pause(0.15)
        assert "─ 6 Log" in screen(board) and "─ 3 Metrics" not in screen(board)
        board.take(snapshot(1))
        await pilot.pause()
        assert "─ 3 Metrics" in screen(board)

    on_board((80, 24), steps, shown=0)


def test_textual_is_imported_in_the_displays_process_alone() -> None:
    code = "import sys, aiperf_ui_dashboard as it; it.Dashboard(None); assert not {'textual', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
