"""Pure operator logic: observation, checks, conditions, manifests."""
