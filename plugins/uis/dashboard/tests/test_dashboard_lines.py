"""Lines, tables, curves, and foreign text as it is shown."""

from __future__ import annotations

import pytest
from aiperf_ui_dashboard.layout import PANES, arranged
from aiperf_ui_dashboard.lines import bar, cells, curve, fitted, folded, literal, padded, plain, shortened, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/bold] \\n", "plain [bold]text[/bold] \\n"),
        ("a\x1b[31mb\x07\r\n\t", r"a\x1b[31mb\x07\r\n\t"),
        ("\u202eabc\u2066\u200f\u200b", r"\u202eabc\u2066\u200f\u200b"),
        ("\x9b31m\u2028\udc80", r"\x9b31m\u2028\udc80"),
        ("漢字 é ≤ 🦜", "漢字 é ≤ 🦜"),
        ("x" * 600, "x" * 500 + "…"),
    ],
)
def test_foreign_text_is_shown_literally(text: str, shown: str) -> None:
    assert literal(text) == shown


@pytest.mark.parametrize("width", range(12))
def test_text_is_cut_to_the_cells_that_there_are(width: int) -> None:
    for text in ("abcdefghijklm", "漢字漢字漢字漢字", "a漢b"):
        assert cells(shortened(text, width)) <= width
        assert cells(padded(text, width)) == width
        assert cells(plain(fitted((("ab", ""), (text, "bold")), width))) <= width


def test_long_text_goes_on_below_between_words() -> None:
    assert folded("one two three four", 9, "  ") == ["one two", "  three", "  four"]
    assert folded("abcdefghijkl", 5, "") == ["abcde", "fghij", "kl"]
    assert folded("short", 9, "  ") == ["short"]


def test_a_table_leaves_out_columns_that_do_not_fit() -> None:
    rows = [[("a name that is long", ""), ("1", ""), ("22", "")], [("b", ""), ("333", ""), ("4", "")]]
    wide, narrow = table(("name", "x", "y"), rows, 40), table(("name", "x", "y"), rows, 19)
    assert [plain(line) for line in wide] == [
        "name                   x   y", "a name that is long    1  22", "b                    333   4",
    ]  # fmt: skip
    assert [plain(line) for line in narrow] == ["name              x", "a name that i…    1", "b               333"]


@pytest.mark.parametrize(("unicode", "drawn"), [(True, "  ▂▄ █"), (False, "  := @")])
def test_a_curve_goes_from_zero_to_its_largest_value(unicode: bool, drawn: str) -> None:
    assert curve([0.0, 2.0, 4.0, None, 8.0], 6, 1, unicode=unicode) == [drawn.rjust(6)]


def test_a_curve_of_two_lines_fills_the_lower_one_first() -> None:
    assert curve([1.0, 2.0], 2, 2, unicode=True) == [" █", "██"]
    assert curve([None, 0.0], 2, 1, unicode=True) == ["  "]


def test_a_bar_has_its_width_whatever_the_share() -> None:
    assert [plain(bar(share, 4, unicode=False)) for share in (-1, 0, 0.5, 1, 7)] == ["----", "----", "##--", "####", "####"]


@pytest.mark.parametrize("view", ["overview", "metrics", "log", "keys"])
@pytest.mark.parametrize("log", [True, False])
def test_panes_cover_every_screen_and_never_overlap(view: str, log: bool) -> None:
    for width in (1, 10, 59, 60, 80, 119, 120, 200, 400):
        for height in (1, 2, 3, 5, 6, 8, 11, 14, 15, 20, 24, 29, 30, 36, 60, 100):
            places = arranged(view, width, height, log=log, metrics=20)
            assert set(places) <= set(PANES)
            taken = [(x, y) for each in places.values() for y in range(each.y, each.y + each.height)
                for x in range(each.x, each.x + each.width)]  # fmt: skip
            gap = 2 * (height - 3) if "goodput" in places and "metrics" in places else 0
            below = places["log"].height if gap and "log" in places else 0
            assert len(set(taken)) == len(taken) == width * height - gap + 2 * below, (width, height)
            assert all(0 <= x < width and 0 <= y < height for x, y in taken)
