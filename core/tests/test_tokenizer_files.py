"""Files of tokenizers for other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf.errors import BadTokenizer
from aiperf.sdk.tokenizer import files


class Named:
    name = "mine"

    def __init__(self, *names: str) -> None:
        self._names = names

    def files(self) -> dict[str, Path]:
        return {name: Path("here", name) for name in self._names}


class Packaged:
    name = "packaged"


def test_files_have_the_names_that_the_tokenizer_gives_them() -> None:
    mine: Any = Named("a.json", ".b")
    packaged: Any = Packaged()
    assert files(mine) == {"a.json": Path("here/a.json"), ".b": Path("here/.b")}
    assert files(packaged) == {}


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/b", "/a", "a\0"])
def test_a_name_of_no_file_in_a_directory_is_refused(name: str) -> None:
    mine: Any = Named("good.json", name)
    with pytest.raises(BadTokenizer, match="the tokenizer 'mine' names files that are in no one directory") as refused:
        files(mine)
    assert repr(name) in str(refused.value) and "good.json" not in str(refused.value)
