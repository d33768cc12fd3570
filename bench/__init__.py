"""Benchmarks: ratios against a baseline in the same run, and the goals that they are held to. `make bench-NAME`."""
