"""The process of an upload to a bucket: it alone has the credentials."""

from __future__ import annotations

import msgspec
from aiperf_uploads.process_side import Teller, reason, serve

from aiperf_exporter_upload.jobs import UploadJob

_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
_EXTRAS = {"s3fs": "pip install 'aiperf-suite[s3]'"}
_MOST_FAILURES = 3
"""Files that fail one after the other; the receiver takes none then, and the rest is not tried."""


def work(message: bytes, teller: Teller) -> None:
    from fsspec.core import url_to_fs

    job = msgspec.json.decode(message, type=UploadJob)
    scheme = job.url.partition("://")[0]
    try:
        system, root = url_to_fs(job.url)
    except ImportError as error:
        package = _PACKAGES.get(scheme, f"for {scheme}://")
        teller.left(None, f"it needs the package {package}: {_EXTRAS.get(package, f'pip install {package}')} ({reason(error)})")
        return
    except ValueError:
        teller.left(None, f"there is no file system {scheme}://: use s3://, gs:// or another one of fsspec")
        return
    root = root.rstrip("/")
    failures, all_there = 0, True
    for place, (path, name) in enumerate((*job.files, *job.markers)):
        if place >= len(job.files) and not all_there:
            teller.left(name, "it says that all files are there, and they are not")
            continue
        if failures >= _MOST_FAILURES:
            teller.left(name, f"it was not tried behind {_MOST_FAILURES} failures")
            continue
        target = f"{root}/{name}"
        try:
            if scheme in ("file", "local"):
                system.makedirs(target.rpartition("/")[0], exist_ok=True)
            system.put_file(path, target)
        except Exception as error:  # noqa: BLE001  # each file system has errors of its own
            teller.left(name, error)
            failures, all_there = failures + 1, False
        else:
            teller.sent(name)
            failures = 0


if __name__ == "__main__":
    serve(work)
