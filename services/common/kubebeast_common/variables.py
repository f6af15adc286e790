"""Detection of KUBEBEAST_* variables that no program reads, probably because of a typo."""

import difflib
import re
from collections.abc import Collection, Mapping

PREFIX = "KUBEBEAST_"
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_A_SERVICE = re.compile(r"(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
_SLIP = 0.9
"""Minimum similarity of a word and its typo. Settings of different programs are less similar."""


def unknown_variables(environ: Mapping[str, str], known: Collection[str], *, slips_only: bool = False) -> list[str]:
    """Returns a sentence for each variable that sets none of the settings `known`, with the most similar setting.

    Variables that Kubernetes sets for its Services are ignored. With slips_only, only likely typos are reported, for a
    program that may share its environment with programs of unknown settings.
    """
    sentences = []
    for variable in sorted(environ):
        setting = variable.removeprefix(PREFIX)
        if setting == variable or setting.lower() in known or _OF_A_SERVICE.fullmatch(setting):
            continue
        near = difflib.get_close_matches(setting.lower(), known, n=1, cutoff=_SLIP if slips_only else 0.6)
        if slips_only and not near:
            continue
        hint = f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
        sentences.append(f"{variable} is set, and there is no such setting{hint}")
    return sentences
