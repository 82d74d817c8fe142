"""Figures of results, as Altair charts: one file a family, all in the looks of `theme`.

Each function takes a frame in the shape of a file of `--out`, and `theme`, which is `light` or `dark`. Several traces
in a frame stand side by side.
"""

from flashlore.figures.notebook import in_notebooks
from flashlore.figures.programs import change, programs_by_cause
from flashlore.figures.response import response_cdf, response_percentiles
from flashlore.figures.settings import against, amplification, protection_window
from flashlore.figures.tables import Tables
from flashlore.figures.timeline import over_time
from flashlore.figures.utilization import utilization, utilization_of
from flashlore.figures.values import miss_ratio, overwrite_distances, popularity, request_sizes, stack_distances
from flashlore.figures.victims import valid_per_victim
from flashlore.figures.wear import wear_distribution, wear_spread

__all__ = [
    "Tables",
    "against",
    "amplification",
    "change",
    "in_notebooks",
    "miss_ratio",
    "over_time",
    "overwrite_distances",
    "popularity",
    "programs_by_cause",
    "protection_window",
    "request_sizes",
    "response_cdf",
    "response_percentiles",
    "stack_distances",
    "utilization",
    "utilization_of",
    "valid_per_victim",
    "wear_distribution",
    "wear_spread",
]
