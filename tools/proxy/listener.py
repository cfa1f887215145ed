"""Broker properties for a second listener behind a proxy: whoever comes by the proxy is told the proxy's port and stays on it."""

from __future__ import annotations

NAME = "PROXIED"


def proxied_properties(behind: int, advertised: int, *, controller: bool = True) -> dict[str, str]:
    """For SandboxCluster.start(properties=…): PROXIED listens on `behind` and advertises `advertised`, the proxy's port.

    The cluster's own port stays as it is, for the broker itself and for clients that the faults are not meant for.
    controller: whether the node is one as well.
    """
    listeners = ["PLAINTEXT://127.0.0.1:{port}", f"{NAME}://127.0.0.1:{behind}"]
    if controller:
        listeners.append("CONTROLLER://127.0.0.1:{controller_port}")
    return {
        "listeners": ",".join(listeners),
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{NAME}://127.0.0.1:{advertised}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{NAME}:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
