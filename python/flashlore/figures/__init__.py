"""Figures of results: one file a family, all in the looks of `theme`."""
