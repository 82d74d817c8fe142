"""Sweeps: grids of traces, systems, devices, settings and seeds, on this machine or a cluster.

What users need is `flashlore.sweep`, `Grid`, `Sweep`, `LocalExecutor` and `DaskExecutor`. Nothing is imported here, so
that a worker loads what it needs and no more.

| module | what it is |
|---|---|
| `axes` | values of a setting: lists and ranges |
| `sources` | traces of a grid and their checksums |
| `grid` | `Grid`, and its expansion to points |
| `reading` | grids from TOML |
| `cell` | points with everything that decides them, and their keys |
| `work` | what a worker does with a cell |
| `executors` | what a sweep expects of an executor |
| `local`, `worker` | cells in processes of this machine |
| `cluster` | cells on Dask |
| `frames` | records to rows, rows to results |
| `store` | the directory |
| `running` | `sweep` |
| `command` | what `flashlore sweep` prints |
"""
