"""The forecaster's only I/O: Prophet, Prometheus."""
