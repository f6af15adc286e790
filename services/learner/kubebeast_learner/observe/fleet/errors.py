"""What ends the command, in words for its user."""

import sys

ROLE = """\
# Give it to whoever runs the command, for example:
#   kubectl create rolebinding kubebeast-fleet -n {namespace} --role kubebeast-fleet --user USER
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: kubebeast-fleet
  namespace: "{namespace}"
rules:
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [get, list]
  - apiGroups: [apps]
    resources: [deployments/scale]
    verbs: [get, patch, update]
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list]
  - apiGroups: [""]
    resources: [pods/proxy]
    verbs: [get]
  - apiGroups: [autoscaling]
    resources: [horizontalpodautoscalers]
    verbs: [list]
"""
"""All that both commands ask for: https://kubernetes.io/docs/reference/access-authn-authz/rbac/"""


class WatchError(Exception):
    """The command cannot go on. One line."""


class NotFoundError(WatchError):
    """The API server knows no such object."""


class UnavailableError(WatchError):
    """The API server, or the pod behind it, does not answer now; it may do so later."""


class RefusedError(WatchError):
    """The API server knows who asks, and refuses."""

    def __init__(self, message: str, namespace: str) -> None:
        super().__init__(message)
        self.role = ROLE.format(namespace=namespace)
        """The Role that allows everything, as YAML for kubectl apply."""


def report(command: str, error: WatchError) -> int:
    """Prints the error to standard error, and the Role that would help. Returns the exit status."""
    print(f"{command}: {error}", file=sys.stderr)
    if isinstance(error, RefusedError):
        print(f"This Role allows it:\n\n{error.role}", end="", file=sys.stderr)
    return 1
