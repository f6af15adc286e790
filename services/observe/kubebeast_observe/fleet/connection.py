"""Choice of the API server and the namespace: from a kubeconfig, or the pod's own cluster."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client
from kubernetes.config import KUBE_CONFIG_DEFAULT_LOCATION, ConfigException, incluster_config, kube_config

from kubebeast_observe.errors import WatchError
from kubebeast_observe.fleet.cluster import Cluster
from kubebeast_observe.fleet.pod_metrics import MAX_SCRAPES
from kubebeast_observe.settings import ClusterConfig

POD_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""

# Published without annotations.
_load_incluster_config: Callable[..., None] = incluster_config.load_incluster_config
_merge_kubeconfigs: Callable[[str], Any] = kube_config.KubeConfigMerger
_make_loader: Callable[..., Any] = kube_config.KubeConfigLoader


def connect(config: ClusterConfig) -> Cluster:
    """Reads credentials, without a request. Raises WatchError if there are no usable ones.

    In a pod, the default is its own cluster, unless --kubeconfig, --context or KUBECONFIG selects another.
    """
    settings = client.Configuration()
    named = config.kubeconfig is not None or config.context or os.environ.get("KUBECONFIG")
    in_cluster = os.environ.get("KUBERNETES_SERVICE_HOST") and not named
    try:
        namespace = _load_own_cluster(settings) if in_cluster else _load_kubeconfig(config, settings)
    except (ConfigException, yaml.YAMLError, OSError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        source = "the pod's service account" if in_cluster else f"kubeconfig {_kubeconfig_path(config)}"
        raise WatchError(f"{source} cannot be used: {' '.join(str(error).split())}") from error
    # A failed request is shown, or repeated by --watch.
    settings.retries = urllib3.Retry(0)
    settings.connection_pool_maxsize = MAX_SCRAPES
    if not settings.verify_ssl:
        # insecure-skip-tls-verify was set in the kubeconfig on purpose.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return Cluster(client.ApiClient(settings), config.namespace or namespace)


def _load_own_cluster(settings: client.Configuration) -> str:
    """Fills in the service account's token and authority; returns the pod's namespace."""
    _load_incluster_config(client_configuration=settings)
    return POD_NAMESPACE_FILE.read_text(encoding="utf-8").strip()


def _load_kubeconfig(config: ClusterConfig, settings: client.Configuration) -> str:
    """Fills in the context's cluster and user; returns the context's namespace."""
    merged = _merge_kubeconfigs(_kubeconfig_path(config)).config
    if merged is None:
        raise ConfigException("there is no such file, and --kubeconfig, --context or KUBECONFIG names no other")
    loader = _make_loader(config_dict=merged, active_context=config.context or None, config_base_path=None)
    loader.load_and_set(settings)
    return str(loader.current_context["context"].get("namespace") or "default")


def _kubeconfig_path(config: ClusterConfig) -> str:
    return str(config.kubeconfig) if config.kubeconfig is not None else str(KUBE_CONFIG_DEFAULT_LOCATION)
