"""Choice of the HTTP proxy between an env-server and its learner, by the environment variables of gRPC.

See https://github.com/grpc/grpc/blob/master/doc/environment_variables.md. The env-server chooses the proxy itself, so
that it can log the proxy's name, and so that no_proxy has the same meaning in all versions of gRPC.
"""

import contextlib
import os
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Literal
from urllib.parse import urlsplit

from kubebeast_common.access.addresses import may_need_proxy

ProxyUse = Literal["auto", "never", "always"]
_PROXIES, _EXCEPTIONS = ("grpc_proxy", "https_proxy", "http_proxy"), ("no_grpc_proxy", "no_proxy")


def proxy_of(address: str, name: str, use: ProxyUse, environ: Mapping[str, str] = os.environ) -> str:
    """Returns a text with the proxy's host and port and its variable; "" if the learner is dialed directly.

    address is "host:port" or "unix:/path". name is the DNS name that resolved to its host, or "". With use "auto",
    there is no proxy unless may_need_proxy is true for both.
    """
    variable = next((variable for variable in _PROXIES if environ.get(variable)), "")
    if not variable or use == "never" or address.startswith("unix:"):
        return ""
    dialed, _, port = address.rpartition(":")
    hosts = [host for host in (dialed, name) if host]
    if use == "auto" and not all(may_need_proxy(f"{host}:{port}") for host in hosts):
        return ""
    exceptions = next((environ[variable] for variable in _EXCEPTIONS if environ.get(variable)), "")
    if any(_covers(exception.strip().lower(), host) for exception in exceptions.split(",") for host in hosts):
        return ""
    # Without user and password.
    return f"{urlsplit(environ[variable]).netloc.rpartition('@')[2] or 'an unnamed host'} of {variable}"


def _covers(exception: str, host: str) -> bool:
    """Returns True if an item of no_proxy matches the host: "*", the end of its name, or the network of its address."""
    if exception == "*":
        return True
    bare = host.strip("[]").removesuffix(".").lower()
    with contextlib.suppress(ValueError):
        return ip_address(bare) in ip_network(exception, strict=False)
    return exception != "" and bare.endswith(exception)
