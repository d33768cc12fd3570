"""The OpenAI-compatible gateway in each pod."""
