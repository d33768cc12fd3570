"""An engine that speaks vLLM's HTTP API on a token-level model: start-up, speed and KV capacity are settings."""
