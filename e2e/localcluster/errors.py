"""What can go wrong. Every message says what to do next."""


class LocalClusterError(Exception):
    """The root: the command line prints its message without a traceback."""


class UnsupportedMachineError(LocalClusterError):
    """This machine cannot run the cluster; an existing one can be used instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}\nTo use a cluster that already exists, set WARMFRONT_KUBECONFIG to its kubeconfig file.")


class CommandFailedError(LocalClusterError):
    """A program that we ran ended with an error."""


class ClusterNotRunningError(LocalClusterError):
    """The command needs a running cluster."""


class ClusterBrokenError(LocalClusterError):
    """The cluster did not come up, or a part of it died."""
