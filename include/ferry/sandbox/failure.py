"""What a sandbox cluster says when it cannot do what it is asked."""

from ferry.errors import FerryError


class SandboxFailed(FerryError):
    """A sandbox cluster did not start, or is not in the state that a call needs."""
