"""Errors that end a command, with messages for its user."""

import sys

ROLE = """\
# Give this role to the user of the command, for example:
#   kubectl create rolebinding kubebeast-fleet -n {namespace} --role kubebeast-fleet --user USER
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: kubebeast-fleet
  namespace: "{namespace}"
rules:
  - apiGroups: [apps]
    resources: [deployments, statefulsets]
    verbs: [get, list]
  - apiGroups: [batch]
    resources: [jobs]
    verbs: [list]
  - apiGroups: [apps]
    resources: [deployments/scale]
    verbs: [get, patch, update]
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list]
  - apiGroups: [""]
    resources: [pods/proxy]
    verbs: [get]
  - apiGroups: [""]
    resources: [events]
    verbs: [list]
  - apiGroups: [autoscaling]
    resources: [horizontalpodautoscalers]
    verbs: [list]
"""
"""Permissions of both commands: https://kubernetes.io/docs/reference/access-authn-authz/rbac/"""


class WatchError(Exception):
    """An error that ends the command. The message is one line."""


class NotFoundError(WatchError):
    """The API server has no such object."""


class ConflictError(WatchError):
    """The API server has another object of that name."""


class UnavailableError(WatchError):
    """The API server, or the pod behind it, does not answer at the moment."""


class RefusedError(WatchError):
    """The API server accepts the credentials and refuses the request."""

    def __init__(self, message: str, namespace: str) -> None:
        super().__init__(message)
        self.role = ROLE.format(namespace=namespace)
        """The Role with all permissions, as YAML for kubectl apply."""


def report(command: str, error: WatchError) -> int:
    """Prints the error to standard error, with the Role for refused requests. Returns the exit status."""
    print(f"{command}: {error}", file=sys.stderr)
    if isinstance(error, RefusedError):
        print(f"This Role allows it:\n\n{error.role}", end="", file=sys.stderr)
    return 1
