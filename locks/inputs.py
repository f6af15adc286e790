"""What every lock is made of: distributions with extras, and files of further requirements."""

LEARNER = (
    "services/learner["
    "atari,broker,envs,fleet,gpu,hub,minari,mlflow,observe,pool,sweep,trackio,tracing,vectorenv,video,wandb]"
)
ENVSERVER = "services/envserver[atari,dm-control,dm-env,envpool,minatar,mujoco,native,pettingzoo]"
LEGACY = "services/envserver[legacy,legacy-atari]"
CONFORMANCE = "services/conformance"
SWEEP = "services/sweep[jobs]"
BROKER = "services/broker"
EVERYTHING = (LEARNER, ENVSERVER, CONFORMANCE, SWEEP, BROKER, "locks/development.in", "locks/build.in")

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
    "locks/s3.txt": ("locks/s3.in",),
    "locks/sbom.txt": ("locks/sbom.in",),
}
"""By file, relative to the repository's root."""

OF_THEIR_OWN = {f"locks/{name}.txt" for name in ("envserver-legacy", "generator", "pip", "s3", "sbom")}
"""Locks with versions that others do not have: gym needs NumPy 1, the generator an older protobuf, the S3 server an
older dateutil; two are tools.
"""
