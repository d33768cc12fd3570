"""The real vLLM on CPU, in a virtual environment of its own: set up once, started by the tests that need it."""
