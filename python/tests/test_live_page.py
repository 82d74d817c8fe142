"""The live page of a served volume and of an array, in a browser."""

import http.client
import math
import random
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, expect

if TYPE_CHECKING:
    from types import TracebackType

    from conftest import Open

PAGE = 4096
SCRIPTS = Path(__file__).parents[2] / "crates/serve/src/metrics/page"
REFUSED = "net::ERR_CONNECTION_REFUSED"
# What NBD calls its options, flags and commands.
_EXPORT_NAME, _NO_ZEROES = 1, 2
_READ, _WRITE, _DISCONNECT, _FLUSH, _TRIM = 0, 1, 2, 3, 4


def run(place: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "flashlore", *arguments], cwd=place, check=True, capture_output=True)


class Server:
    """A volume or an array that is served; `address` is its live page."""

    def __init__(self, place: Path, name: str, *more: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "flashlore", "serve", name, "--listen", "./nbd.sock"]
        metrics = ["--metrics", f"127.0.0.1:{port}", *more]
        self._process = subprocess.Popen([*command, *metrics], cwd=place, stderr=subprocess.PIPE, text=True)
        self.socket = place / "nbd.sock"
        self.export = name
        assert self._process.stderr is not None
        told = ""
        while "serving nbd" not in told:
            line = self._process.stderr.readline()
            assert line, told
            told += line
        found = re.search(r"a live page at (http://127\.0\.0\.1:(\d+)/)\n", told)
        assert found, told
        self.address, self.port = found[1], int(found[2])

    def metrics(self) -> dict[str, str]:
        """Each sample, by name and labels."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def served(place: Path, name: str, *more: str) -> Iterator[Server]:
    server = Server(place, name, *more)
    try:
        yield server
    finally:
        server.kill()


class Client:
    """As much of an NBD client as is needed: one request at a time; what the server refuses is an `OSError`."""

    def __init__(self, path: Path, export: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        magic, options, _flags = struct.unpack(">8s8sH", self._receive(18))
        assert (magic, options) == (b"NBDMAGIC", b"IHAVEOPT")
        name = export.encode()
        self._socket.sendall(struct.pack(">I8sII", 1 | _NO_ZEROES, b"IHAVEOPT", _EXPORT_NAME, len(name)) + name)
        self.size, _flags = struct.unpack(">QH", self._receive(10))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        with self._socket, suppress(OSError):
            self._send(_DISCONNECT, 0, 0)

    def _receive(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._socket.recv(count)
            if not part:
                raise ConnectionError("the server is gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _send(self, kind: int, offset: int, length: int, data: bytes = b"") -> None:
        self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, kind, 0, offset, length) + data)

    def _ask(self, kind: int, offset: int, length: int, data: bytes = b"") -> None:
        self._send(kind, offset, length, data)
        _magic, error, _cookie = struct.unpack(">IIQ", self._receive(16))
        if error:
            raise OSError(error, "the server answered with an error")

    def read(self, offset: int, length: int) -> bytes:
        self._ask(_READ, offset, length)
        return self._receive(length)

    def write(self, offset: int, data: bytes) -> None:
        self._ask(_WRITE, offset, len(data), data)

    def trim(self, offset: int, length: int) -> None:
        self._ask(_TRIM, offset, length)

    def flush(self) -> None:
        self._ask(_FLUSH, 0, 0)


class Load(threading.Thread):
    """A client that reads and writes all kinds of pages until it is stopped, or the server is."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._stopped = threading.Event()

    def run(self) -> None:
        with suppress(OSError), Client(self._server.socket, self._server.export) as client:
            self._load(client)

    def _load(self, client: Client) -> None:
        draw = random.Random(1)  # noqa: S311
        written = draw.randbytes(PAGE)
        while not self._stopped.is_set():
            page = draw.randrange(client.size // PAGE // 2) * PAGE
            changed = bytearray(written)
            changed[:32] = draw.randbytes(32)
            client.write(0, bytes(changed))
            client.write(page, written)
            client.write(page + PAGE, draw.randbytes(PAGE))
            client.write(page, draw.randbytes(800) + bytes(PAGE - 800))
            client.read(page, 2 * PAGE)
            client.trim(page, PAGE)
            client.flush()
            self._stopped.wait(0.01)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Server]:
    run(tmp_path, "create", "disk", "--size", "16MiB")
    with served(tmp_path, "disk") as server:
        yield server


def asked(page: Page) -> list[str]:
    """Addresses that the page asks for from now on."""
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    return addresses


def ask(page: Page) -> None:
    """Let the page ask now: it does when it is seen again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def wait_for_answers(page: Page, count: int) -> None:
    for _ in range(count):
        # Charts need something between two answers.
        page.wait_for_timeout(300)
        # What an answer says is shown in the same turn as when it came.
        page.evaluate("document.querySelector('#when').textContent = ''")
        ask(page)
        expect(page.locator("#when")).to_contain_text("Last answer")


def charts_without_marks(page: Page) -> list[str]:
    empty = """canvases => canvases.filter(canvas => !canvas.querySelector("path.line, path.area, circle.dot"))
                                   .map(canvas => canvas.ariaLabel)"""
    found: list[str] = page.eval_on_selector_all(".canvas", empty)
    return found


def bytes_said(text: str) -> float:
    number, unit = text.replace(",", "").split("\u00a0")
    return float(number) * 1024 ** ["B", "KiB", "MiB", "GiB"].index(unit)


def tile(page: Page, title: str) -> str:
    text = page.locator("#tiles dl > div", has_text=title).locator(".value").text_content()
    assert text
    return text


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(page: Page, selector: str, ground: str) -> float:
    of = "([selector, what]) => getComputedStyle(document.querySelector(selector))[what]"
    what = "fill" if "text" in selector else "color"
    colours = [page.evaluate(of, [selector, what]), page.evaluate(of, [ground, "backgroundColor"])]
    dark, light = sorted(luminance(colour) for colour in colours)
    return (light + 0.05) / (dark + 0.05)


def no_number_is_negative(page: Page) -> None:
    shown = page.locator(".legend b, .value, td").all_text_contents()
    assert shown
    assert not [text for text in shown if text.startswith(("-", "\u2212")) or "NaN" in text or "undefined" in text]


def test_a_volume_under_load_is_shown_as_it_is(volume: Server, visit: "Open") -> None:
    load = Load(volume)
    load.start()
    with visit(volume.address) as visited:
        page = visited.page
        expect(page.locator("#state")).to_have_text("Serving")
        expect(page.locator("h1")).to_have_text("disk")
        expect(page.locator("#contents a")).to_have_count(8)
        wait_for_answers(page, 3)
        assert page.locator(".canvas").count() == 14
        assert charts_without_marks(page) == []
        load.stop()
        # The volume rests from now on: what is shown is what is answered.
        page.locator("summary").click()
        wait_for_answers(page, 2)
        answered = volume.metrics()
        rows = page.locator("#everything tbody tr:has(code)").all_text_contents()
        assert len(rows) == len(answered)
        # To answer, a volume looks at rows of its tables.
        moving = ("flashlore_window_seconds", "flashlore_clients", "flashlore_table_rows_total")
        for key, value in answered.items():
            if not key.startswith(moving):
                assert any(row.startswith(key) and float(row[len(key) :]) == float(value) for row in rows), key
        said, true = bytes_said(tile(page, "Stored")), float(answered["flashlore_stored_bytes"])
        assert math.isclose(said, true, rel_tol=0.01)
        assert tile(page, "Free blocks") == answered["flashlore_free_blocks"]
        no_number_is_negative(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            for selector, ground in {
                "h1": "body",
                ".remark": ".tiles > div",
                ".part p": ".part",
                ".legend li": ".part",
                ".grid text": ".part",
                "#state": "body",
            }.items():
                assert contrast(page, selector, ground) >= 4.5, (scheme, selector)
            for width in (400, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                drawn = page.eval_on_selector_all(
                    ".canvas", "all => all.map(one => one.firstChild.width.baseVal.value)"
                )
                assert all(0 < one <= width for one in drawn)
        assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.1


def test_a_keyboard_reaches_everything(volume: Server, visit: "Open") -> None:
    with visit(volume.address) as visited:
        page = visited.page
        wait_for_answers(page, 1)
        met = []
        for _ in range(60):
            page.keyboard.press("Tab")
            one: dict[str, Any] = page.evaluate(
                """() => { const one = document.activeElement, style = getComputedStyle(one);
                    return { what: one.className || one.id || one.localName, seen: style.outlineStyle !== "none" }; }"""
            )
            if one["what"] == "body":
                break
            assert one["seen"], one
            met.append(one["what"])
        assert met[:2] == ["skip", "pause"]
        assert met.count("canvas") == 14
        assert "summary" in met
        canvas = page.locator(".canvas").first
        canvas.focus()
        page.keyboard.press("Home")
        expect(page.locator(".when").first).to_have_text(re.compile(r"^at \d\d:\d\d:\d\d$"))
        expect(page.locator("#said")).to_have_text(re.compile(r"Reads .*, Writes "))
        page.keyboard.press("Escape")
        expect(page.locator(".when").first).to_have_text("")
        pause = page.locator("#pause")
        pause.focus()
        page.keyboard.press("Enter")
        expect(pause).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#state")).to_have_text("Paused")
        page.wait_for_timeout(100)
        addresses = asked(page)
        page.wait_for_timeout(2500)
        assert addresses == []
        page.keyboard.press("Enter")
        expect(page.locator("#state")).to_have_text("Serving")
        # Nor is anything asked by a tab that nobody sees.
        hide = "hidden => Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true })"
        page.evaluate(hide, arg=True)
        addresses.clear()
        page.wait_for_timeout(2500)
        assert addresses == []
        page.evaluate(hide, arg=False)
        wait_for_answers(page, 1)


def test_a_server_that_goes_and_comes_back_is_followed(tmp_path: Path, volume: Server, visit: "Open") -> None:
    load = Load(volume)
    load.start()
    with visit(volume.address) as visited:
        page = visited.page
        wait_for_answers(page, 2)
        volume.kill()
        load.stop()
        ask(page)
        state = page.locator("#state")
        expect(state).to_have_text("No answer")
        expect(page.locator("#more")).to_contain_text("What is shown is from")
        again = Server(tmp_path, "disk", port=volume.port)
        try:
            ask(page)
            expect(state).to_have_text("Serving")
            expect(page.locator("#note")).to_contain_text("started anew")
            wait_for_answers(page, 1)
            no_number_is_negative(page)
            # Two runs, two pieces of a line.
            pieces = "all => all.map(one => one.querySelectorAll('.line, .dot').length)"
            assert page.eval_on_selector_all("#collection .canvas", pieces)[-1] == 2
        finally:
            again.kill()
        assert visited.complaints
        assert all(REFUSED in one or one.endswith("could not be fetched") for one in visited.complaints)
        visited.complaints.clear()


def test_an_array_is_shown_by_what_it_has(tmp_path: Path, visit: "Open") -> None:
    media = ["--fast", "ssd.img", "--slow", "hdd.img"]
    run(tmp_path, "create", "array", "--system", "i-cash", *media, "--size", "4MiB", "--machines", "2")
    with served(tmp_path, "array") as server:
        load = Load(server)
        load.start()
        with visit(server.address, size=(400, 800), scheme="dark") as visited:
            page = visited.page
            expect(page.locator("#system")).to_have_text(re.compile(r"^Array of 8.MiB: i-cash$"))
            wait_for_answers(page, 2)
            titles = page.locator("main h2").all_text_contents()
            assert titles == ["Requests", "Response", "Machines", "Blocks", "Media", "Durability"]
            assert page.locator("#machines .bar").count() == 2
            assert charts_without_marks(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            no_number_is_negative(page)
        load.stop()


def test_names_are_text_and_reasons_are_told(tmp_path: Path, visit: "Open") -> None:
    name = "<img src=x onerror='document.title=1'>\"\\"
    run(tmp_path, "create", name, "--size", "1MiB")
    with served(tmp_path, name, "--read-only") as server, visit(server.address) as visited:
        page = visited.page
        expect(page.locator("h1")).to_have_text(name)
        assert page.locator("img").count() == 0
        assert page.title().startswith(name)
        expect(page.locator("#state")).to_have_text("Read-only")
        expect(page.locator("#more")).to_have_text("the volume is served read-only")
        commands = page.locator("pre").text_content()
        assert commands
        assert "flashlore log '<img src=x onerror='\\''document.title=1'\\''>\"\\'\n" in commands
        # The browser itself says what /health answered.
        assert ["503" in one for one in visited.complaints] == [True]
        visited.complaints.clear()


@pytest.fixture(scope="module")
def functions(browser: Browser) -> Iterator[Page]:
    """A page that has the functions of the script."""
    page = browser.new_page()
    for name in ("samples.js", "words.js", "chart.js"):
        page.add_script_tag(path=SCRIPTS / name)
    yield page
    page.close()


ENDS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2]


@settings(max_examples=25)
@given(times=st.lists(st.floats(4e-6, 9e-3), min_size=1, max_size=40), share=st.sampled_from([0.5, 0.9, 0.99, 1]))
def test_an_estimated_percentile_lies_in_the_band_of_the_true_one(
    functions: Page, times: list[float], share: float
) -> None:
    bands = [[end, sum(time <= end for time in times)] for end in ENDS]
    estimate = functions.evaluate("([bands, share]) => percentile(bands, share)", [bands, share])
    true = sorted(times)[math.ceil(share * len(times) - 1e-9) - 1]
    band = next(place for place, end in enumerate(ENDS) if true <= end)
    begin = ENDS[band - 1] if band else ENDS[0] / 3
    assert begin * 0.999999 <= estimate <= ENDS[band] * 1.000001


@settings(max_examples=25)
@given(label=st.text(max_size=12), value=st.floats(0, 1e15))
def test_what_is_written_in_the_text_format_is_read_from_it(functions: Page, label: str, value: float) -> None:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    text = f'# HELP a Help.\n# TYPE a gauge\na{{x="{escaped}",y="1"}} {value}\nnonsense\n'
    read = functions.evaluate("text => parseMetrics(text).families[0].samples.map(s => [{...s.labels}, s.value])", text)
    assert [[labels, float(number)] for labels, number in read] == [[{"x": label, "y": "1"}, value]]


@settings(max_examples=25)
@given(most=st.floats(1, 1e15), ticks=st.sampled_from(["tensTo", "powersTo", "timesTo"]))
def test_scales_hold_what_they_show_in_few_steps(functions: Page, most: float, ticks: str) -> None:
    found = functions.evaluate(f"most => {ticks}(most)", most)
    assert found[0] == 0
    assert found[-1] >= most * 0.9999
    assert 2 <= len(found) <= 5 + (ticks == "timesTo")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("bytes(0)", "0\u00a0B"),
        ("bytes(1536)", "1.5\u00a0KiB"),
        ("bytes(5e12)", "4.55\u00a0TiB"),
        ("time(0.00042)", "420\u00a0µs"),
        ("time(2.5)", "2.5\u00a0s"),
        ("duration(59.9)", "59\u00a0s"),
        ("duration(7980)", "2\u00a0h 13\u00a0min"),
        ("percent(share(1, 0))", "0\u00a0%"),
        ("number(undefined)", "\u2013"),
        ("shellWord('disk')", "disk"),
        ("shellWord('-x')", "'-x'"),
    ],
)
def test_numbers_are_said_in_words(functions: Page, call: str, expected: str) -> None:
    assert functions.evaluate(call) == expected


# What a volume answers, and what each of its counters grew by ten seconds later: no two alike.
STANDS = {
    "size_bytes": 2**24,
    "logical_bytes": 2**20,
    "stored_bytes": 2**19,
    "capacity_bytes": 2**23,
    "used_bytes": 2**18,
    "old_version_bytes": 2**20,
    'saved_bytes{by="dedup"}': 2**17,
    'saved_bytes{by="delta"}': 2**16,
    'saved_bytes{by="compression"}': 2**15,
    'value_bytes{as="whole"}': 2**14,
    'value_bytes{as="delta"}': 2**13,
    'value_bytes{as="compressed"}': 2**12,
    "window_seconds": 7200,
    "window_start_timestamp_seconds": 0,
    "history_entries": 40,
    "history_entries_limit": 400,
    "snapshots": 2,
    "write_amplification": 1.5,
    "blocks": 100,
    "free_blocks": 30,
    'block_erases{quantile="0"}': 1,
    'block_erases{quantile="0.5"}': 4,
    'block_erases{quantile="1"}': 9,
    "checkpoints_total": 6,
    "opened_total": 3,
    "changes_not_durable": 7,
    'clients{may="write"}': 1,
    'clients{may="read"}': 2,
}
GROWS = {
    **{f'requests_total{{kind="{kind}"}}': 100 * (at + 1) for at, kind in enumerate(("read", "write", "zero", "trim"))},
    'requests_total{kind="flush"}': 500,
    'request_bytes_total{kind="read"}': 40 * 1024,
    'request_bytes_total{kind="write"}': 80 * 1024,
    'host_pages_total{kind="write"}': 1000,
    **{f'programmed_pages_total{{for="{what}"}}': at + 1 for at, what in enumerate(("packs", "merges", "wear"))},
    'programmed_pages_total{for="host"}': 1900,
    'programmed_pages_total{for="collection"}': 90,
    'programmed_pages_total{for="padding"}': 4,
    'collected_blocks_total{for="room"}': 6,
    'collected_blocks_total{for="wear"}': 7,
    'dedup_writes_total{found="same"}': 100,
    'dedup_writes_total{found="elsewhere"}': 300,
    'dedup_writes_total{found="nothing"}': 600,
    'encoded_writes_total{as="delta"}': 20,
    'encoded_writes_total{as="compressed"}': 30,
    "erases_total": 12,
    **{
        f'request_seconds_bucket{{kind="{kind}",le="{le}"}}': count
        for kind, counts in {"read": (100, 100, 100), "write": (0, 200, 200), "flush": (0, 0, 500)}.items()
        for le, count in zip(("0.001", "0.01", "+Inf"), counts, strict=True)
    },
    'request_seconds_sum{kind="read"}': 0.05,
    'request_seconds_sum{kind="write"}': 1.0,
    'request_seconds_sum{kind="flush"}': 10.0,
    'request_seconds_count{kind="read"}': 100,
    'request_seconds_count{kind="write"}': 200,
    'request_seconds_count{kind="flush"}': 500,
}
SHOWN = {
    "tiles": "512 KiB|10.9 %|9.77 ms|2 h|2|30",
    "Requests a second": "Reads 10/s|Writes 20/s|Writes of zeros 30/s|Trims 40/s|Flushes 50/s",
    "Bytes a second": "Read 4 KiB/s|Written 8 KiB/s",
    "Mean time": "Reads 500 µs|Writes 5 ms|Flushes 20 ms",
    "Time within which 99 % are done": "Reads 989 µs|Writes 9.77 ms|Flushes 10 ms",
    "Bytes": "Clients can read 1 MiB|Stored, old versions too 512 KiB|Of old versions 1 MiB",
    "Saved against plain pages": "Saved 10.9 %",
    "Pages written, by what was found": "New content 60/s|Known from elsewhere 30/s|What was there already 10/s",
    "Pages written encoded": "As deltas 2/s|Compressed 3/s",
    "How far back it goes": "Window 2 h",
    "Changes remembered": "Changes of pages remembered 40",
    "Pages programmed a second, by cause": "Pages of clients 190/s|Packed pages 0.1/s|Materialized 0.2/s|"
    "Moved by collection 9/s|Moved for even wear 0.3/s|Padding 0.4/s",
    "Free blocks": "Free blocks 30",
    "Write amplification": "Programmed for each page written 2",
    "Changes that no flush has made durable yet": "Not durable yet 7",
    "As plain pages it would take": "2 MiB",
    "Stored and saved": "2 MiB",
    "Capacity in use": "256 KiB of 8 MiB, 3.13 %",
    "Written to by clients": "1 MiB of 16 MiB, 6.25 %",
    "Room for changes in use": "40 of 400, 10 %",
    "Blocks in use": "70 of 100, 70 %",
    "Reads": "100|500 µs|577 µs|989 µs|999 µs",
    "Writes": "200|5 ms|3.16 ms|9.77 ms|9.98 ms",
    "Flushes": "500|20 ms|> 10 ms|> 10 ms|> 10 ms",
}


def test_every_number_is_shown_under_its_name(browser: Browser) -> None:
    """Two answers ten seconds apart, given to the script itself."""
    names = ("samples", "words", "chart", "parts", "requests", "volume", "array", "sections")
    script = "".join((SCRIPTS / f"{name}.js").read_text() for name in names)
    page = browser.new_page()
    page.add_script_tag(content=script + "\nwindow.parts = { Reading, Past, SECTIONS, tilesFor };", type="module")
    # A module runs some time after it was added.
    page.wait_for_function("window.parts")

    def answer(stretches: int) -> str:
        told = STANDS | {key: 1000 + by * stretches for key, by in GROWS.items()}
        families = {re.sub(r"(_bucket|_sum|_count)?({.*)?$", "", key) for key in told}
        types = [f"# TYPE flashlore_{name} {'counter' if name.endswith('_total') else 'gauge'}" for name in families]
        return "\n".join([*types, *(f"flashlore_{key} {value}" for key, value in told.items())])

    shown: dict[str, str] = page.evaluate(
        """([before, after]) => {
            const { Reading, Past, SECTIONS, tilesFor } = window.parts;
            const past = new Past(600000);
            const [old, now] = [new Reading(before, 0, new Date(0)), new Reading(after, 10000, new Date(10000))];
            [old, now].forEach((reading) => past.push(reading));
            const found = {};
            const texts = (all) => [...all].filter((one) => !one.hidden).map((one) => one.textContent).join("|");
            const top = tilesFor(now);
            top.show(now, past);
            found.tiles = texts(top.list.querySelectorAll(".value"));
            for (const { applies, build } of SECTIONS.filter((section) => section.applies(now))) {
                const { parts, charts, show } = build();
                document.body.append(...parts);
                for (const chart of charts) {
                    chart.push(old, undefined, undefined);
                    chart.push(now, old, past.since(10000));
                    found[chart.options.title] = texts(chart.legend.children);
                }
                show(now, past);
            }
            for (const bar of document.querySelectorAll(".bar p"))
                found[bar.firstChild.textContent.trim()] = bar.querySelector("b").textContent;
            for (const row of document.querySelectorAll("tbody tr"))
                if (!row.hidden) found[row.cells[0].textContent] = texts([...row.cells].slice(1));
            found.text = [...document.querySelectorAll("p, figcaption")].map((one) => one.textContent).join("\\n");
            return found;
        }""",
        [answer(0), answer(1)],
    )
    page.close()
    shown = {name: text.replace("\u00a0", " ") for name, text in shown.items()}
    said = shown.pop("text")
    assert {name: shown.get(name) for name in SHOWN} == SHOWN
    for sentence in (
        "1 client may write, 2 clients may only read.",
        "32.5 % were known from elsewhere, 27.5 % were there already, and 51.2 % were stored encoded.",
        "The volume goes back 2 h",
        "It stays as long as it is",
        "2 snapshots are kept whatever is written.",
        "In the last minute 6 blocks were collected; that moved 15 pages for each.",
        "the flash programmed 2 in the last minute, 1.5 since the volume was opened.",
        "Least worn block: 1 erases since the volume was made; half of all at most 4; most worn: 9.",
    ):
        assert sentence in said
