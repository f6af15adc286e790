"""Hosts gymnasium and Atari environments and streams them to a KubeBeast learner (kubebeast_protos.v1)."""
