"""A video shows whole episodes, the same ones that evaluation plays."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from kubebeast_envserver.catch import Catch
from kubebeast_envserver.envs.factory import EnvironmentFailure
from kubebeast_envserver.rows.observation_frames import ObservationFrames
from kubebeast_learner.config import ConfigError, EvalConfig, ModelConfig, RenderConfig
from kubebeast_learner.play.evaluate import evaluate
from kubebeast_learner.play.render import render, run
from kubebeast_learner.play.video import LARGEST_SIDE, Frame, enlarged, open_video
from tests.unit.learner.play.playing import STEP, write_run

CATCH = "kubebeast_envserver.catch:Catch-v0"


def decode(path: Path) -> tuple[float, Frame]:
    """Returns frames per second and uint8 [N, H, W, 3] of an mp4."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    process = subprocess.run(command, capture_output=True, check=True, timeout=60)
    stream = re.search(rb"Video: h264.*, (\d+)x(\d+).*, ([\d.]+) fps", process.stderr)
    assert stream is not None, process.stderr
    return float(stream[3]), np.frombuffer(process.stdout, np.uint8).reshape(-1, int(stream[2]), int(stream[1]), 3)


@pytest.fixture
def savedir(tmp_path: Path) -> Path:
    """Untrained models: `catch` with memory, `mock` with convolutions."""
    write_run(tmp_path / "catch", CATCH, ModelConfig(model="mlp", use_lstm=True))
    write_run(tmp_path / "mock", "Mock", ModelConfig(model="shallow"))
    return tmp_path


def test_an_mp4_holds_every_moment_at_the_environments_speed(savedir: Path) -> None:
    out = savedir / "videos" / "mock.mp4"
    text = render(RenderConfig(savedir=str(savedir), xpid="mock", out=out, max_episode_steps=40))
    fps, frames = decode(out)
    assert fps == 30
    assert frames.shape == (41, 168, 168, 3)  # the reset and 40 steps
    assert text == f"{out}: 41 frames, 1.4 s; Mock at step {STEP:,}, return 2 (cut off)"


def test_a_gif_shows_the_episodes_one_after_the_other(savedir: Path) -> None:
    out = savedir / "catch.gif"
    render(RenderConfig(savedir=str(savedir), xpid="catch", out=out, episodes=3, fps=5))
    with Image.open(out) as film:
        assert film.n_frames == 3 * 10  # type: ignore[attr-defined]
        assert film.size == (160, 320)
        assert film.info["duration"] == 200
        rows = []
        for index in range(10):
            film.seek(index)
            pixels = np.asarray(film.convert("RGB")).astype(int)
            ball = np.abs(pixels - (230, 159, 0)).sum(axis=-1) < 30
            rows.append(int(np.flatnonzero(ball.any(axis=1)).mean()) // 32)
    assert rows == list(range(10))  # the ball falls one row per frame


def test_the_shown_episodes_are_those_that_eval_plays(savedir: Path) -> None:
    choice: dict[str, Any] = {"savedir": str(savedir), "xpid": "catch", "episodes": 6, "seed": 3}
    text = render(RenderConfig(**choice, out=savedir / "catch.gif"))
    returns = [episode.episode_return for episode in evaluate(EvalConfig(**choice)).episodes]
    assert len(set(returns)) == 2
    assert text.endswith(", ".join(f"return {episode_return:g}" for episode_return in returns))


def test_the_shown_environment_is_made_as_it_was_in_training(savedir: Path) -> None:
    write_run(savedir / "short", "CartPole-v1", ModelConfig(model="mlp"), kwargs={"max_episode_steps": 5})
    assert ": 6 frames," in render(RenderConfig(savedir=str(savedir), xpid="short", out=savedir / "a.gif"))
    text = render(RenderConfig(savedir=str(savedir), xpid="short", out=savedir / "a.gif", env_kwargs="{}"))
    assert 'trained on CartPole-v1 with preset none, kwargs {"max_episode_steps": 5}' in text


def test_the_command_prints_what_it_wrote(savedir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RenderConfig(savedir=str(savedir), xpid="catch", out=savedir / "a.gif")) == 0
    assert capsys.readouterr().out.startswith(f"{savedir / 'a.gif'}: 10 frames, 1.2 s")


def test_the_film_lies_where_the_command_was_given_whatever_folder_an_environment_goes_to(
    savedir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (savedir / "elsewhere").mkdir()
    monkeypatch.chdir(savedir)
    monkeypatch.setattr(Catch, "close", lambda self: os.chdir(savedir / "elsewhere"))
    assert render(RenderConfig(savedir=str(savedir), xpid="catch", out=Path("a.gif"))).startswith("a.gif: ")
    assert (savedir / "a.gif").exists()


@pytest.mark.parametrize("name", ["broken.mp4", "broken.gif"])
def test_an_environment_that_fails_leaves_no_file(
    savedir: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, drawn = ObservationFrames.render, []

    def fail_at_the_third(self: ObservationFrames) -> Any:
        drawn.append(self)
        if len(drawn) == 3:
            raise EnvironmentFailure("the screen broke")
        return draw(self)

    monkeypatch.setattr(ObservationFrames, "render", fail_at_the_third)
    assert run(RenderConfig(savedir=str(savedir), xpid="mock", out=savedir / name)) == 1
    assert "the screen broke" in capsys.readouterr().err
    assert not (savedir / name).exists()


def test_mp4_without_ffmpeg_says_what_to_install(savedir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ConfigError, match="mp4 needs pip install imageio-ffmpeg"):
        render(RenderConfig(savedir=str(savedir), xpid="catch", out=savedir / "a.mp4"))


def test_a_place_that_cannot_be_written_is_named(savedir: Path) -> None:
    (savedir / "file").touch()
    with pytest.raises(ConfigError, match=r"out = .*file/a\.gif"):
        render(RenderConfig(savedir=str(savedir), xpid="catch", out=savedir / "file" / "a.gif"))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"out": Path("a.avi")}, r"out = 'a\.avi'"), ({"fps": 0.0}, "fps = 0"), ({"episodes": 0}, "episodes = 0")],
)
def test_bad_settings_are_named(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        RenderConfig(**settings)


@pytest.mark.parametrize(
    ("shape", "shown"),
    [((210, 160, 3), (210, 160, 3)), ((84, 84, 3), (168, 168, 3)), ((161, 333, 3), (162, 334, 3))],
)
def test_frames_are_shown_large_enough_and_with_even_sides(shape: tuple[int, ...], shown: tuple[int, ...]) -> None:
    assert enlarged(np.zeros(shape, np.uint8)).shape == shown


def test_odd_frames_survive_the_way_into_an_mp4(tmp_path: Path) -> None:
    frame: Frame = np.full((161, 333, 3), (200, 40, 40), np.uint8)
    with open_video(tmp_path / "red.mp4", fps=10) as video:
        for _ in range(3):
            video.add(frame)
    fps, frames = decode(tmp_path / "red.mp4")
    assert fps == 10
    assert frames.shape == (3, 162, 334, 3)
    assert np.abs(frames[1].astype(int) - (200, 40, 40)).max() < 20


@pytest.mark.parametrize("suffix", ["mp4", "gif"])
def test_frames_of_other_sizes_are_shown_within_the_first(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"film.{suffix}"
    with open_video(path, fps=5) as video:
        for number, shape in enumerate(((33, 47, 3), (66, 94, 3), (1, 1, 3), (90, 20, 3), (33, 47, 3))):
            video.add(np.full(shape, 200 + number, np.uint8))  # Pillow merges equal frames
    if suffix == "mp4":
        frames: Any = decode(path)[1]
    else:
        with Image.open(path) as film:
            frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    height, width = enlarged(np.zeros((33, 47, 3), np.uint8)).shape[:2]
    assert {frame.shape for frame in frames} == {(height, width, 3)}
    upright = frames[3]
    assert upright[height // 2, width // 2].min() > 180 and upright[height // 2, 0].max() < 30


@pytest.mark.parametrize("shape", [(2, 4000, 3), (5000, 100, 3), (2, 40_000, 3), (1, 1, 3)])
def test_frames_of_any_size_are_shown(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with open_video(tmp_path / "film.mp4", fps=5) as video:
        video.add(np.full(shape, 200, np.uint8))
    _, frames = decode(tmp_path / "film.mp4")
    assert max(frames.shape[1:3]) <= LARGEST_SIDE + 1 and frames.mean() > 150


@pytest.mark.filterwarnings("ignore:.*RGB-array rendering should return a numpy array")
def test_an_environment_that_never_draws_is_named(savedir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catch, "render", lambda _: None)
    out = savedir / "catch.mp4"
    with pytest.raises(EnvironmentFailure, match="returned nothing to show in all episodes"):
        render(RenderConfig(savedir=str(savedir), xpid="catch", out=out))
    assert not out.exists()
