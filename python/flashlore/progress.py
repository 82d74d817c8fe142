"""Progress bars, in terminals and notebooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = bool | Callable[[int, int], object] | None
"""`None` shows a bar where somebody sees it, true always, false never; a function is called many times a second with
the requests done and those to be done."""

_Report: TypeAlias = Callable[[int, int, int], object]


@contextmanager
def shown(progress: Progress) -> Iterator[_Report | None]:
    """Give what the core calls while it works."""
    if callable(progress):
        yield lambda done, total, _prepared: progress(done, total)
        return
    if progress is False:
        yield None
        return
    from tqdm.auto import tqdm  # noqa: PLC0415 (slow to import)
    from tqdm.std import tqdm as terminal  # noqa: PLC0415

    # A notebook is no terminal and shows bars all the same.
    in_notebook = tqdm.__mro__[1] is not terminal
    disable = False if progress or in_notebook else None
    with tqdm(disable=disable, unit=" requests", unit_scale=True, leave=False) as bar:

        def report(done: int, total: int, prepared: int) -> None:
            if total and bar.total != total:
                bar.reset(total)
            if prepared and not done:
                bar.set_postfix_str(f"{prepared:,} pages prepared", refresh=False)
            bar.update(done - bar.n)

        yield None if bar.disable else report
