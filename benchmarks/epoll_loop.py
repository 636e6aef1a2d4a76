"""The least that a client in Python can do: sockets and epoll, bytes that are ready, an answer read to its end.

usage: epoll_loop.py PORT CONNECTIONS REQUESTS FILE

FILE: JSON list of texts in base64, each a whole request; they are sent in turn.  No schedule, no stamps, no records.
"""

from __future__ import annotations

import base64
import json
import select
import socket
import sys
from itertools import cycle, islice
from pathlib import Path

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


def whole(answer: bytes) -> bool:
    """Whether the answer is there to its last byte."""
    head = answer.find(_HEAD_END)
    if head < 0:
        return False
    at = answer[:head].lower().index(_LENGTH) + len(_LENGTH)
    return len(answer) >= head + len(_HEAD_END) + int(answer[at : answer.find(b"\r\n", at)])


def main(port: int, connections: int, requests: int, file: str) -> None:
    texts = [base64.b64decode(text) for text in json.loads(Path(file).read_bytes())]
    left = islice(cycle(texts), requests)
    poller, sockets, answers = select.epoll(), dict[int, socket.socket](), dict[int, bytes]()
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[connection.fileno()] = connection
    for number, connection in sockets.items():
        if (text := next(left, None)) is not None:
            answers[number] = b""
            poller.register(number, select.EPOLLIN)
            connection.send(text)
    while answers:
        for number, _ in poller.poll():
            connection = sockets[number]
            piece = connection.recv(65536)
            if not piece:
                raise SystemExit("the server closed a connection")
            answers[number] += piece
            if not whole(answers[number]):
                continue
            if (text := next(left, None)) is None:
                del answers[number]
                poller.unregister(number)
            else:
                answers[number] = b""
                connection.send(text)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
