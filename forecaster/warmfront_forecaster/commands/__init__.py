"""Subcommands of `warmfront` that compute: their arguments, tables and plots."""
