from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import aiperf_reader
import pytest
from aiperf_reader import HIDDEN_BITS, ReaderError, Record, SocketReader

PACKAGE = Path(aiperf_reader.__file__).parent
SOURCES = Path(__file__).parent.parent
CODE = SOURCES / "src" / "aiperf_reader"
"""In C, which a wheel doesn't have."""
SO_TIMESTAMPNS = 35
"""asm-generic/socket.h."""
ECONNRESET = 104
"""asm-generic/errno.h."""
PATIENCE_S = 60.0
"""Against hanging."""
MOST = (1 << HIDDEN_BITS) - 1
"""Hidden segments that a record can have."""
COMPILER = shutil.which("cc") or shutil.which("gcc")

try:
    SocketReader.opened().close()
except ReaderError as error:
    pytest.skip(str(error), allow_module_level=True)


class Pair:
    """A TCP connection: *near* is read, *far* is the server's."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.near = socket.create_connection(listening.getsockname())
            self.far, _ = listening.accept()
        self.near.setblocking(False)
        self.near.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self.near.close()
        self.far.close()


@pytest.fixture
def reader() -> Iterator[SocketReader]:
    made = SocketReader.opened()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def taken(reader: SocketReader, enough: Callable[[list[Record]], bool], most: int = 16) -> list[Record]:
    found: list[Record] = []
    end = time.monotonic() + PATIENCE_S
    while not enough(found):
        assert time.monotonic() < end, "the thread says nothing"
        select.select([reader.fileno()], [], [], 1)
        found += reader.take(most)
    return found


def text(records: list[Record]) -> bytes:
    return b"".join(data for _, data, *_ in records if isinstance(data, bytes))


def ended(records: list[Record]) -> bool:
    return bool(records) and records[-1][1] == b""


def stamped(reader: SocketReader, pair: Pair) -> bool:
    """Whether a byte has a stamp: Linux switches stamping on for the machine, a moment after the first socket asks."""
    pair.far.send(b"?")
    return taken(reader, bool)[-1][2] > 0


def test_each_piece_has_a_stamp_of_its_own_though_nobody_takes_it(reader: SocketReader, pair: Pair) -> None:
    token, pieces = reader.add(pair.near.fileno()), [b"one", b"two", b"three"]
    eventually(lambda: stamped(reader, pair))
    before_ns, before = time.time_ns(), reader.reads
    for count, piece in enumerate(pieces, 1):
        pair.far.send(piece)
        while reader.reads < before + count:
            time.sleep(0.001)
    found = taken(reader, lambda records: len(records) == len(pieces))
    assert [(each[0], each[1], each[4]) for each in found] == [(token, piece, 0) for piece in pieces]
    stamps = [each[2] for each in found]
    assert stamps == sorted(set(stamps))
    assert before_ns < stamps[0] < stamps[-1] < time.time_ns()


def test_the_loop_reads_at_once_and_behind_what_the_thread_has_read(reader: SocketReader, pair: Pair) -> None:
    """A loop that keeps up reads by itself; either may read a piece, and all come in order."""
    token, sent, found = reader.add(pair.near.fileno()), b"", []
    for number in range(200):
        piece, before = b"%d " % number, reader.reads
        sent += piece
        pair.far.send(piece)
        if number % 3 == 0:
            eventually(lambda before=before: reader.reads > before)  # type: ignore[misc]
        select.select([reader.sockets(), reader.fileno()], [], [], PATIENCE_S)
        found += reader.read(16)
    pair.far.shutdown(socket.SHUT_WR)
    while not ended(found):
        select.select([reader.sockets(), reader.fileno()], [], [], PATIENCE_S)
        found += reader.read(16)
    assert (text(found), {each[0] for each in found}) == (sent, {token})
    assert reader.reads == len(found)


def test_a_loop_that_keeps_up_needs_no_word_of_the_thread(reader: SocketReader, pair: Pair) -> None:
    reader.add(pair.near.fileno())

    def read_here() -> bool:
        pair.far.send(b"x")
        select.select([reader.sockets()], [], [], PATIENCE_S)
        here, told = reader.read(16), select.select([reader.fileno()], [], [], 0)[0]
        reader.take(16)
        return bool(here) and not told

    eventually(read_here)


def test_the_end_and_a_reset_come_last(reader: SocketReader, pair: Pair) -> None:
    reader.add(pair.near.fileno())
    pair.far.send(b"last words")
    pair.far.shutdown(socket.SHUT_WR)  # half of it: the other direction stays open
    assert text(taken(reader, ended)) == b"last words"
    assert pair.near.send(b"x") == 1
    other = Pair()
    token = reader.add(other.near.fileno())
    other.far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    other.far.close()
    assert [each[:2] for each in taken(reader, bool)] == [(token, ECONNRESET)]
    other.close()


def test_a_number_that_is_used_again_is_another_socket(reader: SocketReader) -> None:
    used_again = 0
    for turn in range(300):
        old = Pair()
        number, token, reads = old.near.fileno(), reader.add(old.near.fileno()), reader.reads
        old.far.send(b"of the earlier socket")
        while turn % 2 and reader.reads == reads:
            time.sleep(0)
        reader.remove(token)
        old.close()
        new = Pair()
        again = reader.add(new.near.fileno())
        used_again += new.near.fileno() == number
        new.far.send(b"%d" % turn)
        found: list[Record] = []
        while not text(found):
            found += [each for each in taken(reader, bool) if each[0] == again]
        assert (token != again, text(found)) == (True, b"%d" % turn)
        reader.remove(again)
        new.close()
    assert used_again > 0


def test_a_full_ring_pauses_the_reading_and_the_server_feels_it(pair: Pair) -> None:
    reader = SocketReader(1024, records=4, size=1 << 17)
    token, sent, piece = reader.add(pair.near.fileno()), 0, bytes(range(256)) * 256
    pair.far.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while select.select([], [pair.far], [], 0.5)[1]:
            sent += pair.far.send(piece[sent % len(piece) :])
    eventually(lambda: reader.pauses[0] > 0)
    assert not reader.quiet(token)
    found = taken(reader, lambda records: sum(len(text([each])) for each in records) == sent, most=1)
    assert text(found) == (piece * (sent // len(piece) + 1))[:sent]
    assert max(each[4] & MOST for each in found) > 0, "segments that were merged meanwhile are counted"
    assert reader.pauses[1] > 0
    reader.close()


def test_a_merged_read_says_when_a_look_at_others_saw_its_socket_empty(pair: Pair) -> None:
    reader, other = SocketReader(1024, records=2, size=1 << 17), Pair()
    token = reader.add(pair.near.fileno())
    reader.add(other.near.fileno())
    added_ns = time.monotonic_ns()
    for count in (1, 2):
        other.far.send(b"x")
        eventually(lambda count=count: reader.reads == count)  # type: ignore[misc]
    other.far.send(b"x")
    eventually(lambda: reader.pauses[0] > 0)
    paused_ns = time.monotonic_ns()
    pair.far.send(b"one")
    pair.far.send(b"two")
    (merged,) = [each for each in taken(reader, lambda records: records[-1:] and records[-1][0] == token) if each[0] == token]
    _, data, _, read_ns, hidden = merged
    assert (data, hidden & MOST) == (b"onetwo", 1)
    assert added_ns <= read_ns - (hidden >> HIDDEN_BITS) <= paused_ns
    other.close()
    reader.close()


@pytest.mark.parametrize("sizes", [(150, 150, 150), (40, 700, 9, 3000), (1, 2, 2), (5,) * 32])
def test_segments_that_wait_together_are_read_with_their_own_stamps(sizes: tuple[int, ...], pair: Pair) -> None:
    """Where the system has put none together, which it may once they are acknowledged."""
    reader, other = SocketReader(1024, records=2, size=1 << 17, apart=True), Pair()
    token, another = reader.add(pair.near.fileno()), reader.add(other.near.fileno())

    def are_apart() -> bool:
        pauses = reader.pauses[0]
        while reader.pauses[0] == pauses:  # the ring is full, and the thread waits
            other.far.send(b"x")
            time.sleep(0.001)
        pair.near.send(b"?")  # an answer to it is not acknowledged at once
        pair.far.recv(100)
        before, written = segments_of(pair.near), []
        for number, size in enumerate(sizes):
            written.append(time.time_ns())
            pair.far.send(bytes([number]) * size)
        sent, found = b"".join(bytes([number]) * size for number, size in enumerate(sizes)), list[Record]()
        eventually(lambda: text(found.extend(reader.take(2)) or [each for each in found if each[0] == token]) == sent)
        eventually(lambda: reader.quiet(token) and reader.quiet(another))
        reads = [each for each in found if each[0] == token]
        for _, data, kernel_ns, read_ns, _ in reads:
            assert isinstance(data, bytes)
            assert not kernel_ns or written[data[-1]] <= kernel_ns <= time.time_ns()
            assert read_ns <= time.monotonic_ns()
        assert sum(1 + (each[4] & MOST) for each in reads) >= segments_of(pair.near) - before
        stamps = [each[2] for each in reads]
        assert stamps == sorted(stamps)
        return [len(each[1]) for each in reads if isinstance(each[1], bytes)] == list(sizes) and len(set(stamps)) == len(sizes)

    eventually(are_apart)
    other.close()
    reader.close()


HEAD, ROLE, WORD, END = b"HTTP/1.1 200 OK\r\n\r\n", b"data: role", b"data: word", b"data: last"


@pytest.mark.parametrize(
    ("turns", "exact"),
    [
        ([[ROLE], [WORD], [WORD, END]], True),
        ([[HEAD], [WORD, WORD, WORD], [WORD], [WORD + END]], True),
        ([[HEAD, ROLE], [WORD], [WORD + END], [HEAD], [WORD + END]], True),
        ([[b"data: ", b"half"], [b"data: ", b"half"], [WORD, END], [WORD, END]], False),
    ],
)
def test_a_loop_with_many_sockets_to_read_misses_no_segment(turns: list[list[bytes]], exact: bool) -> None:
    """Reads of one event at most are not counted there.  *exact*: each of them was one segment, or the first of an answer."""
    reader, pairs = SocketReader(1024, mark=b"data:"), [Pair() for _ in range(8)]
    sent = dict.fromkeys((reader.add(pair.near.fileno()) for pair in pairs), 0)
    seen, found = dict.fromkeys(sent, 0), dict.fromkeys(sent, b"")
    for turn in turns:
        for pair, token in zip(pairs, sent, strict=True):
            for piece in turn:
                pair.far.send(piece)
                sent[token] += 1
        size = len(found[next(iter(sent))]) + sum(map(len, turn))
        while any(len(each) < size for each in found.values()):
            for token, data, _, _, hidden in reader.read(64):
                assert isinstance(data, bytes)
                found[token] += data
                seen[token] += 1 + (hidden & MOST)
    assert all(seen[token] >= count for token, count in sent.items())
    assert seen == sent or not exact
    for pair in pairs:
        pair.close()
    reader.close()


def test_quiet_is_a_socket_without_anything_to_take(reader: SocketReader, pair: Pair) -> None:
    token = reader.add(pair.near.fileno())
    assert reader.quiet(token)
    pair.far.send(b"x")
    eventually(lambda: not reader.quiet(token))
    taken(reader, bool)
    assert reader.quiet(token)
    pair.far.close()
    eventually(lambda: not reader.quiet(token))
    taken(reader, bool)
    assert not reader.quiet(token)


def test_urgent_bytes_are_no_part_of_the_stream(reader: SocketReader, pair: Pair) -> None:
    reader.add(pair.near.fileno())
    pair.far.send(b"before")
    pair.far.send(b"!", socket.MSG_OOB)
    pair.far.send(b"behind")
    pair.far.close()
    assert text(taken(reader, ended)) == b"beforebehind"


def test_signals_are_the_programs_and_not_the_threads(reader: SocketReader, pair: Pair) -> None:
    reader.add(pair.near.fileno())
    got: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: got.append(number))
    try:
        for _ in range(100):
            os.kill(os.getpid(), signal.SIGUSR1)
            pair.far.send(b"x")
        found = taken(reader, lambda records: len(text(records)) == 100)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (len(text(found)), len(got)) == (100, 100)


def test_a_fork_leaves_the_reader_to_its_parent(reader: SocketReader, pair: Pair) -> None:
    token = reader.add(pair.near.fileno())
    child = os.fork()
    if child == 0:
        reader.remove(token)
        reader.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert subprocess.run([sys.executable, "-c", "pass"], check=False).returncode == 0
    pair.far.send(b"still here")
    assert text(taken(reader, bool)) == b"still here"


def test_a_descriptor_that_can_not_be_watched_is_an_error(reader: SocketReader, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(OSError, match="not permitted"):
        reader.add(file.fileno())
    for none in (-1, 1 << 32, (1 << 32) + 3):
        with pytest.raises(OSError, match="Bad file descriptor"):
            reader.add(none)
    small = SocketReader(3)
    with pytest.raises(OSError, match="Too many open files"):
        small.add(3)
    small.close()


def test_a_closed_reader_says_so(pair: Pair) -> None:
    reader = SocketReader.opened()
    reader.close()
    reader.close()
    calls = (
        lambda: reader.add(pair.near.fileno()),
        lambda: reader.take(1),
        lambda: reader.read(1),
        reader.fileno,
        reader.sockets,
    )
    for call in calls:
        with pytest.raises(ValueError, match="the reader is closed"):
            call()


OPEN = "try: r.SocketReader.opened()\nexcept r.ReaderError as error: print(error)"


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [
        ("NOFILE", "4", "Too many open files"),
        ("AS", "4096 * int(open('/proc/self/statm').read().split()[0]) + (1 << 20)", "Cannot allocate memory"),
        ("NPROC", "0", "Resource temporarily unavailable"),
    ],
)
def test_a_system_without_room_refuses_with_its_reason(limit: str, value: str, why: str) -> None:
    """Descriptors, memory, processes: ulimit -n, -v, -u.  The last one does not hold for root."""
    code = (
        "import os, resource, aiperf_reader as r\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        f"most = {value}; resource.setrlimit(resource.RLIMIT_{limit}, (most, most))\n{OPEN}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"the system refuses the reader's thread: {why}\n"


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("call", ["int eventfd(unsigned count, int flags)", "int epoll_create1(int flags)"])
def test_a_system_without_eventfd_or_epoll_refuses_with_its_reason(call: str, tmp_path: Path) -> None:
    (tmp_path / "none.c").write_text(f"#include <errno.h>\n{call} {{ errno = ENOSYS; return -1; }}\n")
    words = ["-shared", "-fPIC", "-o", str(tmp_path / "none.so"), str(tmp_path / "none.c")]
    subprocess.run([str(COMPILER), *words], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(tmp_path / "none.so")}
    done = subprocess.run(
        [sys.executable, "-c", f"import aiperf_reader as r\n{OPEN}"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "the system refuses the reader's thread: Function not implemented\n"


@pytest.mark.parametrize("damage", ["missing", "garbage", "of other sources"])
def test_without_a_compiled_file_for_this_machine_the_reader_says_why(damage: str, tmp_path: Path) -> None:
    package = tmp_path / "aiperf_reader"
    package.mkdir()
    shutil.copy(PACKAGE / "__init__.py", package)
    if damage == "garbage":
        (package / "_reader.abi3.so").write_bytes(b"\x7fELF of another machine")
    if damage == "of other sources":
        (package / "_reader.py").write_text("VERSION = 0\n")
    code = "import aiperf_reader as r\ntry: r.SocketReader.opened()\nexcept r.ReaderError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("aiperf-reader has no compiled file for this machine: ")


@pytest.mark.parametrize("changed", [False, True])
def test_sources_that_changed_behind_the_compiled_file_are_noticed(changed: bool, tmp_path: Path) -> None:
    """As in a checkout whose editable install keeps its file; a wheel has no sources, and nothing to notice."""
    package = tmp_path / "aiperf_reader"
    shutil.copytree(PACKAGE, package)
    if not (package / "reader.c").exists():
        pytest.skip("an installed wheel")
    if changed:
        with (package / "reader.c").open("a") as file:
            file.write("/* changed */\n")
    code = "import aiperf_reader as r; print(r.stale_sources())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{package if changed else None}\n"


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="needs hatchling, which makes the wheel")
def test_a_wheel_carries_one_compiled_file_for_all_versions(tmp_path: Path) -> None:
    shutil.copytree(SOURCES, tmp_path / "reader", ignore=shutil.ignore_patterns("*.so", "tests"))
    code = "import hatchling.build as build, sys; print(build.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=tmp_path / "reader", capture_output=True, text=True, check=True
    )
    name = done.stdout.splitlines()[-1]
    assert name.startswith("aiperf_reader-0.1.0-cp311-abi3-linux_")
    files = {each for each in zipfile.ZipFile(tmp_path / name).namelist() if each.startswith("aiperf_reader/")}
    assert files == {f"aiperf_reader/{each}" for each in ("__init__.py", "_reader.abi3.so", "_reader.pyi", "py.typed")}


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="needs hatchling, which makes the wheel")
def test_without_a_compiler_the_package_is_made_without_the_file(tmp_path: Path) -> None:
    shutil.copytree(SOURCES, tmp_path / "reader", ignore=shutil.ignore_patterns("*.so", "tests"))
    code = "import hatchling.build as build, sys; print(build.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=tmp_path / "reader", env={**os.environ, "CC": "/nowhere/cc"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.endswith("aiperf_reader-0.1.0-py3-none-any.whl\n")
    assert "made without its compiled file: no compiler" in done.stdout + done.stderr


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("who", ["thread", "loop"])
def test_segments_that_come_beside_a_read_are_not_called_hidden_in_it(who: str, tmp_path: Path) -> None:
    """Each byte is a segment.  Where several come on one side and one at least on the other, the count may be too high."""
    program = tmp_path / "counts"
    sources = [str(Path(__file__).parent / "counts.c"), str(CODE / "reader.c")]
    words = ["-std=c11", "-O1", "-pthread", f"-I{CODE}", "-Wl,--wrap=recvmsg", "-o", str(program), *sources]
    subprocess.run([str(COMPILER), *words], check=True)
    done = subprocess.run([program, who], capture_output=True, text=True, check=True, timeout=300)
    reads = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert {(before, behind) for before, behind, *_ in reads} == {(n, m) for n in range(4) for m in range(4)}
    for before, behind, segments, hidden in reads:
        most = 0 if before == 0 or behind == 0 else before + behind - 2
        assert segments - 1 <= hidden <= segments - 1 + most, (before, behind, segments, hidden)


def told_with_a_clock_of_its_own(program: str, folder: Path) -> list[int]:
    """The numbers that ``program.c`` prints."""
    sources = [str(Path(__file__).parent / f"{program}.c"), str(CODE / "reader.c")]
    words = ["-std=c11", "-O1", "-pthread", f"-I{CODE}", "-Wl,--wrap=clock_gettime", "-o", str(folder / program), *sources]
    subprocess.run([str(COMPILER), *words], check=True)
    done = subprocess.run([folder / program], capture_output=True, text=True, check=True, timeout=300)
    return [*map(int, done.stdout.split())]


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_a_wake_up_that_comes_late_keeps_no_loop_busy(tmp_path: Path) -> None:
    assert told_with_a_clock_of_its_own("woken", tmp_path) == [0, 1, 0]


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_a_loop_waits_for_more_where_sockets_are_ready_densely(tmp_path: Path) -> None:
    names = "unknown", "dense", "later", "late", "sparse", "unstamped"
    waits = dict(zip(names, told_with_a_clock_of_its_own("gaps", tmp_path), strict=True))
    assert waits == {"unknown": 0, "dense": 40_000, "later": 10_000, "late": 0, "sparse": 0, "unstamped": 0}


def segments_of(sock: socket.socket) -> int:
    """Data segments that the kernel has received: u32 at byte 152 of linux/tcp.h's tcp_info."""
    return int(struct.unpack_from("=I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192), 152)[0])


@pytest.mark.parametrize("busy", [0, 2])
def test_every_segment_is_counted_while_segments_keep_coming(reader: SocketReader, pair: Pair, busy: int) -> None:
    """Never too few in all, and too many only where segments came on both sides of a read."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    reader.add(pair.near.fileno())

    def speak() -> None:
        for number in range(3000):
            pair.far.send(b"x")
            if number % 3:
                time.sleep(0.0001)
        pair.far.shutdown(socket.SHUT_WR)

    server = threading.Thread(target=speak)
    server.start()
    try:
        found = taken(reader, ended)[:-1]
    finally:
        server.join()
        for other in others:
            other.kill()
            other.wait()
    counted, came = sum(1 + (each[4] & MOST) for each in found), segments_of(pair.near)
    assert len(text(found)) == 3000
    assert came <= counted <= 1.02 * came


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing_in_random_turns(sanitizer: str, tmp_path: Path) -> None:
    program = tmp_path / "turns"
    sources = [str(Path(__file__).parent / "turns.c"), str(CODE / "reader.c")]
    words = ["-std=c11", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread", f"-I{CODE}", "-o", str(program), *sources]
    made = subprocess.run([str(COMPILER), *words], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"this compiler has no sanitizers: {made.stderr.strip()[-200:]}")
    for seed in range(4):
        done = subprocess.run([program, str(seed), "5000"], capture_output=True, text=True, check=False, timeout=300)
        assert (done.returncode, done.stderr) == (0, ""), f"seed {seed}"
