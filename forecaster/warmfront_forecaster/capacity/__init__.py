"""Pure capacity: what one replica does; the token-level model of an engine."""
