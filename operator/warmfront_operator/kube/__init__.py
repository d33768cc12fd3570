"""The operator's only I/O: the API server, Prometheus, the forecaster."""
