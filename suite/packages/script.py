"""Prints what a system would run as a shell script: script.py FILE [NAME=VALUE ...]

FILE is a manifest of Kubernetes, a Sonobuoy plugin, a GitHub action, a GitLab template or a Tekton
task. The values replace its inputs and parameters. The value of a list has one item in each line.
"""

import re
import shlex
import sys

from ruamel.yaml import YAML


def main(path: str, *assignments: str) -> None:
    values = dict(assignment.split("=", 1) for assignment in assignments)
    for document in YAML().load_all(open(path)):
        for line in script(document, values):
            print(line)


def script(document: dict, values: dict) -> list[str]:
    if "runs" in document:
        return github(document, values)
    if document.get("kind") == "Task":
        return tekton(document["spec"], values)
    if "kubeproof" in document:
        return document["kubeproof"]["script"]
    return containers(document)


def containers(document: dict) -> list[str]:
    spec = document["spec"] if document.get("kind") in (None, "Job") else {}
    pod = spec.get("template", {}).get("spec", {"containers": [spec]})
    return [container["args"][0] for container in pod["containers"] if "args" in container]


def github(action: dict, values: dict) -> list[str]:
    """Each step runs in a shell of its own, with its own variables."""

    def evaluate(match: re.Match) -> str:
        name = match[1]
        return values.get(name, action["inputs"][name]["default"])

    lines = []
    for step in action["runs"]["steps"]:
        variables = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", evaluate, value)
            for name, value in step.get("env", {}).items()
        }
        assignments = shlex.join(f"{name}={value}" for name, value in variables.items())
        bash = "bash --noprofile --norc -e -o pipefail -c"
        lines.append(f"env {assignments} {bash} {shlex.quote(step['run'])}")
    return lines


def tekton(task: dict, values: dict) -> list[str]:
    defaults = {one["name"]: one["default"] for one in task["params"] if "default" in one}

    def words(word: str) -> list[str]:
        if whole := re.fullmatch(r"\$\(params\.(\w+)\[\*\]\)", word):
            value = values.get(whole[1], defaults.get(whole[1]))
            return value.splitlines() if isinstance(value, str) else list(value)
        return [re.sub(r"\$\((?:params|workspaces)\.(\w+)(?:\.path)?\)", scalar, word)]

    def scalar(match: re.Match) -> str:
        return values[match[1]]

    return [
        shlex.join(part for word in [*step["command"], *step["args"]] for part in words(word))
        for step in task["steps"]
    ]


main(*sys.argv[1:])
