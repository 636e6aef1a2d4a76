"""Media read during the build, and forms of multipart/form-data."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from aiperf import BadDataset, Conversation, Media, Message, Turn
from aiperf.prepare.conversations import with_inlined_media
from aiperf.sdk.media import MediaReader, inlined, media_bytes
from aiperf.sdk.multipart import FilePart, multipart

PNG = b"\x89PNG\r\n\x1a\nrest"
WAVE = b"RIFF\x04\x00\x00\x00WAVEfmt "


def uri(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


class Pictures(ThreadingHTTPServer):
    """Serves a picture under every path; ``/missing`` and ``/endless`` say what they do.  *asked*: the paths in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.together = Barrier(1)
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Pictures

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.together.wait(60)
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Type", "text/html" if self.path == "/page" else "image/tiff")
        self.end_headers()
        try:
            while self.path in ("/endless", "/trickle"):
                self.wfile.write(bytes(1 << 16 if self.path == "/endless" else 1))
        except OSError:
            return
        self.wfile.write({"/page": b"<html>", "/told": b"II*\0"}.get(self.path, PNG))

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Pictures]:
    with Pictures() as pictures:
        Thread(target=pictures.serve_forever, args=(0.01,), daemon=True).start()
        yield pictures
        pictures.shutdown()


# Reading


def test_files_become_data_uris_of_their_own_type(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(PNG)  # the bytes win over the name
    (tmp_path / "b c.wav").write_bytes(WAVE)
    (tmp_path / "d.webm").write_bytes(b"?")
    given = (
        Media("image", "a.jpg", "u"), Media("audio", (tmp_path / "b c.wav").as_uri(), seconds=2.0),
        Media("video", str(tmp_path / "d.webm")),
    )  # fmt: skip
    assert inlined(given, tmp_path) == (
        Media("image", uri("image/png", PNG), "u"), Media("audio", uri("audio/wav", WAVE), seconds=2.0),
        Media("video", uri("video/webm", b"?")),
    )  # fmt: skip


def test_inline_media_stay_as_they_are() -> None:
    given = (Media("image", "data:image/png;base64,AA=="), Media("audio", "wav,AA=="), Media("image", "", "uuid"))
    assert inlined(given) == given


def test_a_url_is_read_once_and_its_type_is_the_servers(server: Pictures) -> None:
    reader = MediaReader()
    told, sniffed = Media("image", f"{server.url}/told"), Media("image", f"{server.url}/a")
    for _ in range(2):
        values = [media.value for media in reader.inlined((told, sniffed, told))]
        assert values == [uri("image/tiff", b"II*\0"), uri("image/png", PNG), uri("image/tiff", b"II*\0")]
    assert sorted(server.asked) == ["/a", "/told"]


def test_several_are_read_at_the_same_time(server: Pictures) -> None:
    server.together = Barrier(8)  # none is answered before all are asked for
    assert len(inlined([Media("image", f"{server.url}/{i}") for i in range(8)])) == 8


def test_several_conversations_are_read_at_the_same_time(server: Pictures, tmp_path: Path) -> None:
    server.together = Barrier(3)
    (tmp_path / "before.png").write_bytes(PNG)
    local = Message("user", (), (Media("image", "before.png"),))
    given = [
        Conversation(f"c{i}", (Turn(media=(Media("image", f"{server.url}/{i}"),), before=(local,)),), opening=(local,))
        for i in range(3)
    ]
    for conversation in with_inlined_media(iter(given), str(tmp_path / "rows.jsonl")):
        (turn,) = conversation.turns
        media = [*turn.media, *turn.before[0].media, *conversation.opening[0].media]
        assert [each.value for each in media] == [uri("image/png", PNG)] * 3
    assert len(server.asked) == 3


def test_a_server_that_never_ends_is_left(server: Pictures) -> None:
    with pytest.raises(BadDataset, match=r"the image 'http://.*/trickle' can't be read: "):
        MediaReader(timeout_s=0.3).inlined((Media("image", f"{server.url}/trickle"),))


@pytest.mark.parametrize(("kind", "value", "sentence"), [
    ("image", "URL/missing", r"the image 'http://.*/missing' can't be read: .*404"),
    ("image", "URL/endless", r"the image 'http://.*/endless' has more than 1,000,000 bytes"),
    ("image", "URL/page", r"'http://.*/page' is no image, but text/html"),
    ("audio", "URL/a", r"'http://.*/a' is no audio, but image/png"),
    ("image", "nowhere.png", "the image 'nowhere.png' can't be read: there is no such file; inline data must begin with data:"),
    ("image", "a\0b", r"the image 'a\\x00b' can't be read"),
    ("image", "x" * 5000, r"the image 'x{80}…' can't be read"),
])  # fmt: skip
def test_what_cannot_be_read_is_named(server: Pictures, kind: str, value: str, sentence: str) -> None:
    with pytest.raises(BadDataset, match=sentence):
        MediaReader(most_bytes=1_000_000).inlined((Media(kind, value.replace("URL", server.url)),))


@pytest.mark.parametrize(("media", "content"), [
    (Media("image", uri("image/png", PNG)), ("image/png", PNG)),
    (Media("audio", "wav,UklG"), ("audio/wav", b"RIF")),
    (Media("image", "data:image/svg+xml,%3Csvg/%3E"), ("image/svg+xml", b"<svg/>")),
])  # fmt: skip
def test_inline_media_have_type_and_bytes(media: Media, content: tuple[str, bytes]) -> None:
    assert media_bytes(media) == content


@pytest.mark.parametrize("value", ["a.png", "https://h/a.png", "data:image/png;base64,A", ""])
def test_media_without_bytes_are_refused(value: str) -> None:
    with pytest.raises(BadDataset):
        media_bytes(Media("image", value))


# Forms


def parsed(body: bytes, content_type: str) -> list[tuple[str | None, str | None, str, bytes]]:
    """Name, file name, type and content of each part, by the parser of the standard library."""
    whole = BytesParser(policy=HTTP).parsebytes(b"Content-Type: %b\r\n\r\n%b" % (content_type.encode(), body))
    return [
        (part.get_param("name", header="content-disposition"), part.get_filename(), part.get_content_type(),
         part.get_payload(decode=True))
        for part in whole.iter_parts()
    ]  # fmt: skip


def test_a_form_has_fields_and_files_in_their_order() -> None:
    form = multipart(
        {"prompt": "Grüße\r\nto", "n": 2, "s": 0.5, "raw": True, "none": None, "list": [1, "a"]},
        [FilePart("image", "a.png", PNG, "image/png"), FilePart("image", "b.bin", b"\x00\r\n")],
    )
    assert parsed(form.body, form.content_type) == [
        ("prompt", None, "text/plain", "Grüße\r\nto".encode()), ("n", None, "text/plain", b"2"),
        ("s", None, "text/plain", b"0.5"), ("raw", None, "text/plain", b"true"), ("list", None, "text/plain", b'[1,"a"]'),
        ("image", "a.png", "image/png", PNG), ("image", "b.bin", "application/octet-stream", b"\x00\r\n"),
    ]  # fmt: skip


def test_all_forms_have_one_content_type() -> None:
    assert multipart({"a": 1}).content_type == multipart({}, [FilePart("b", "c", b"d")]).content_type


def test_content_with_the_boundary_gets_another_one() -> None:
    usual = multipart({"a": 1})
    boundary = usual.content_type.partition("boundary=")[2]
    form = multipart({}, [FilePart("b", "c", usual.body)])
    assert boundary not in form.content_type and form == multipart({}, [FilePart("b", "c", usual.body)])
    assert [part[3] for part in parsed(form.body, form.content_type)] == [usual.body]


def test_names_cannot_leave_their_quotes() -> None:
    form = multipart({}, [FilePart("f", 'a"\r\nX: 1.png', b"")])
    assert b'filename="a%22%0D%0AX: 1.png"\r\n' in form.body
