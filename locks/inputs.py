"""What every lock is made of: distributions with extras, and files of further requirements."""

LEARNER = "services/learner[atari,envs,fleet,gpu,observe,pool,tracing,vectorenv,video]"
ENVSERVER = "services/envserver[atari,dm-control,dm-env,envpool,minatar,mujoco,native,pettingzoo]"
LEGACY = "services/envserver[legacy,legacy-atari]"
CONFORMANCE = "services/conformance"
EVERYTHING = (LEARNER, ENVSERVER, CONFORMANCE, "locks/development.in", "locks/build.in")

VERSIONS = "constraints.txt"
"""Without hashes: pip takes no folder of sources where it demands them, and this is what its -c is for."""

INPUTS = {
    "locks/development.txt": EVERYTHING,
    "locks/build.txt": ("locks/build.in",),
    "locks/pip.txt": ("locks/pip.in",),
    "locks/learner.txt": (LEARNER,),
    "locks/envserver.txt": (ENVSERVER,),
    "locks/envserver-legacy.txt": (LEGACY,),
    "locks/generator.txt": ("locks/generator.in",),
    "locks/sbom.txt": ("locks/sbom.in",),
}
"""By file, relative to the repository's root."""

OF_THEIR_OWN = {"locks/envserver-legacy.txt", "locks/generator.txt", "locks/pip.txt", "locks/sbom.txt"}
"""Locks with versions that others do not have: gym needs NumPy 1, the generator an older protobuf; two are tools."""
