"""Does one thing for many at once, by a few threads: requests wait for the registry, not for this machine."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

# Also the number of connections. More would not be faster: a registry writes one schema after the other.
CONNECTIONS = 8
T = TypeVar("T")
R = TypeVar("R")


def at_once(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """The results of `do` for all things, in their order, by CONNECTIONS threads. After an error no thread begins another one."""
    pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="ferry-schemas")
    try:
        return list(pool.map(do, things))
    finally:
        pool.shutdown(cancel_futures=True)
