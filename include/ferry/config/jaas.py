"""The value of `sasl.jaas.config`: one login module with its options.

It reads the same as Kafka's JaasConfig, which uses java.io.StreamTokenizer: words of letters, digits and `.-_$` that begin with a letter,
`_` or `$`; texts in single or double quotes with C escapes; and the three kinds of Java comments. Errors do not quote the value, because it
holds a password.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<skip>[\x00-\x20]+|/\*.*?\*/|/(?!\*)[^\n\r]*)
      | (?P<word>[A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9._$\u00a0-\U0010ffff-]*)
      | "(?P<double>(?:[^"\\\n\r]|\\.)*)"
      | '(?P<single>(?:[^'\\\n\r]|\\.)*)'
      | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
MODULES_PACKAGE = "org.apache.kafka.common.security."
# The login modules of the mechanisms that Ferry offers.
MODULES = {
    "PLAIN": f"{MODULES_PACKAGE}plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{MODULES_PACKAGE}scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{MODULES_PACKAGE}scram.ScramLoginModule",
    "OAUTHBEARER": f"{MODULES_PACKAGE}oauthbearer.OAuthBearerLoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}


@dataclass(frozen=True)
class LoginModule:
    """A login module: its Java class and options. Options do not show in `repr`."""

    java_class: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def text(self) -> str:
        """The value of `sasl.jaas.config`."""
        options = " ".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in self.options.items())
        return f"{self.java_class} required {options};"


def parse_jaas(text: str) -> LoginModule:
    """The only login module in `text`; ValueError says what is wrong without quoting it."""
    tokens = list(_tokens(text))
    if not tokens:
        raise ValueError("holds no login module; write '<module class> required <option>=\"<value>\" …;'")
    if tokens[-1] != (";", True):
        raise ValueError("must end with a semicolon")
    if tokens.count((";", True)) > 1:
        raise ValueError("holds more than one login module; one is allowed")
    if tokens[0][1]:
        raise ValueError("must begin with the class of a login module")
    if len(tokens) < 3 or tokens[1][1] or tokens[1][0].lower() not in _FLAGS:
        raise ValueError("needs the word required after the class of the login module")
    return LoginModule(tokens[0][0], dict(_options(tokens[2:-1])))


def _options(tokens: list[tuple[str, bool]]) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(tokens):
        name, is_mark = tokens[position]
        if is_mark:
            raise ValueError("has an = without the name of an option in front of it")
        rest = tokens[position + 1 : position + 3]
        if len(rest) < 2 or rest[0] != ("=", True) or rest[1][1]:
            # The "name" may be part of a password without quotes, so the message does not show it.
            raise ValueError('has an option without a value; write every option as name="value"')
        yield name, rest[1][0]
        position += 3


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Each token with whether it is a mark (`=` or `;`)."""
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f'is unclear from character {position + 1} on: put values in double quotes, with \\ before " and \\ in them')
        position = found.end()
        if found.lastgroup in {"double", "single"}:
            yield _ESCAPE.sub(_unescaped, found[found.lastgroup]), False
        elif found.lastgroup in {"word", "mark"}:
            yield found[found.lastgroup], found.lastgroup == "mark"


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _CONTROLS.get(escape, escape)
