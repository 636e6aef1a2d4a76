"""A form out: a title, the run's extras and the row's apart, and a picture as a file; one field of the answer back."""

from __future__ import annotations

import msgspec
from aiperf.sdk.endpoint import Capabilities, Endpoint, Prompt, in_band_error, unreadable
from aiperf.sdk.media import media_bytes
from aiperf.sdk.model import Delta, HttpRequest, Turn
from aiperf.sdk.multipart import FilePart, multipart

from acme_gallery.options import PostcardOptions


class Postcard(Endpoint[PostcardOptions]):
    capabilities = Capabilities(
        path="/postcards", produces_tokens=True, tokenizes_input=True, media_in=("image",), takes=("field",), inline_media=True
    )

    def encode(self, turn: Turn) -> HttpRequest:
        pictures = map(media_bytes, turn.media)
        files = [FilePart("picture", "kite.png", content, content_type) for content_type, content in pictures]
        title = turn.texts_of("title") or turn.texts
        fields = {"title": title, "model": turn.model, "run": turn.run_extra, "row": turn.row_extra}
        form = multipart(fields, files)
        return HttpRequest(self.path(streaming=False), form.body, content_type=form.content_type)

    def prompt_of(self, request: HttpRequest) -> Prompt:
        """The title, and a token for every picture."""
        title = request.body.partition(b'name="title"\r\n\r\n')[2].partition(b"\r\n")[0]
        return Prompt(msgspec.json.decode(title), [0] * request.body.count(b"filename="))

    def decode(self, event: bytes) -> Delta | None:
        wrong = in_band_error(event)
        if wrong is not None:
            raise wrong
        try:
            answer = msgspec.json.decode(event, type=dict[str, str])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unreadable("postcard", event, error) from error
        field = self.options.field if self.options is not None else "small"
        return Delta(text=answer.get(field, ""))
