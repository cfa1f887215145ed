"""Contradictions between the properties of trust and key stores. Opens no store, and loads no library that could."""

from ferry.config.client_settings import ClientSettings
from ferry.config.problems import PropertyError

TRUSTED_PEM = "ssl.truststore.certificates"
_OWN_PEM = ("ssl.keystore.key", "ssl.keystore.certificate.chain")


def store_problems(settings: ClientSettings) -> list[PropertyError]:
    """Contradictions between the properties of stores. Opens no store."""
    own = [name for name in _OWN_PEM if settings.given(name)]
    found = [] if not settings.given(TRUSTED_PEM) else _misplaced_pem(settings, "truststore", TRUSTED_PEM)
    if own:
        found += _misplaced_pem(settings, "keystore", own[0])
    if len(own) == 1:
        missing = next(name for name in _OWN_PEM if name not in own)
        found.append(settings.problem(own[0], f"needs {missing} beside it"))
    return found


def _misplaced_pem(settings: ClientSettings, store: str, name: str) -> list[PropertyError]:
    found = []
    if settings.value(f"ssl.{store}.type") != "PEM":
        found.append(settings.problem(name, f"is read only with ssl.{store}.type=PEM: set it"))
    if settings.given(f"ssl.{store}.location"):
        found.append(settings.problem(name, f"and ssl.{store}.location exclude each other: remove one"))
    return found


def require_consistent(settings: ClientSettings) -> None:
    """PropertyError for the first of these problems."""
    for problem in store_problems(settings):
        raise problem
