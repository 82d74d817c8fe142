"""Files that documents take for granted: a reader's own traces, images and disks, and the tools of the repository.

Each is made by commands when a block names it and the document has not made it. Traces are small, and of captures
and profiles that come with the program.
"""

import re
import shlex
from pathlib import Path

from snippets.documents import REPOSITORY

# Addresses alone, 16,250 requests in the format msr.
_ADDRESSES = "flashlore trace synth financial --scale 0.005 --to msr --drop-content -o trace.csv --force"
# The same as a trace of Tencent's: seconds, first sector, sectors, whether it writes, volume.
_TENCENT = """{ print int($1 / 10000000) "," $5 / 512 "," $6 / 512 "," ($4 == "Write") ",7" }"""
# Pages of which some are equal and all are alike.
_IMAGE = """
import random
chance = random.Random(1)
pages = [(chance.randbytes(1024) + b"file " * 615)[:4096] for _ in range(64)]
open("image.raw", "wb").write(b"".join(chance.choices(pages, k=512)))
"""
# Writes of such pages with their digests, and the distinct pages in the order in which they first appear.
_DIGESTS = """
import hashlib
pages = {}
with open("image.raw", "rb") as image, open("trace.fiu", "w") as trace:
    for number in range(512):
        page = image.read(4096)
        digest = hashlib.md5(page).hexdigest()
        pages[digest] = page
        print(number * 1000, 0, "-", number * 8, 8, "W", 7, 0, digest, file=trace)
open("sqlite-bytes.pages.zst", "wb").write(b"".join(pages.values()))
"""


def _python(source: str) -> str:
    return f"python3 -c {shlex.quote(source)}"


def _digests(source: str, name: str) -> str:
    return f"{source} trace.fiu --to fiu --force; xz -0 <trace.fiu >{name}"


_TABLE = {
    "my-trace.csv.gz": f"{_ADDRESSES}; gzip <trace.csv >my-trace.csv.gz",
    "my-addresses.csv.gz": f"{_ADDRESSES}; gzip <trace.csv >my-addresses.csv.gz",
    "tencent.csv.zst": f"{_ADDRESSES}; awk -F, {shlex.quote(_TENCENT)} trace.csv | zstd -q -o tencent.csv.zst",
    "my-trace.fiu.xz": _digests("flashlore trace convert demo:django-upgrade", "my-trace.fiu.xz"),
    "t.fiu.xz": _digests("flashlore trace convert demo:sqlite-bytes", "t.fiu.xz"),
    "maildir.fiu.xz": _digests("flashlore trace convert demo:maildir", "maildir.fiu.xz"),
    "mail.fiu.xz": _digests("flashlore trace synth mail --scale 0.01 -o", "mail.fiu.xz"),
    "homes.fiu.xz": _digests("flashlore trace synth homes-7d --scale 0.01 -o", "homes.fiu.xz"),
    "image.raw": _python(_IMAGE),
    "changed.raw": f"{_python(_IMAGE)}; sed 's/file /FILE /g' image.raw >changed.raw",
    "sqlite-bytes.fiu.xz": f"{_python(_IMAGE + _DIGESTS)}; xz <trace.fiu >sqlite-bytes.fiu.xz",
    "sqlite-bytes.pages.zst": _python(_IMAGE + _DIGESTS),
    "disk": "flashlore create disk --size 256MiB",
    "tools": f"ln -s {shlex.quote(str(REPOSITORY / 'tools'))} tools",
}


def missing(block: str, directory: Path) -> dict[str, str]:
    """What a block names and the directory has not, with the commands that make each."""
    return {name: recipe for name, recipe in _TABLE.items() if _needs(block, name) and not (directory / name).exists()}


def _needs(block: str, name: str) -> bool:
    named = rf"(?<![\w./-]){re.escape(name)}(?![\w.-])"
    return re.search(named, block) is not None and not re.search(rf"""(flashlore |\.)create[ (]["']?{named}""", block)
