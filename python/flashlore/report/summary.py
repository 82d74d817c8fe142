"""The summary in words, computed from the results: what was compared, who wrote least and was fastest, what to mind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flashlore.report.groups import Group, at
from flashlore.report.table import NARROW, duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def compared(traces: Mapping[str, Sequence[Group]]) -> str:
    """Say in one sentence what ran."""
    systems = list(dict.fromkeys(group.system for groups in traces.values() for group in groups))
    seeds = max(len(group.records) for groups in traces.values() for group in groups)
    what = f"{_listed(systems)} replayed {_listed(list(traces))}"
    if len(systems) > 1:
        what = f"{number(len(systems))} systems ({_listed(systems)}) replayed {_listed(list(traces))}"
    often = f", {seeds} times each with different seeds" if seeds > 1 else ""
    return f"{what}{often}, in simulated time."


def tiles(traces: Mapping[str, Sequence[Group]]) -> list[tuple[str, str, str]]:
    """Give the winners in a few words: of writes, of response, of wear, and the longest window."""
    made = []
    for path, what in (
        ("units", "Least programmed"),
        ("response_us.all.mean", "Fastest on average"),
        ("flash.block_erases", "Fewest erases"),
    ):
        winners = [(groups, _winner(groups, path)) for groups in traces.values()]
        won = [(groups, winner) for groups, winner in winners if winner is not None]
        if not won:
            continue
        names = list(dict.fromkeys(_listed(_equals(groups, winner, path)) for groups, winner in won))
        if len(names) == 1:
            value, remark = names[0], _spread([_change(groups[0], winner, path) for groups, winner in won], won)
        else:
            value = "depends on the trace"
            remark = ", ".join(f"{winner.system} on {winner.trace}" for _, winner in won)
        made.append((what, value, remark))
    windows = [
        (window.mean, group)
        for groups in traces.values()
        for group in groups
        if (window := group.get("history.window_s")) is not None and window.mean > 0
    ]
    if windows:
        longest, group = max(windows, key=lambda pair: pair[0])
        made.append(("Longest protection window", duration(longest * 1e6), f"{group.system} on {group.trace}"))
    return made if max(len(groups) for groups in traces.values()) > 1 else []


def findings(groups: Sequence[Group]) -> list[str]:
    """Say in sentences how the systems did on one trace."""
    base = groups[0]
    said = [_asked(base)]
    if len(groups) == 1:
        said.append(_alone(base))
    else:
        said += [sentence for sentence in (_wrote(groups), _answered(groups)) if sentence]
    said += [sentence for group in groups for sentence in _saved(group)]
    return said


def caveats(traces: Mapping[str, Sequence[Group]]) -> list[str]:
    """List what a reader should mind before quoting a number."""
    found = list(_found(traces))
    every = [group for groups in traces.values() for group in groups]
    first = every[0]
    if all(len(groups) == 1 for groups in traces.values()):
        found.append("There is one system only, so nothing says whether it does better than another one.")
    elif first.system.split(" @ ")[0] != "plain":
        there = any(group.system.split(" @ ")[0] == "plain" for group in every)
        found.append(
            f"Changes are against {first.system}, the system named first"
            + ("." if there else "; the plain SSD was not among the systems.")
        )
    seeds = max(len(group.records) for group in every)
    if seeds > 1:
        found.append(
            f"Numbers with ± are means over {seeds} seeds with their 95 % confidence intervals by Student's t. Where "
            "two intervals overlap, a difference may be chance, and its colour is neutral."
        )
    elif any(_random(group.record) for group in every):
        found.append("Random choices decided parts of these runs, and there is one seed each: no intervals are known.")
    return list(dict.fromkeys(found))


def _found(traces: Mapping[str, Sequence[Group]]) -> Iterator[str]:
    """Tell the findings of the core, those of several systems once."""
    for trace, groups in traces.items():
        told: list[Mapping[str, Any]] = []
        for finding in (finding for group in groups for finding in group.findings):
            if finding not in told:
                told.append(finding)
                yield f"On {trace}, {_listed(finding['systems'])} ({finding['id']}): {finding['sentence']}"


def _asked(group: Group) -> str:
    host = group.record["host"]
    parts = [
        f"{number(host[key])} {word}"
        for key, word in (("read_pages", "read"), ("write_pages", "written"), ("trim_pages", "trimmed"))
        if host[key]
    ]
    units = f"; units of 4 KiB: {', '.join(parts)}" if parts else ""
    return f"{number(host['requests'])} requests{units}."


def _alone(group: Group) -> str:
    units, waf, mean = (group.get(path) for path in ("units", "waf_total", "response_us.all.mean"))
    text = (
        f"{group.system} programmed {number(round(units.mean))} units"
        if units
        else f"{group.system} programmed nothing"
    )
    if waf is not None:
        text += f", {number(waf.mean)} for each unit written"
    if mean is not None:
        text += f", and answered a request in {duration(mean.mean)} on average"
    return text + "."


def _wrote(groups: Sequence[Group]) -> str:
    base, best = groups[0], _least(groups, "units")
    if best is None:
        return ""
    if _winner(groups, "units") is None:
        return _unjudged(groups, "units", "units programmed")
    units, waf = best.get("units"), best.get("waf_total")
    text = (
        f"{_listed(_equals(groups, best, 'units'))} programmed least: {number(round(units.mean))} units"
        if units
        else ""
    )
    if waf is not None:
        text += f", {number(waf.mean)} for each unit written"
    return text + _against(base, best, "units", "fewer") + "."


def _answered(groups: Sequence[Group]) -> str:
    base, best = groups[0], _least(groups, "response_us.all.mean")
    if best is None:
        return ""
    if _winner(groups, "response_us.all.mean") is None:
        return _unjudged(groups, "response_us.all.mean", "the mean response")
    mean, tail = best.get("response_us.all.mean"), best.get("response_us.all.p99")
    path = "response_us.all.mean"
    text = (
        f"{_listed(_equals(groups, best, path))} answered fastest: {duration(mean.mean if mean else None)} on average"
    )
    text += _against(base, best, "response_us.all.mean", "less")
    if tail is not None:
        text += f"; 99{NARROW}% of its requests took at most {duration(tail.mean)}"
    slow = max(groups, key=lambda group: _mean(group, "response_us.all.mean"))
    if slow is not best:
        text += f". Slowest was {slow.system} with {duration(_mean(slow, 'response_us.all.mean'))}"
    return text + "."


def _unjudged(groups: Sequence[Group], path: str, what: str) -> str:
    """Say why nobody is the best by a measure."""
    if not any(group.doubts(path) for group in groups):
        return f"The systems' differences in {what} are within their intervals: none is the best by it."
    names = {
        finding["id"] for group in groups if group.doubts(path) for finding in group.findings if finding["doubtful"]
    }
    return f"By {what} none is called the best: see below ({', '.join(sorted(names))})."


def _saved(group: Group) -> Iterator[str]:
    hits, misses = (_mean(group, f"dedup.{name}") for name in ("hits", "misses"))
    if hits:
        yield f"{group.system} found {_share(hits / (hits + misses))} of the writes it hashed to be duplicates."
    encoded, written = _mean(group, "delta.encoded"), _mean(group, "host.write_pages")
    if encoded and written:
        text = f"{group.system} stored {_share(encoded / written)} of the writes as differences"
        size = _mean(group, "delta.mean_rc")
        yield text + (f", of {size * 100:.0f}{NARROW}% of a page on average." if size else ".")
    window = group.get("history.window_s")
    if window is not None and window.mean > 0:
        yield f"{group.system} could go back to any instant of the last {duration(window.mean * 1e6)}."


def _share(part: float) -> str:
    return f"{100 * part:.1f}{NARROW}%"


def _against(base: Group, best: Group, path: str, word: str) -> str:
    first, least = base.get(path), best.get(path)
    if base is best or first is None or least is None or not first.mean:
        return ""
    if not first.apart(least):
        return f", which is within the intervals of {base.system}"
    return f", {-100 * (least.mean / first.mean - 1):.1f}{NARROW}% {word} than {base.system}"


def _mean(group: Group, path: str) -> float:
    estimate = group.get(path)
    return estimate.mean if estimate else 0.0


def _least(groups: Sequence[Group], path: str) -> Group | None:
    # A system whose flash did nothing, such as one of disks alone, is no winner in that; to answer at once is.
    having = [g for g in groups if _mean(g, path) > 0 or (path.startswith("response") and g.get(path) is not None)]
    least = min(having, key=lambda group: _mean(group, path), default=None)
    if least is None or all(_mean(group, path) == _mean(least, path) for group in having):
        return None
    return least


def _winner(groups: Sequence[Group], path: str) -> Group | None:
    """Choose the best system, if a number that can be trusted says so: tiles and sentences judge by it alike."""
    best = _least(groups, path)
    if best is None or any(group.doubts(path) for group in groups):
        return None
    first = groups[0].get(path), best.get(path)
    if best is not groups[0] and first[0] is not None and first[1] is not None and not first[0].apart(first[1]):
        return None
    return best


def _equals(groups: Sequence[Group], best: Group, path: str) -> list[str]:
    """Name the best system, and those that are as good."""
    return [group.system for group in groups if group is best or _mean(group, path) == _mean(best, path)]


def _change(base: Group, best: Group, path: str) -> float:
    return _mean(best, path) / _mean(base, path) - 1 if _mean(base, path) else 0.0


def _spread(changes: Sequence[float], won: Sequence[tuple[Sequence[Group], Group]]) -> str:
    base = won[0][0][0].system
    if all(winner is groups[0] for groups, winner in won):
        return "the baseline"
    low, high = min(changes), max(changes)
    where = f"against {base}" + (f", {len(won)} traces" if len(won) > 1 else "")
    both = percent(low) if percent(low) == percent(high) else f"{percent(low)} to {percent(high)}"
    return f"{both} {where}"


def _random(record: Mapping[str, Any]) -> bool:
    return bool(
        at(record, "configuration.device.precondition.overwrite") not in (None, "none")
        or at(record, "configuration.device.gc.policy") == "d-choices"
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return names[0]
