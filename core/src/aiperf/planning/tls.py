"""TLS towards the servers of a run: what is trusted, and how this client shows who it is.

Files of certificates are read here once, so that a bad file is one error instead of an error per request.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aiperf import environment
from aiperf.planning.problems import Draft
from aiperf.sdk.plan import TlsPlan

_AUTHORITY = "give the certificate of the authority that signed the server's, or the server's own"


def tls_plan(draft: Draft, urls: Sequence[str]) -> TlsPlan:
    """The plan for ``--ca-file``, ``--client-cert``, ``--client-key`` and ``--insecure``.

    *urls*: base URLs; a scheme that ends with s is one with TLS.
    """
    kernel = draft.kernel
    draft.exclusive("insecure", "ca_file", "the one doesn't check certificates, the other says which to trust")
    draft.needs("client_key", ["client_cert"], "a key belongs to a certificate")
    files: dict[str, Path | None] = {field: getattr(kernel, field) for field in ("ca_file", "client_cert", "client_key")}
    given = [field for field in (*files, "insecure") if draft.given(field)]
    if given and urls and not any(url.partition("://")[0].endswith("s") for url in urls):
        draft.warn(f"{draft.flag(given[0])} changes nothing: no URL begins with https://")
    readable = {field: path for field, path in files.items() if path is not None and _readable(draft, field, path)}
    if readable:
        _check_certificates(draft, readable)
    verify = not kernel.insecure
    if verify and kernel.ca_file is None:  # the flag wins over the variable
        with draft.collected():
            verify = environment.ssl_verify()
    return TlsPlan(verify, **{field: None if path is None else str(path.absolute()) for field, path in files.items()})


def _readable(draft: Draft, field: str, path: Path) -> bool:
    flag = draft.flag(field)
    if not path.is_file():
        draft.refuse(f"{flag}: there is no file {path}", "give the path of a PEM file")
    elif not os.access(path, os.R_OK):
        draft.refuse(f"{flag}: {path} can't be read: no permission")
    else:
        return True
    return False


def _check_certificates(draft: Draft, files: dict[str, Path]) -> None:
    """Load the files as a worker will.  *files*: the readable ones, by option."""
    import ssl

    authorities, cert, key = files.get("ca_file"), files.get("client_cert"), files.get("client_key")
    if authorities is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(authorities)
        except (ssl.SSLError, OSError):
            draft.refuse(f"{draft.flag('ca_file')}: {authorities} holds no certificates in PEM form", _AUTHORITY)
    if cert is None or (key is None and draft.kernel.client_key is not None):
        return
    try:
        # With an empty passphrase OpenSSL prompts nobody in the middle of a run.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else None
        why = reason.lower().replace("_", " ") if reason else "not PEM, or its key needs a passphrase"
        with_key = "" if key is None else f" with the key {key}"
        hints = [f"where the key is a file of its own, add {draft.flag('client_key')}"] if key is None else []
        draft.refuse(f"{draft.flag('client_cert')}: {cert} can't be used{with_key}: {why}", *hints)
