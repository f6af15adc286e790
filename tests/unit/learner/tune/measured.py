"""Measurements of a machine that does not exist."""

from kubebeast_learner.tune.pieces import Call, EnvServerCost, LearnerCost, Pieces

US, MS = 1e-6, 1e-3


def env_servers(env_step_us: float, beside_us: float = 10.0, message_us: float = 100.0) -> list[EnvServerCost]:
    """Returns costs with 1 and 16 environments; message_us is per message with any number of environments."""
    return [
        EnvServerCost(
            num_envs=num_envs,
            env_step_s=env_step_us * US,
            process_cpu_s=(env_step_us + beside_us + message_us / num_envs) * US,
            pool_cpu_s=(5.0 + 50.0 / num_envs) * US,
            latency_s=300 * US,
        )
        for num_envs in (1, 16)
    ]


def learner(
    update_ms: float, *, threads: int = 1, precision: str = "fp32", device: str = "cpu", inference_us: float = 20.0
) -> LearnerCost:
    """inference_us is per row, in addition to 200 per batch."""
    return LearnerCost(
        device=device,
        precision=precision,
        threads=threads,
        update=Call(wall_s=update_ms * MS, cpu_s=update_ms * MS * threads),
        inference={
            rows: Call(wall_s=(200 + inference_us * rows) * US, cpu_s=(200 + inference_us * rows) * US)
            for rows in (1, 8, 32, 128)
        },
    )


def machine(
    cores: int, env_step_us: float, learners: list[LearnerCost], *, unit: int = 1, steps_per_update: int = 80
) -> Pieces:
    return Pieces(
        cores=cores,
        env_servers=env_servers(env_step_us),
        learners=learners,
        steps_per_update=steps_per_update,
        unit=unit,
    )
