"""TLS options to a plan: files are read once here, so that what is wrong with them is one sentence and not every request's."""

from __future__ import annotations

import os
from pathlib import Path

from aiperf import environment
from aiperf.findings import Findings
from aiperf.plan import TlsPlan


def tls_plan(findings: Findings) -> TlsPlan:
    """What ``--ca-file``, ``--client-cert``, ``--client-key`` and ``--insecure`` ask for."""
    kernel = findings.kernel
    findings.exclusive("insecure", "ca_file", "the one doesn't check certificates, the other says which to trust")
    findings.needs("client_key", ["client_cert"], "a key belongs to a certificate")
    files: dict[str, Path | None] = {field: getattr(kernel, field) for field in ("ca_file", "client_cert", "client_key")}
    given = [field for field in (*files, "insecure") if findings.given(field)]
    if given and not any(url.startswith("https://") for url in kernel.urls):
        findings.warn(f"{findings.flag(given[0])} changes nothing: no URL begins with https://")
    readable = {field: path for field, path in files.items() if path is not None and _readable(findings, field, path)}
    if "ca_file" in readable:
        _check_authorities(findings, readable["ca_file"])
    if "client_cert" in readable and (kernel.client_key is None or "client_key" in readable):
        _check_client(findings, readable["client_cert"], readable.get("client_key"))
    verify = not kernel.insecure
    if verify and kernel.ca_file is None:  # the flag wins over the variable
        with findings.collected():
            verify = environment.ssl_verify()
    return TlsPlan(verify, **{field: None if path is None else str(path.absolute()) for field, path in files.items()})


def _readable(findings: Findings, field: str, path: Path) -> bool:
    flag = findings.flag(field)
    if not path.is_file():
        findings.refuse(f"{flag}: there is no file {path}", "give the path of a PEM file")
        return False
    if not os.access(path, os.R_OK):
        findings.refuse(f"{flag}: {path} can't be read: no permission")
        return False
    return True


def _check_authorities(findings: Findings, path: Path) -> None:
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, OSError):
        findings.refuse(f"{findings.flag('ca_file')}: {path} holds no certificates in PEM form")


def _check_client(findings: Findings, cert: Path, key: Path | None) -> None:
    import ssl

    flag = findings.flag("client_cert")
    try:
        # An empty passphrase: nobody is asked for one in the middle of a run.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else None
        why = reason.lower().replace("_", " ") if reason else "not PEM, or its key needs a passphrase"
        if key is not None:
            findings.refuse(f"{flag}: {cert} can't be used with the key {key}: {why}")
        else:
            hint = f"where the key is a file of its own, add {findings.flag('client_key')}"
            findings.refuse(f"{flag}: {cert} can't be used: {why}", hint)
