"""`kubebeast fleet`: the env-servers of a Kubernetes namespace, shown and scaled.

Needs the extra `fleet`. Everything is read through the API server, including the metrics of pods, so the command
needs the same access as kubectl.
"""
