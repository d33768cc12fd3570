"""Pure admission: bounds per request; no HTTP, the clock is an argument."""
