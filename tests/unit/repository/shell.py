"""Commands in documents, split into words and checked against the programs' arguments."""

import dataclasses
import functools
import itertools
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch.distributed.run import get_args_parser

from kubebeast_common.cli import main as cli
from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.settings import setting_types
from kubebeast_conformance import __main__ as conformance
from kubebeast_envserver import config as envserver
from kubebeast_envserver.trial import settings as trial
from tests.unit.repository.chart_values import has_path
from tests.unit.repository.documents import ROOT

NAMESPACE = {"-n"}
HELM_VALUES = NAMESPACE | {"-f", "--set", "--set-json", "--wait", "--create-namespace"}
FLAGS = {
    "helm install": HELM_VALUES,
    "helm upgrade": HELM_VALUES | {"--force-conflicts"},
    "helm rollback": NAMESPACE | {"--wait", "--force-conflicts"},
    "helm uninstall": NAMESPACE | {"--wait"},
    "helm template": NAMESPACE,
    "helm test": NAMESPACE,
    "kubectl apply": NAMESPACE | {"-f"},
    "kubectl cp": NAMESPACE,
    "kubectl create": NAMESPACE | {"--from-literal", "--from-file", "--cert", "--key", "--dry-run", "-o", "--help"},
    "kubectl delete": NAMESPACE | {"--cascade", "--force", "-l"},
    "kubectl describe": NAMESPACE,
    "kubectl drain": NAMESPACE,
    "kubectl exec": NAMESPACE,
    "kubectl get": NAMESPACE | {"-l", "-o", "--raw", "-w"},
    "kubectl logs": NAMESPACE | {"-f", "--previous", "-l"},
    "kubectl patch": NAMESPACE | {"-p"},
    "kubectl port-forward": NAMESPACE,
    "kubectl replace": NAMESPACE | {"-f"},
    "kubectl rollout": NAMESPACE,
    "kubectl scale": NAMESPACE | {"--replicas"},
    "kubectl top": NAMESPACE,
    "kubectl wait": NAMESPACE | {"--for", "--timeout", "-l"},
}
"""Flags of Helm 3.8 and 4, and of kubectl 1.20 and newer; only Helm 4 has rollback --force-conflicts."""
EVERYWHERE = {"base64", "cd", "echo", "export", "grep", "jq", "openssl", "rm", "sleep", "tensorboard"}
"""Programs that every machine has."""
ELSEWHERE = {
    *("apt-get", "argocd", "aws", "az", "cmake", "docker", "eksctl", "flux", "gcloud", "git", "kind", "sudo", "wsl"),
    *("helm", "hf", "kubectl"),
}
"""Programs from outside this repository, or with needs that a test cannot meet; their blocks name the needs."""
_SEPARATOR = re.compile(r" \| | && | & |; |\$\(| -- |^(?:for|done|do)\b.*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")


def commands(text: str) -> Iterator[list[str]]:
    """Yields the words of every command of a block: alone, in a pipe, in a loop or in a pod."""
    for line in text.replace("\\\n", " ").splitlines():
        without_comment = re.sub(r"(?<!\S)#.*", "", line.strip())
        without_comment = re.sub(r"'[^']*'", lambda quoted: quoted[0].replace(" | ", "|"), without_comment)
        for part in _SEPARATOR.split(re.sub(r"<\(.*?\)\)?|\$'\\n'|\$!", "1", without_comment)):
            words = _words(re.sub(r"\$\w+", "1", part))
            while words and _ASSIGNMENT.fullmatch(words[0]):
                words = words[1:]
            if words:
                yield words


def _words(part: str) -> list[str]:
    """Splits a command, or a part of one with an unclosed quote."""
    try:
        return shlex.split(part)
    except ValueError:
        return shlex.split(part.rstrip(')"').replace('"', "").replace("'", ""))


def accept(config: object) -> int:
    """Replaces every command."""
    return 0


def complaint(words: list[str]) -> str:
    """Returns the reason why a program would reject these words; "" if it accepts them or cannot be asked."""
    program, *arguments = words
    checks: dict[str, Callable[[list[str]], str]] = {
        "kubebeast": _kubebeast,
        "kubebeast-conformance": _conformance,
        "kubebeast-envserver": _envserver,
        "make": _make,
        "pip": _pip,
        "python": _python,
        "torchrun": _torchrun,
        "helm": lambda arguments: _of_cluster(program, arguments),
        "kubectl": lambda arguments: _of_cluster(program, arguments),
    }
    name = program.removeprefix(".venv/bin/")
    if name in checks:
        return checks[name](arguments)
    if name != program:
        return "" if name in (ROOT / "locks" / "development.in").read_text(encoding="utf-8").split() else "not in .venv"
    if program.startswith("native/build/"):
        return _built(program)
    if "/" in program:
        return "" if (ROOT / program).is_file() else "no such file"
    return "" if program in EVERYWHERE | ELSEWHERE else "nobody knows this program"


def _built(program: str) -> str:
    """Checks a program that CMake would build, as native/build/PRESET/TARGET."""
    *_, preset, target = Path(program).parts
    presets = json.loads((ROOT / "native" / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    is_preset = any(preset == each["name"] for each in presets)
    is_target = f"add_executable({target} " in (ROOT / "native" / "CMakeLists.txt").read_text(encoding="utf-8")
    return "" if is_preset and is_target else "nothing builds it"


def _kubebeast(arguments: list[str]) -> str:
    commands_before = dict(find_commands())
    try:
        for name, command in commands_before.items():
            find_commands()[name] = dataclasses.replace(command, target=f"{__name__}:{accept.__name__}")
        return "" if cli.main(arguments) == 0 else "refused"
    except SystemExit as exit_:
        return "" if exit_.code in (0, None) else f"exit status {exit_.code}"
    finally:
        find_commands().update(commands_before)


def unknown_in(words: list[str]) -> str:
    """Returns the subcommand of `kubebeast`, or the flags, that do not exist in a command that may be incomplete."""
    commands = find_commands()
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in commands), None)
    if name is None:
        return words[0]
    settings = {"help", "config", *setting_types(commands[name].config_type)}
    flags = {word: word.partition("=")[0].removeprefix("--").replace("-", "_") for word in words if word[:2] == "--"}
    return ", ".join(word for word, flag in flags.items() if flag not in settings and flag != "")


def _envserver(arguments: list[str]) -> str:
    try:
        if arguments[:1] == ["check"]:
            trial.parse(arguments[1:], {})
        else:
            envserver.parse(arguments, {})
    except (SystemExit, Exception) as error:
        return "" if "No such file" in str(error) else str(error)
    return ""


def _conformance(arguments: list[str]) -> str:
    try:
        conformance.parser().parse_args(arguments)
    except SystemExit as error:
        return f"exit status {error.code}"
    return ""


@functools.cache
def make_targets() -> frozenset[str]:
    """Returns the targets that `make help` lists."""
    command = ["make", "-C", str(ROOT), "help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return frozenset(line.split()[0] for line in text.splitlines() if line.startswith("  "))


def _make(arguments: list[str]) -> str:
    """Checks targets, and ARGS as flags of `kubebeast train`."""
    variables = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    unknown = {argument for argument in arguments if "=" not in argument} - make_targets()
    if unknown:
        return f"no target {', '.join(sorted(unknown))}"
    return _kubebeast(["train", *shlex.split(variables["ARGS"])]) if "ARGS" in variables else ""


@functools.cache
def distributions() -> dict[str, dict[str, Any]]:
    """Returns the `project` table of every distribution of this repository, by name and by "./FOLDER"."""
    found: dict[str, dict[str, Any]] = {}
    for path in [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml")]:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        found |= {project["name"]: project, f"./{path.parent.relative_to(ROOT)}": project}
    return found


def _pip(arguments: list[str]) -> str:
    """Checks distributions of this repository, by name or by folder, and their extras."""
    for argument in arguments:
        name, _, extras = argument.rstrip("]").partition("[")
        if name in distributions():
            known = set(distributions()[name].get("optional-dependencies", {}))
            if extras and not set(extras.split(",")) <= known:
                return f"{name} has no extra {extras}"
        elif name.startswith(("./", "kubebeast")):
            return f"no distribution {name}"
    return ""


def _field_of(flag: str) -> str:
    """Returns the field that a flag sets, such as use_lstm for --use-lstm and --no-use-lstm."""
    return flag.removeprefix("--").removeprefix("no-").replace("-", "_")


def _python(arguments: list[str]) -> str:
    """Checks that a module, package or file of this repository exists and names the flags."""
    module = arguments[1] if arguments[0] == "-m" else ""
    file = ROOT / f"{module.replace('.', '/')}.py" if module else ROOT / arguments[0]
    if module == "venv":
        return ""
    files = list(file.with_suffix("").glob("*.py")) if file.with_suffix("").is_dir() else [file]
    if not all(each.is_file() for each in files):
        return f"no such file: {file.name}"
    text = "\n".join(each.read_text(encoding="utf-8") for each in files)
    flags = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    missing = [flag for flag in flags if flag not in text and _field_of(flag) not in text]
    return f"{file.name} does not name {', '.join(missing)}" if missing else ""


def _torchrun(arguments: list[str]) -> str:
    """Checks torchrun's flags, and those of the `kubebeast` command that it starts."""
    started = get_args_parser().parse_args(arguments)
    if not started.module or started.training_script != "kubebeast_learner":
        return f"starts {started.training_script}"
    return _kubebeast(started.training_script_args)


def _of_cluster(program: str, arguments: list[str]) -> str:
    verb, *rest = arguments[2:] if arguments[0] == "-n" else arguments
    flags = {word.partition("=")[0] for word in rest if re.match("--?[a-z]", word)}
    unknown = flags - FLAGS.get(f"{program} {verb}", set())
    if unknown:
        return f"{program} {verb} is not known to take {', '.join(sorted(unknown))}"
    return _values(rest) if program == "helm" and verb in ("install", "upgrade") else ""


def _values(arguments: list[str]) -> str:
    """Checks that the chart is this repository's, from the tree or a registry, and that it has the values."""
    charts = [word for word in arguments if re.match(r"oci://|deploy/|\./|/", word) and not word.endswith(".yaml")]
    if not all(re.fullmatch(r"deploy/helm/kubebeast|oci://\S+/charts/kubebeast", chart) for chart in charts):
        return f"which chart is {', '.join(charts)}?"
    settings = [value for flag, value in itertools.pairwise(arguments) if flag == "--set"] if charts else []
    missing = [setting for setting in settings if not has_path(setting.partition("=")[0])]
    return f"the chart has no value {', '.join(missing)}" if missing else ""
