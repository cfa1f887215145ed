"""Durations as text for people."""

_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))


def span(seconds: float) -> str:
    """In the largest unit that fits at least twice: `7 days`, `36 h`, `90 min`, `100 s`."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
