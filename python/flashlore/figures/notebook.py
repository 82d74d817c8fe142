"""Figures in notebooks: an output holds the figure for Vega-Lite, and a picture of it for whatever cannot draw.

Nothing is fetched: neither when a figure is drawn nor when a stored notebook is opened. A picture is a raster of the
figure as it is at first; what answers the pointer is in the figure alone.
"""

from __future__ import annotations

import zlib
from typing import Any

import altair as alt
import vl_convert

from flashlore.figures import theme as themes

_NAME = "flashlore"
# Pixels of a picture for each of the figure, for screens that have more.
_SCALE = 1.5
_SIGNATURE = 8


def in_notebooks() -> None:
    """Let the charts of this process show in notebooks as Vega-Lite and as a picture, without a network."""
    if _NAME not in alt.renderers.names():
        alt.renderers.register(_NAME, _bundle)
    alt.renderers.enable(_NAME)


def _bundle(spec: dict[str, Any], **_options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the forms of a figure by their types, and what is to be known of them."""
    major, minor = alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2]
    dark = spec.get("config", {}).get("axis", {}).get("labelColor") == themes.MUTED[1]
    # The page it stands on may be of the other kind.
    solid = {**spec, "background": themes.GROUND[dark]}
    picture = vl_convert.vegalite_to_png(solid, vl_version=f"{major}.{minor}", scale=_SCALE)
    width, height = (round(int.from_bytes(picture[at : at + 4], "big") / _SCALE) for at in (16, 20))
    bundle = {
        f"application/vnd.vegalite.v{major}+json": spec,
        "image/png": _squeezed(picture),
        "text/plain": "<figure>",
    }
    return bundle, {"image/png": {"width": width, "height": height}}


def _squeezed(picture: bytes) -> bytes:
    """Compress the pixels of a PNG as far as they go, which is a third of what comes."""
    chunks: list[tuple[bytes, bytes]] = []
    at = _SIGNATURE
    while at < len(picture):
        length = int.from_bytes(picture[at : at + 4], "big")
        chunks.append((picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]))
        at += length + 12
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    head, *_, end = chunks
    whole = (head, (b"IDAT", zlib.compress(pixels, 9)), end)
    return picture[:_SIGNATURE] + b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big") for kind, data in whole
    )
