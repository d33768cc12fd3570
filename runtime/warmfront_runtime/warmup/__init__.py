"""When a pod counts as warm."""
