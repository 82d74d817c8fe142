"""Volumes from Python, against a model, and against the command."""

import _thread
import errno
import io
import itertools
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flashlore.errors import UsageError, VolumeError, VolumeUsageError
from flashlore.moment import Time
from flashlore.volume import Volume, When
from flashlore.volume_info import Changes, Mark, Purge, Snapshot, VolumeInfo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MIB = 1 << 20
PAGE = 4096


def flashlore(*arguments: object) -> str:
    """Run the command and return what it printed."""
    command = [sys.executable, "-m", "flashlore", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Volume]:
    """A small volume with a history."""
    with Volume.create(tmp_path / "disk", "4MiB", capacity="16MiB") as volume:
        yield volume


class Model:
    """A volume, and what it must hold: now, at each instant there was, and under each name."""

    def __init__(self, directory: Path, system: str) -> None:
        self.directory = directory
        self.volume = Volume.create(directory, MIB, system, capacity="16MiB")
        self.present = bytearray(MIB)
        self.past: dict[Time, bytes] = {}
        self.names: dict[str, bytes] = {}
        self.keeps = system in ("bvssd", "combined")
        self.remember()

    def remember(self) -> None:
        if self.keeps:
            self.past[self.volume.resolve("now")] = bytes(self.present)

    def write(self, offset: int, data: bytes) -> None:
        data = data[: MIB - offset]
        self.volume.write(offset, data)
        self.present[offset : offset + len(data)] = data
        self.remember()

    def trim(self, offset: int, length: int) -> None:
        length = min(length, MIB - offset)
        self.volume.trim(offset, length)
        first, end = -(-offset // PAGE) * PAGE, (offset + length) // PAGE * PAGE
        if first < end:
            self.present[first:end] = bytes(end - first)
        self.remember()

    def flush(self) -> None:
        self.volume.flush()

    def reopen(self) -> None:
        self.volume.close()
        assert Volume.check(self.directory, quick=True).closed
        self.volume = Volume.open(self.directory)
        assert self.volume.info().closed

    def forget(self) -> None:
        """Let the volume go as a crash would, with everything flushed."""
        self.volume.flush()
        with pytest.warns(ResourceWarning, match="was not closed"):
            del self.volume
        assert not Volume.check(self.directory, quick=True).closed
        self.volume = Volume.open(self.directory)
        assert not self.volume.info().closed

    def snapshot(self) -> None:
        name = f"s{len(self.names)}"
        if self.keeps:
            self.volume.snapshot(name)
            self.names[name] = bytes(self.present)
            self.remember()

    def recover(self, which: int) -> None:
        if self.keeps:
            instant, content = list(self.past.items())[which % len(self.past)]
            changed = sum(self.present[at : at + PAGE] != content[at : at + PAGE] for at in range(0, MIB, PAGE))
            assert self.volume.recover(instant, dry_run=True).changed >= changed
            before = bytes(self.present)
            undo = self.volume.recover(instant).before
            assert self.volume.at(undo).read() == before
            self.present[:] = content
            self.remember()

    def check(self) -> None:
        assert self.volume.read() == self.present
        for instant, content in self.past.items():
            assert self.volume.at(instant).read() == content
        for name, content in self.names.items():
            assert self.volume.at(name).read() == content
        if self.keeps:
            first, last = min(self.past), max(self.past)
            spans = self.volume.diff(first, last).to_polars().rows()
            told = {at for start, length in spans for at in range(start, start + length, PAGE)}
            a, b = self.past[first], self.past[last]
            assert told >= {at for at in range(0, MIB, PAGE) if a[at : at + PAGE] != b[at : at + PAGE]}


OFFSETS = st.integers(0, MIB - 1) | st.integers(0, MIB // PAGE - 1).map(lambda page: page * PAGE)
# A few values, so that pages are shared, differ a little, and are random.
DATA = st.builds(
    lambda seed, length, random: np.random.default_rng(seed).bytes(length) if random else bytes([seed]) * length,
    st.integers(0, 3),
    st.integers(0, 5 * PAGE),
    st.booleans(),
)
STEPS = st.lists(
    st.tuples(st.just("write"), OFFSETS, DATA)
    | st.tuples(st.just("write"), OFFSETS, DATA)
    | st.tuples(st.just("trim"), OFFSETS, st.integers(0, 20 * PAGE))
    | st.tuples(st.sampled_from(["flush", "reopen", "forget", "snapshot"]))
    | st.tuples(st.just("recover"), st.integers(0, 100)),
    max_size=15,
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=STEPS, system=st.sampled_from(["combined", "combined", "bvssd", "ca-ssd", "delta-ftl"]))
def test_it_holds_what_a_model_holds(
    steps: list[tuple[Any, ...]], system: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("model") / "disk"
    model = Model(directory, system)
    try:
        for name, *arguments in steps:
            getattr(model, name)(*arguments)
        model.check()
        model.reopen()
        model.check()
    finally:
        model.volume.close()
    assert Volume.check(directory).clean
    shutil.rmtree(directory)


def test_an_instant_has_many_names(disk: Volume) -> None:
    disk.write(0, b"one")
    snapshot = disk.snapshot("first")
    mark = disk.mark("here")
    disk.write(0, b"two")
    names: list[When] = [
        "first",
        "here",
        snapshot,
        mark,
        snapshot.instant,
        snapshot.instant.ns,
        str(snapshot.instant),
        disk.at("first"),
    ]
    assert {disk.at(name).read(0, 3) for name in names} == {b"one"}
    assert {disk.at(name).instant for name in names} == {snapshot.instant}
    later = datetime.now(timezone(timedelta(hours=5)))
    disk.write(0, b"six")
    assert disk.at(later).read(0, 3) == b"two"
    assert disk.at("now").read(0, 3) == b"six"
    assert disk.diff("first").to_polars().rows() == [(0, PAGE)]
    assert disk.diff(snapshot, mark).to_polars().rows() == []
    # The name of a mark does not stand for the snapshot of the same instant.
    with pytest.raises(VolumeUsageError, match="no snapshot of"):
        disk.delete_snapshot("here")
    assert disk.recover("now", to_mark=True).instant == mark.instant
    assert disk.read(0, 3) == b"one"


def test_the_log_tells_what_happened(disk: Volume) -> None:
    begun = datetime.now(UTC)
    disk.write(0, bytes(3 * PAGE))
    snapshot, mark = disk.snapshot("kept"), disk.mark("marked")
    log = disk.log()
    assert begun < log.newest < datetime.now(UTC)
    assert log.oldest < begun
    changes = [entry for entry in log.entries if isinstance(entry, Changes)]
    assert sum(entry.pages for entry in changes) == 3
    assert [entry for entry in log.entries if isinstance(entry, Snapshot)] == [snapshot] == list(disk.snapshots())
    assert [entry for entry in log.entries if isinstance(entry, Mark)] == [mark]
    assert disk.delete_snapshot("kept") == snapshot.instant
    assert disk.snapshots() == ()
    assert len(disk.log(most=1).entries) == 1


def test_old_versions_are_forgotten(disk: Volume) -> None:
    disk.write(0, b"secret")
    disk.snapshot("kept")
    disk.write(0, bytes(PAGE))
    assert disk.purge(offset=PAGE, length=PAGE).blocks is None
    assert disk.at("kept").read(0, 6) == b"secret"
    assert disk.purge(offset=0, length=PAGE).ended == ()
    with pytest.raises(VolumeError, match="4096 bytes from 0 on"):
        disk.at("kept").read(0, 6)
    assert disk.at("kept", allow_missing=True).read(0, 6) == bytes(6)
    assert disk.missing("kept").to_polars().rows() == [(0, PAGE)]
    with pytest.raises(VolumeError, match="4096 bytes from 0 on"):
        disk.recover("kept")
    assert disk.recover("kept", dry_run=True, allow_missing=True).missing == ((0, PAGE),)
    assert [entry.range for entry in disk.log().entries if isinstance(entry, Purge)][-1] == (0, PAGE)
    purged = disk.purge(all=True, erase=True)
    assert purged.blocks is not None
    assert [snapshot.name for snapshot in purged.ended] == ["kept"]
    with pytest.raises(VolumeUsageError, match="no snapshot"):
        disk.at("kept")
    assert b"secret" not in (disk.directory / "volume.flashlore").read_bytes()


def test_threads_share_a_volume(disk: Volume) -> None:
    def fill(number: int) -> None:
        first = number * MIB
        for round_ in range(8):
            content = bytes([16 * number + round_]) * (MIB // 8)
            disk.write(first + round_ * len(content), content)
            assert disk.read(first + round_ * len(content), len(content)) == content
            disk.flush()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, range(4)))
    whole = disk.read()
    assert [whole[at] for at in range(0, 4 * MIB, MIB // 8)] == [16 * n + r for n in range(4) for r in range(8)]


def test_the_interpreter_lock_is_released(disk: Volume) -> None:
    turns, ended = [0], threading.Event()

    def count() -> None:
        while not ended.is_set():
            turns[0] += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    counter.start()
    try:
        # From here on the other thread runs only while this one lets go of the lock.
        sys.setswitchinterval(1000)
        for work in (lambda: disk.write(0, bytes(MIB)), lambda: disk.read(0, MIB), disk.flush, disk.info):
            before = turns[0]
            assert any((work(), turns[0] > before)[1] for _ in range(1000))
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        counter.join()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that a shell put into the background ignore interrupts, and so do theirs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_long_write(tmp_path: Path) -> None:
    with Volume.create(tmp_path / "disk", "64MiB", "plain") as disk:
        contents = [bytes([value]) * disk.size for value in (1, 2)]
        # An interrupt between two writes ends none of them.
        ends = (interrupted(disk, contents) for _ in range(10))
        first, last = next(((first, last) for first, last in ends if first != last), (0, 0))
        assert {first, last} == {1, 2}


def interrupted(disk: Volume, contents: list[bytes]) -> tuple[int, int]:
    """Writes all of a disk with these contents in turn, until an interrupt comes that another thread sends once the
    second write has begun. What the ends of the disk hold then."""
    disk.write(0, contents[1])

    def interrupt() -> None:
        while disk.read(0, 1) != contents[0][:1]:
            pass
        _thread.interrupt_main()

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        write_on(disk, contents)
    interrupter.join()
    return disk.read(0, 1)[0], disk.read(disk.size - PAGE, 1)[0]


def write_on(disk: Volume, contents: list[bytes]) -> None:
    # On a busy machine many writes may pass until the other thread runs.
    for content in itertools.islice(itertools.cycle(contents), 1000):
        disk.write(0, content)


def test_a_closed_volume_says_so(tmp_path: Path) -> None:
    disk = Volume.create(tmp_path / "disk", MIB)
    instant, file = disk.at("now"), disk.file()
    disk.close()
    disk.close()
    assert disk.closed
    uses: list[Callable[[], object]] = [
        lambda: disk.read(0, 1),
        lambda: disk.write(0, b"x"),
        lambda: disk.trim(0, PAGE),
        disk.flush,
        disk.info,
        lambda: disk.at("now"),
        lambda: instant.read(0, 1),
        lambda: file.read(1),
    ]
    for use in uses:
        with pytest.raises(VolumeError, match="the volume is closed"):
            use()
    file.close()
    with pytest.raises(ValueError, match="the file is closed"):
        file.tell()
    assert disk.size == MIB
    assert repr(disk).endswith("closed>")
    with Volume.open(tmp_path / "disk") as again:
        assert again.read(0, 1) == b"\0"


def test_a_volume_waits_for_calls_before_it_closes(tmp_path: Path) -> None:
    disk = Volume.create(tmp_path / "disk", "8MiB")
    written: list[int] = []

    def write() -> None:
        try:
            while True:
                disk.write(0, bytes([len(written) % 256]) * PAGE)
                written.append(len(written) % 256)
        except VolumeError as error:
            assert "the volume is closed" in str(error)  # noqa: PT017 (in a thread)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        while len(written) < 5:
            time.sleep(0.001)
        disk.close()
        writer.result()
    with Volume.open(tmp_path / "disk") as again:
        assert again.read(0, 1) == bytes([written[-1]])


def test_a_process_that_dies_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    script = (
        "import os, sys; from flashlore.volume import Volume\n"
        "disk = Volume.create(sys.argv[1], 1 << 20); disk.write(0, b'safe'); disk.flush(); disk.write(0, b'late')\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "disk"], check=True)
    with Volume.open(tmp_path / "disk") as disk:
        assert disk.read(0, 4) in (b"safe", b"late")


def test_a_fork_is_refused_and_does_no_harm(disk: Volume) -> None:
    disk.write(0, b"parent")
    with warnings.catch_warnings():
        # A child of many threads may do little; this one does.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: disk.read(0, 1), lambda: disk.write(0, b"child"), disk.close, disk.info):
            try:
                use()
            except VolumeError as error:
                refused += f"{os.getpid()} was forked from that" in str(error)
        del disk
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    assert disk.read(0, 6) == b"parent"


def test_the_command_sees_the_same(tmp_path: Path) -> None:
    directory, image = tmp_path / "disk", tmp_path / "image"
    with Volume.create(directory, MIB) as disk:
        disk.write(PAGE, b"from Python")
        disk.snapshot("first")
        disk.write(PAGE, b"overwritten")
        told = disk.info()
    assert flashlore("check", directory).startswith("1 pages hold something")
    assert Volume.check(directory, memory="1GiB").clean
    with pytest.raises(VolumeUsageError, match="1 MiB of memory are too little"):
        Volume.check(directory, memory=1 << 20)
    flashlore("export", directory, image, "--at", "first")
    assert image.read_bytes() == bytes(PAGE) + b"from Python" + bytes(MIB - PAGE - 11)
    printed = json.loads(flashlore("info", directory, "--json"))
    assert isinstance(told, VolumeInfo)
    assert (printed["logical"], printed["history"]["snapshots"]) == (told.logical, 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """The directory of a volume that another process serves."""
    directory = tmp_path / "disk"
    with Volume.create(directory, MIB) as disk:
        disk.write(0, b"before")
    process = subprocess.Popen([sys.executable, "-m", "flashlore", "serve", directory], stderr=subprocess.DEVNULL)
    try:
        # Either may come first.
        while not all((directory / name).exists() for name in ("nbd.sock", "control.sock")):
            assert process.poll() is None
            time.sleep(0.01)
        yield directory
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def test_a_served_volume_is_asked(server: Path) -> None:
    with Volume.open(server) as disk:
        assert disk.served
        assert disk.size == MIB
        assert disk.read(0, 6) == b"before"
        disk.snapshot("kept")
        assert disk.at("kept").read(0, 6) == b"before"
        assert len(disk.at("kept").read()) == MIB
        assert disk.diff("kept").to_polars().is_empty()
        info = disk.info()
        assert isinstance(info, VolumeInfo)
        assert info.clients is not None
        assert info.clients.writers == 0
        disk.flush()
        with io.BufferedReader(disk.file()) as file:
            assert (file.writable(), file.read(6)) == (False, b"before")
        changes: list[Callable[[], object]] = [lambda: disk.write(0, b"x"), lambda: disk.trim(0, PAGE)]
        for change in changes:
            with pytest.raises(VolumeError, match="another process serves it"):
                change()
        with pytest.raises(VolumeUsageError, match="no snapshot and no mark"):
            disk.at("nobody")
        assert disk.recover("kept").changed == 0
    with pytest.raises(VolumeError, match="in use"):
        Volume.check(server)


def test_files(disk: Volume) -> None:
    with io.BufferedRandom(disk.file()) as file:
        file.write(b"hello")
        file.seek(-3, io.SEEK_END)
        file.write(b"end")
        file.seek(0)
        assert file.read(5) == b"hello"
        assert file.seek(0, io.SEEK_END) == disk.size
        assert file.read() == b""
    with disk.file() as raw:
        assert raw.seek(-2, io.SEEK_END) == disk.size - 2
        assert raw.write(b"end of the disk") == 2
        with pytest.raises(OSError, match="4194304 bytes") as full:
            raw.write(b"x")
        assert full.value.errno == errno.ENOSPC
        assert raw.seek(disk.size + 5) == disk.size + 5
        assert (raw.read(1), raw.readall(), raw.readinto(bytearray(3))) == (b"", b"", 0)
        for bad in ((-1, 0), (0, 9)):
            with pytest.raises((OSError, ValueError)):
                raw.seek(*bad)
    with io.BufferedReader(disk.at("now").file()) as old:
        assert old.read() == disk.read()
        assert not old.writable()
    with disk.at("now").file() as old_raw, pytest.raises(io.UnsupportedOperation):
        old_raw.write(b"x")


def test_memory_of_all_kinds(disk: Volume) -> None:
    numbers = np.arange(1 << 18, dtype=np.float64).reshape(512, 512)
    disk.write(1000, numbers)  # type: ignore[arg-type]  # of arrays mypy knows it from 3.12 on
    back = np.zeros_like(numbers)
    assert disk.read_into(back, np.int64(1000)) == numbers.nbytes  # type: ignore[arg-type]
    assert (back == numbers).all()
    disk.write(0, memoryview(b"abc")[1:])
    disk.write(2, bytearray(b"d"))
    disk.write(3, b"")
    disk.write(3, bytearray())
    assert (disk.read(0, 3), disk.read(disk.size, 0)) == (b"bcd", b"")
    with pytest.raises(VolumeUsageError, match="contiguous"):
        disk.write(0, numbers[:, ::2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="read-only"):
        disk.read_into(b"constant")
    with pytest.raises(TypeError, match="bytes-like"):
        disk.write(0, "text")  # type: ignore[arg-type]
    records = np.ones(3, dtype=[("O", ">i4"), ("b", "f8")])
    disk.write(5, records)  # type: ignore[arg-type]
    assert disk.read(5, records.nbytes) == records.tobytes()
    for objects in (np.array([1, "x"], dtype=object), np.zeros(2, dtype=[("a", "i4"), ("b", "O")])):
        with pytest.raises(VolumeUsageError, match=r"data: .* found references to objects"):
            disk.write(0, objects)  # type: ignore[arg-type]
        # Bytes of a disk are no objects: whoever looked at them then would crash.
        with pytest.raises(VolumeUsageError, match=r"buffer: .* found references to objects"):
            disk.read_into(objects)  # type: ignore[arg-type]
    with pytest.raises(VolumeUsageError, match="data: cannot include dtype 'M'"):
        disk.write(0, np.zeros(1, dtype="M8[ns]"))  # type: ignore[arg-type]


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, disk: Volume) -> None:
    def refused(sentence: str, kind: type[Exception], use: Callable[[], object]) -> None:
        with pytest.raises(kind, match=sentence):
            use()

    end = disk.size
    usage = VolumeUsageError
    refused(
        f"disk: bytes {end - 1} to {end + 1} do not exist, the device has {end}", usage, lambda: disk.read(end - 1, 2)
    )
    refused("do not exist", usage, lambda: disk.read(0, 1 << 60))
    refused("do not exist", usage, lambda: disk.read(end + 1))
    disk.write(0, b"kept")
    refused("do not exist", usage, lambda: disk.write(0, bytearray(end + 1)))
    assert disk.read(0, 4) == b"kept"
    refused("do not exist", usage, lambda: disk.trim(end, 1))
    refused("do not exist", usage, lambda: disk.read_into(bytearray(2), end - 1))
    refused("offset: expected a whole number .* found -1", usage, lambda: disk.read(-1, 1))
    refused("length: expected a whole number", usage, lambda: disk.trim(0, 1 << 64))
    refused('expected an instant such as .* found "10 minutes"', usage, lambda: disk.at("10 minutes"))
    refused("has not come", usage, lambda: disk.at("2500-01-01T00:00:00Z"))
    refused("the history begins at", VolumeError, lambda: disk.at("1h ago"))
    refused("a datetime with a time zone", usage, lambda: disk.at(datetime(2026, 1, 1)))  # noqa: DTZ001
    refused("cannot be a name", usage, lambda: disk.snapshot("1"))
    refused("no snapshot of", usage, lambda: disk.delete_snapshot("now"))
    refused("either all, or before", usage, disk.purge)
    refused("either all, or before", usage, lambda: disk.purge(offset=0))
    refused("only the machines of an array", usage, lambda: disk.clone(0, 1))
    refused("in use", VolumeError, lambda: Volume.open(disk.directory))
    refused("there already|File exists", VolumeError, lambda: Volume.create(disk.directory, MIB))
    refused("No such file", VolumeError, lambda: Volume.open(tmp_path / "nothing"))
    new = tmp_path / "new"
    refused(
        "invalid value 'zfs' for '--system <SYSTEM>' .possible values: plain,",
        UsageError,
        lambda: Volume.create(new, MIB, "zfs"),
    )
    refused("'--size <SIZE>': expected a size such as", UsageError, lambda: Volume.create(new, "much"))
    refused("expected a multiple of 4096 of at least 1 MiB", UsageError, lambda: Volume.create(new, 5000))
    refused("--system i-cash needs --fast", UsageError, lambda: Volume.create(new, MIB, "i-cash"))
    refused("--min-window", UsageError, lambda: Volume.create(new, MIB, on_pressure="enospc"))
    refused("it is no array", UsageError, lambda: Volume.open(disk.directory, slow_alone=True))
    assert not new.exists()


def test_a_protected_window_refuses_what_would_shorten_it(tmp_path: Path) -> None:
    options = {"min_window": timedelta(hours=1), "on_pressure": "enospc"}
    with Volume.create(tmp_path / "disk", MIB, "bvssd", **options) as disk:  # type: ignore[arg-type]
        info = disk.info()
        assert isinstance(info, VolumeInfo)
        assert info.history is not None
        assert (info.history.least_window, info.history.protected) == (3600 * 10**9, True)
        random = np.random.default_rng(1)

        def overwrite() -> None:
            for _ in range(100):
                disk.write(0, random.bytes(MIB // 4))

        with pytest.raises(VolumeError, match=r"no space|no room"):
            overwrite()


def test_arrays_have_machines(tmp_path: Path) -> None:
    media = {"fast": tmp_path / "fast", "slow": tmp_path / "slow"}
    random = np.random.default_rng(2).bytes(64 * PAGE)
    kind = {"machines": 2, "ordered": True, "mode": "write-through"}
    with Volume.create(tmp_path / "vms", "2MiB", "i-cash", **kind, **media) as array:  # type: ignore[arg-type]
        first, second = array.machines
        assert [(m.number, m.name, m.size) for m in array.machines] == [(0, "vms", 2 * MIB), (1, "vms.1", 2 * MIB)]
        first.write(0, random)
        assert array.read(0, len(random)) == random
        cloned = array.clone(0, 1)
        assert cloned.deltas + cloned.whole == 64
        second.write(5, b"mine")
        second.flush()
        assert first.read(0, len(random)) == random
        assert second.read(0, 20) == random[:5] + b"mine" + random[9:20]
        with pytest.raises(VolumeUsageError, match="an array keeps no history"):
            array.at("now")
        with pytest.raises(VolumeUsageError, match="would be lost"):
            array.clone(0, 1)
        assert array.scrub().findings == ()
    assert Volume.check(tmp_path / "vms").clean
    media["fast"].unlink()
    with pytest.raises(VolumeError, match="--slow-alone"):
        Volume.open(tmp_path / "vms")
    with Volume.open(tmp_path / "vms", slow_alone=True) as old:
        assert old.machines[1].read(5, 4) == b"mine"
        with pytest.raises(VolumeError, match="read-only"):
            old.write(0, b"x")
        with old.file() as file:
            assert not file.writable()
            with pytest.raises(io.UnsupportedOperation):
                file.write(b"x")


def test_a_page_that_has_rotted_is_named(tmp_path: Path) -> None:
    content = np.random.default_rng(3).bytes(PAGE)
    with Volume.create(tmp_path / "disk", MIB, "plain") as disk:
        disk.write(7 * PAGE, content)
    path = tmp_path / "disk" / "volume.flashlore"
    stored = bytearray(path.read_bytes())
    stored[stored.index(content)] ^= 1
    path.write_bytes(stored)
    found = Volume.check(tmp_path / "disk")
    assert not found.clean
    with Volume.open(tmp_path / "disk") as disk:
        with pytest.raises(VolumeError, match="logical page 7 cannot be read"):
            disk.read(7 * PAGE, 1)
        (one,) = disk.scrub().findings
        assert one.addresses == (7,)
        info = disk.info()
        assert isinstance(info, VolumeInfo)
        assert info.findings == (one,)
        assert disk.read(8 * PAGE, 1) == b"\0"


@given(st.integers(0, 2**64 - 1), st.integers(-2000, 2000))
def test_times_are_exact(ns: int, apart: int) -> None:
    other = min(max(ns + apart, 0), 2**64 - 1)
    a, b = Time.from_ns(ns), Time.from_ns(other)
    assert a.ns == ns
    assert (a < b, a <= b, a == b, a != b, a >= b, a > b) == (
        ns < other,
        ns <= other,
        ns == other,
        ns != other,
        ns >= other,
        ns > other,
    )
    assert (a == b) <= (hash(a) == hash(b))
    assert pickle.loads(pickle.dumps(a)).ns == ns  # noqa: S301 (its own)
    assert (a.utcoffset(), isinstance(a, datetime)) == (timedelta(0), True)
    plain = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1000)
    assert (plain == a, plain < a, a > plain) == (ns % 1000 == 0, ns % 1000 > 0, ns % 1000 > 0)


@pytest.mark.parametrize("ns", [0, 1000, 1001])
def test_a_time_equals_nothing_but_datetimes(ns: int) -> None:
    time = Time.from_ns(ns)
    for other in (None, ns, "now", time.date(), time.replace(tzinfo=None)):
        assert time != other
        assert not time == other  # noqa: SIM201 (both are ours)
    with pytest.raises(TypeError):
        assert time < ns  # type: ignore[operator]


def test_the_page_about_volumes_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "python-volume.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 (the page's)


def test_a_volume_takes_no_more_memory_than_it_is_given(tmp_path: Path) -> None:
    """So little that it does not work is refused, and what is no size; an index is as large as it may be."""
    directory = tmp_path / "disk"
    with Volume.create(directory, size="4GiB") as disk:
        usual = disk.info().index
    with pytest.raises(UsageError, match="too little for the volume"):
        Volume.open(directory, memory="1MiB")
    with pytest.raises(UsageError, match=r"memory: .*expected a size"):
        Volume.open(directory, memory="much")
    with Volume.open(directory, memory=1 << 30, index="4MiB") as disk:
        small = disk.info().index
    assert usual is not None
    assert small is not None
    assert small.most_entries < usual.most_entries
