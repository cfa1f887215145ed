"""Does one thing for many at once, by a few threads: requests wait for the registry, not for this machine."""

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from ferry import clock

# Also the number of connections. More would not be faster: a registry writes one schema after the other.
CONNECTIONS = 8
T = TypeVar("T")
R = TypeVar("R")


def at_once(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """The results of `do` for all things, in their order, by CONNECTIONS threads. After an error no thread begins another one."""
    listed = list(things)
    left, lock = iter(range(len(listed))), threading.Lock()
    results: dict[int, R] = {}
    problems: list[BaseException] = []

    def work() -> None:
        while not problems:
            with lock:
                index = next(left, None)
            if index is None:
                return
            try:
                results[index] = do(listed[index])
            except BaseException as problem:  # noqa: BLE001 - it is raised below
                problems.append(problem)

    threads = [clock.Thread(target=work, name=f"ferry-schemas-{number}", daemon=True) for number in range(min(CONNECTIONS, len(listed)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return [results[index] for index in range(len(listed))]
