"""Forecasts demand per service, in replica-equivalents, and says how far each forecast may be trusted."""
