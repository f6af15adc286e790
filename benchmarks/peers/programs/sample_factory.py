"""Sample Factory's APPO: two workers of 8 environments, rollouts of 32 steps, minibatches of 256."""

import sys
import tempfile

from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner

from benchmarks.peers.programs import progress
from benchmarks.pong import make_pong

ENV = "pong84"


def make_env(name: str, config: object, env_config: object, render_mode: str | None = None) -> object:
    return make_pong()


class Progress(AlgoObserver):  # type: ignore[misc] # sample-factory is only in the peer's venv
    def on_training_step(self, runner: Runner, training_iteration_since_resume: int) -> None:
        progress.report(sum(runner.env_steps.values()))


def main(epochs: int) -> None:
    register_env(ENV, make_env)
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            *("--algo=APPO", f"--env={ENV}", "--experiment=peer", f"--train_dir={folder}", "--device=cpu"),
            *("--num_workers=2", "--num_envs_per_worker=8", "--worker_num_splits=2", "--async_rl=True"),
            *("--rollout=32", "--batch_size=256", f"--num_epochs={epochs}", "--num_batches_per_epoch=1"),
            *("--use_rnn=False", "--encoder_conv_architecture=convnet_atari", "--encoder_conv_mlp_layers=512"),
            *("--obs_scale=255.0", "--normalize_input=False", "--gamma=0.99", "--env_frameskip=1"),
            *("--train_for_env_steps=1000000000", "--with_wandb=False", "--save_every_sec=100000"),
        ]
        parser, _ = parse_sf_args(arguments)
        config, runner = make_runner(parse_full_cfg(parser, arguments))
        runner.register_observer(Progress())
        runner.init()
        runner.run()
        assert config is not None


if __name__ == "__main__":
    main(int(sys.argv[1]))
