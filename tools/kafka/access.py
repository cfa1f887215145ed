"""Broker properties and client settings of a sandbox cluster with logins: SASL PLAIN over plain text on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Mapping

LISTENER = "SASL_PLAINTEXT"
PROTOCOLS = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def listener_properties(users: Mapping[str, str], port: int, controller_port: int | None, *, authorizer: bool) -> dict[str, str]:
    """The one client listener: open without `users`, else with a login. The first user is the broker's own, and super user.

    controller_port: None for a broker that has no controller's listener, with ZooKeeper.
    With an authorizer everybody else needs ACLs. The controller's listener has no login, so its callers (the broker) are ANONYMOUS.
    """
    name = LISTENER if users else "PLAINTEXT"
    controller = "" if controller_port is None else f",CONTROLLER://127.0.0.1:{controller_port}"
    properties = {
        "listener.security.protocol.map": PROTOCOLS,
        "listeners": f"{name}://127.0.0.1:{port}{controller}",
        "advertised.listeners": f"{name}://127.0.0.1:{port}",
        "inter.broker.listener.name": name,
    }
    if users:
        own = next(iter(users))
        logins = "".join(f" user_{user}={_quoted(password)}" for user, password in users.items())
        jaas = f"{LOGIN_MODULE} required username={_quoted(own)} password={_quoted(users[own])}{logins};"
        properties |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": jaas,
        }
    if authorizer:
        super_users = ["User:ANONYMOUS", *(f"User:{user}" for user in list(users)[:1])]
        kind = ZOOKEEPER_AUTHORIZER if controller_port is None else AUTHORIZER
        properties |= {"authorizer.class.name": kind, "super.users": ";".join(super_users)}
    return properties


def login_settings(user: str, password: str) -> dict[str, str]:
    """The librdkafka settings that log `user` in."""
    return {"security.protocol": LISTENER, "sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}


def _quoted(text: str) -> str:
    """As a JAAS option inside a Java properties file: each of the two readers takes one level of backslashes."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + quoted.replace("\\", "\\\\") + '"'
