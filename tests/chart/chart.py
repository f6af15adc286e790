"""Renders the Helm chart with the real `helm` and finds objects in the output."""

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "kubebeast"
SCENARIOS = tuple(sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")))
APP_VERSION = str(yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"])
REGISTRY = "registry.example.com"
KUBE_VERSION = "1.37.0"
RELEASE = "demo"
NAMESPACE = "training"
APIS = (
    "autoscaling/v2",
    "cert-manager.io/v1",
    "jobset.x-k8s.io/v1alpha2",
    "keda.sh/v1alpha1",
    "monitoring.coreos.com/v1",
    "policy/v1",
)
"""API versions of a current cluster with the operators, beyond the API of Kubernetes that helm knows."""

Object = dict[str, Any]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Manifests:
    """The objects of one rendering, in the order of the output; hooks are among them. Shared: do not change them."""

    objects: tuple[Object, ...]

    def __iter__(self) -> Iterator[Object]:
        return iter(self.objects)

    def of_kind(self, kind: str) -> list[Object]:
        """Returns all objects of a kind; may be empty."""
        return [item for item in self.objects if item["kind"] == kind]

    def get(self, kind: str, name: str = "") -> Object:
        """Returns the object of that kind and name, or the only one of the kind; raises LookupError with the names of
        all.
        """
        found = [item for item in self.of_kind(kind) if name in ("", item["metadata"]["name"])]
        if len(found) != 1:
            names = [item["metadata"]["name"] for item in self.of_kind(kind)]
            raise LookupError(f"{kind} {name!r}: {len(found)} found among {names}")
        return found[0]

    def has(self, kind: str, name: str = "") -> bool:
        return any(name in ("", item["metadata"]["name"]) for item in self.of_kind(kind))

    def pod_templates(self) -> dict[str, Object]:
        """Returns the pod templates of workloads and bare pods, by "Kind/name", those of a JobSet by "JobSet/name/job",
        and that of the runs of a sweep by "Job/name"; each has metadata and spec.
        """
        pods = {}
        for item in self.objects:
            name = f"{item['kind']}/{item['metadata']['name']}"
            if item["kind"] in ("Deployment", "Job", "StatefulSet"):
                pods[name] = item["spec"]["template"]
            elif item["kind"] == "JobSet":
                for job in item["spec"]["replicatedJobs"]:
                    pods[f"{name}/{job['name']}"] = job["template"]["spec"]["template"]
            elif item["kind"] == "Pod":
                pods[name] = item
            elif item["kind"] == "ConfigMap" and "job.yaml" in item["data"]:
                job = yaml.load(item["data"]["job.yaml"], _Loader)
                pods[f"Job/{job['metadata']['name']}"] = job["spec"]["template"]
        return pods


class ChartError(Exception):
    """Raised if helm refuses the values; the message is its stderr."""


def scenario(name: str) -> Object:
    """Returns the values of ci/<name>-values.yaml."""
    values: Object = yaml.load((CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8"), _Loader)
    return values


def render(
    values: Mapping[str, Any] | str | None = None,
    overlay: Mapping[str, Any] | None = None,
    *,
    kube_version: str = KUBE_VERSION,
    api_versions: Sequence[str] = APIS,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
) -> Manifests:
    """Runs `helm template` with values over the chart's defaults, or with a scenario of ci/ by its name.

    overlay: a second file of values. Images come from REGISTRY unless the values have a registry. Equal calls share one
    rendering. Raises ChartError if helm refuses.
    """
    wanted = _with_registry(values)
    overlaid = _as_yaml(overlay or {})
    text = _template(_as_yaml(wanted), overlaid, kube_version, tuple(api_versions), release, namespace)
    return Manifests(tuple(item for item in yaml.load_all(text, _Loader) if item))


def render_error(values: Mapping[str, Any], *, release: str = RELEASE, api_versions: Sequence[str] = APIS) -> str:
    """Returns helm's message on values that it must refuse; raises AssertionError if it takes them."""
    try:
        render(values, release=release, api_versions=api_versions)
    except ChartError as error:
        return str(error)
    raise AssertionError(f"helm accepts {values}")


def notes(values: Mapping[str, Any] | str | None = None) -> str:
    """Returns the notes that `helm install` would print."""
    wanted = _with_registry(values)
    command = ["install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=client", "--values", "-"]
    return helm(command, json.dumps(wanted)).partition("\nNOTES:\n")[2]


def lint(values: Mapping[str, Any]) -> str:
    """Returns the output of `helm lint --strict`; raises ChartError if it finds a fault."""
    return helm(["lint", str(CHART), "--strict", "--values", "-"], json.dumps(_with_registry(values)))


def container(pod: Object, name: str = "") -> Object:
    """Returns the container of that name; without a name the only one."""
    found: list[Object] = [item for item in pod["spec"]["containers"] if name in ("", item["name"])]
    assert len(found) == 1, f"containers of {pod['metadata']}: {[item['name'] for item in pod['spec']['containers']]}"
    return found[0]


def environment(pod: Object) -> Object:
    """Returns the environment variables of the only container: name to value, or to the `valueFrom` object."""
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container(pod).get("env", [])}


def _as_yaml(values: Mapping[str, Any]) -> str:
    """Returns JSON without surrogates, which Helm's YAML does not read."""
    return json.dumps(values, ensure_ascii=False)


def _with_registry(values: Mapping[str, Any] | str | None) -> Object:
    """Returns the values with the registry under `global`, so that any other registry of the values has priority."""
    given = scenario(values) if isinstance(values, str) else values or {}
    return {"global": {"imageRegistry": REGISTRY}, **given}


@functools.cache
def _template(
    values: str, overlay: str, kube_version: str, api_versions: tuple[str, ...], release: str, namespace: str
) -> str:
    command = ["template", release, str(CHART), "--namespace", namespace, "--kube-version", kube_version]
    if api_versions:
        command += ["--api-versions", ",".join(api_versions)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(overlay)
        file.flush()
        return helm([*command, "--values", "-", "--values", file.name], values)


def helm(arguments: Sequence[str], stdin: str = "") -> str:
    """Runs helm and returns its stdout. Raises ChartError with its stderr if it fails, or if there is no helm."""
    program = shutil.which("helm")
    if program is None:
        raise ChartError("the chart's tests need helm on PATH")
    run = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode:
        raise ChartError(run.stderr + run.stdout)
    return run.stdout
