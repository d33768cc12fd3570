"""What the set-up raises; the message says what to do."""


class VllmSetupError(Exception):
    """Root of all."""


class UnfitMachineError(VllmSetupError):
    """The machine lacks something that the set-up does not bring."""


class StepFailedError(VllmSetupError):
    """A command of the set-up failed; its last words are in the message."""


class NotSetUpError(VllmSetupError):
    """There is no finished environment."""
