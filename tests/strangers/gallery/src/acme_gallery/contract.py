"""Material for the contracts of both plugins."""

from __future__ import annotations

from aiperf.sdk.dataset import Dataset, DatasetContext
from aiperf.sdk.endpoint import Capabilities
from aiperf.testing import DatasetContract, EndpointContract

from acme_gallery import Gallery
from acme_gallery.options import PostcardOptions
from acme_gallery.postcard import Postcard


class GalleryContract(DatasetContract):
    def make(self, entries: int, seed: int) -> Dataset:
        return Gallery(None, DatasetContext(entries, seed, True, None, Capabilities(multi_turn=True, verbatim=True)))


class PostcardContract(EndpointContract):
    endpoint = Postcard(PostcardOptions(field="large"))
    transcript = (b'{"small":"a","large":"Greetings!"}',)
    answer = "Greetings!"
