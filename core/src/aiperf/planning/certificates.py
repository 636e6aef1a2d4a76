"""The TLS options of a plan: files are read here once, so that a bad file is one error instead of an error per request."""

from __future__ import annotations

import os
from pathlib import Path

from aiperf import environment
from aiperf.planning.problems import Problems
from aiperf.sdk.plan import TlsPlan


def tls_plan(problems: Problems) -> TlsPlan:
    """The plan for ``--ca-file``, ``--client-cert``, ``--client-key`` and ``--insecure``."""
    kernel = problems.kernel
    problems.exclusive("insecure", "ca_file", "the one doesn't check certificates, the other says which to trust")
    problems.needs("client_key", ["client_cert"], "a key belongs to a certificate")
    files: dict[str, Path | None] = {field: getattr(kernel, field) for field in ("ca_file", "client_cert", "client_key")}
    given = [field for field in (*files, "insecure") if problems.given(field)]
    if given and not any(url.startswith("https://") for url in kernel.urls):
        problems.warn(f"{problems.flag(given[0])} changes nothing: no URL begins with https://")
    readable = {field: path for field, path in files.items() if path is not None and _readable(problems, field, path)}
    if "ca_file" in readable:
        _check_authorities(problems, readable["ca_file"])
    if "client_cert" in readable and (kernel.client_key is None or "client_key" in readable):
        _check_client(problems, readable["client_cert"], readable.get("client_key"))
    verify = not kernel.insecure
    if verify and kernel.ca_file is None:  # the flag wins over the variable
        with problems.collected():
            verify = environment.ssl_verify()
    return TlsPlan(verify, **{field: None if path is None else str(path.absolute()) for field, path in files.items()})


def _readable(problems: Problems, field: str, path: Path) -> bool:
    flag = problems.flag(field)
    if not path.is_file():
        problems.refuse(f"{flag}: there is no file {path}", "give the path of a PEM file")
        return False
    if not os.access(path, os.R_OK):
        problems.refuse(f"{flag}: {path} can't be read: no permission")
        return False
    return True


def _check_authorities(problems: Problems, path: Path) -> None:
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, OSError):
        problems.refuse(f"{problems.flag('ca_file')}: {path} holds no certificates in PEM form")


def _check_client(problems: Problems, cert: Path, key: Path | None) -> None:
    import ssl

    flag = problems.flag("client_cert")
    try:
        # With an empty passphrase OpenSSL prompts nobody in the middle of a run.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else None
        why = reason.lower().replace("_", " ") if reason else "not PEM, or its key needs a passphrase"
        if key is not None:
            problems.refuse(f"{flag}: {cert} can't be used with the key {key}: {why}")
        else:
            hint = f"where the key is a file of its own, add {problems.flag('client_key')}"
            problems.refuse(f"{flag}: {cert} can't be used: {why}", hint)
