"""Pictures of environments show the moment of the newest rows."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from kubebeast_envserver.catch import BALL, CELL_SIZE, PADDLE
from kubebeast_envserver.envs.atari import AtariEnv, AtariSettings
from kubebeast_envserver.envs.atari_screens import AtariScreens
from kubebeast_envserver.envs.factory import EnvironmentFailure, RenderedEnv, make_rendered_env, make_vector_env


class Painter(gymnasium.Env[Any, Any]):
    """Vector observations; `render` returns `frame`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012
    frame: Any = np.zeros((6, 8, 3), np.uint8)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **_: Any) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def render(self) -> Any:
        return self.frame


class Photographer(Painter):
    """Cannot render, but observes small color images."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(0, 255, (5, 4, 3), np.uint8)

    def reset(self, **_: Any) -> Any:
        return np.arange(60, dtype=np.uint8).reshape(5, 4, 3), {}


class Mime(Painter):
    """Cannot render, and observes numbers."""

    metadata = {"render_modes": ["human"]}  # noqa: RUF012


ENVIRONMENTS: list[Any] = [Painter, Photographer, Mime]
for environment in ENVIRONMENTS:
    gymnasium.register(f"{environment.__name__}-v0", entry_point=environment, disable_env_checker=True)


def steps(env: RenderedEnv, num_steps: int, num_actions: int, seed: int = 0) -> list[Any]:
    """Returns the frames of a reset and of `num_steps` random steps."""
    generator = np.random.default_rng(seed)
    env.reset()
    frames = [env.render()]
    for _ in range(num_steps):
        env.step([generator.integers(num_actions, size=env.num_envs)])
        frames.append(env.render())
    return frames


def colours(frame: Any) -> set[tuple[int, ...]]:
    return set(map(tuple, frame.reshape(-1, 3).tolist()))


def test_catch_draws_ball_and_paddle_in_their_cells() -> None:
    env = make_rendered_env("kubebeast_envserver.catch:Catch-v0", 2, seed=1)
    rows = env.reset()
    for _ in range(9):
        cells = env.render()[:, CELL_SIZE // 2 :: CELL_SIZE, CELL_SIZE // 2 :: CELL_SIZE]
        assert cells.shape == (2, 10, 5, 3)
        board = rows.observation[0]
        drawn = (cells == BALL).all(axis=-1) | (cells == PADDLE).all(axis=-1)
        np.testing.assert_array_equal(drawn, board == 1)
        rows = env.step([np.array([1, 2])])
    assert env.render_fps == 8


def test_the_final_moment_is_shown_before_the_reset() -> None:
    env = make_rendered_env("kubebeast_envserver.catch:Catch-v0", 1, seed=1)
    env.reset()
    for _ in range(9):
        rows = env.step([np.array([1])])
    assert rows.terminated.all()
    lowest = env.render()[0, -1]
    assert BALL in colours(lowest)


@pytest.mark.parametrize("preset", ["atari-v4", "atari-v5"])
def test_atari_is_shown_in_colour_and_played_in_grey(preset: Any) -> None:
    env = make_rendered_env("BreakoutNoFrameskip-v4", 2, preset, seed=3, evaluation=True)
    frames = steps(env, 60, 4)
    env.close()
    assert env.spec_observation[0].row_shape == (4, 84, 84)
    assert all(frame.shape == (2, 210, 160, 3) and frame.dtype == np.uint8 for frame in frames)
    assert any(red != green for red, green, _ in colours(frames[-1]))
    assert len({frame.tobytes() for frame in frames}) > 40
    assert env.render_fps == 15


def test_atari_is_played_as_without_rendering() -> None:
    rendered = make_rendered_env("PongNoFrameskip-v4", 2, "atari-v5", seed=5)
    plain = make_vector_env("PongNoFrameskip-v4", 2, "atari-v5", seed=5)
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(rendered.reset().observation[0], plain.reset().observation[0])
    for _ in range(80):
        actions = [generator.integers(6, size=2)]
        one, other = rendered.step(actions), plain.step(actions)
        np.testing.assert_array_equal(one.observation[0], other.observation[0])
        np.testing.assert_array_equal(one.rewards, other.rewards)
    rendered.close()
    plain.close()


def test_a_copy_that_plays_another_game_is_noticed() -> None:
    settings = AtariSettings(noop_max=0, frame_stack=1)
    env = AtariScreens(AtariEnv("pong", 1, settings, seed=1), "breakout", settings, seed=1)
    with pytest.raises(EnvironmentFailure, match="the game and its copy in colour differ: terminated"):
        steps(env, 400, 4)
    env.close()


def test_mock_shows_the_newest_frame_of_its_stack() -> None:
    env = make_rendered_env("Mock", 2, seed=0)
    rows = env.reset()
    for _ in range(3):
        rows = env.step([np.zeros(2, np.int64)])
    frames = env.render()
    assert frames.shape == (2, 84, 84, 3)
    np.testing.assert_array_equal(frames[..., 1], rows.observation[0][:, -1])


def test_an_environment_that_cannot_draw_shows_its_image_observation() -> None:
    env = make_rendered_env("Photographer-v0", 1, seed=0)
    env.reset()
    np.testing.assert_array_equal(env.render()[0].ravel(), np.arange(60))


def test_an_environment_with_nothing_to_show_is_refused() -> None:
    with pytest.raises(ValueError, match=r"env = 'Mime-v0' cannot be shown: .*rgb_array.*float32 \[2\], is no image"):
        make_rendered_env("Mime-v0", 1, seed=0)


def test_frames_come_at_the_speed_that_the_environment_states() -> None:
    assert make_rendered_env("Painter-v0", 1, seed=0).render_fps == 12


@pytest.mark.parametrize("fps", [np.float32(12.5), np.int64(5), 7])
def test_any_number_is_a_speed(monkeypatch: pytest.MonkeyPatch, fps: Any) -> None:
    monkeypatch.setitem(Painter.metadata, "render_fps", fps)
    assert make_rendered_env("Painter-v0", 1, seed=0).render_fps == fps


def drawn(monkeypatch: pytest.MonkeyPatch, picture: Any) -> Any:
    """Returns the frame that is shown for a picture."""
    monkeypatch.setattr(Painter, "frame", picture)
    env = make_rendered_env("Painter-v0", 1, seed=0)
    env.reset()
    return env.render()


GREY = np.arange(48, dtype=np.uint8).reshape(6, 8)
COLOUR = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)


@pytest.mark.parametrize(
    ("picture", "shown"),
    [
        (COLOUR / 255.0, COLOUR),
        ((COLOUR / 255.0).astype(np.float32), COLOUR),
        (COLOUR.astype(np.float64), COLOUR),
        (COLOUR.astype(np.int64), COLOUR),
        (COLOUR.tolist(), COLOUR),
        (np.dstack([COLOUR, GREY]), COLOUR),
        (COLOUR.transpose(2, 0, 1), COLOUR),
        (GREY, np.dstack([GREY] * 3)),
        (GREY[..., None], np.dstack([GREY] * 3)),
        (GREY > 20, np.dstack([(GREY > 20) * np.uint8(255)] * 3)),
        ([GREY, COLOUR], COLOUR),
        (np.stack([COLOUR * 0, COLOUR]), COLOUR),
    ],
    ids=[
        "floats",
        "float32",
        "floats to 255",
        "int64",
        "lists",
        "opacity",
        "channels first",
        "grey",
        "one channel",
        "bits",
        "list",
        "array of frames",
    ],
)
def test_pictures_of_every_kind_are_shown(monkeypatch: pytest.MonkeyPatch, picture: Any, shown: Any) -> None:
    frames = drawn(monkeypatch, picture)
    assert (frames.dtype, frames.shape) == (np.uint8, (1, 6, 8, 3))
    np.testing.assert_array_equal(frames[0], shown)


@pytest.mark.parametrize("picture", [None, []])
def test_an_environment_that_draws_nothing_has_no_frames(monkeypatch: pytest.MonkeyPatch, picture: Any) -> None:
    assert drawn(monkeypatch, picture).shape == (0, 0, 0, 3)


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        (np.full((6, 8, 3), np.nan), "values from nan to nan"),
        (np.full((6, 8, 3), -1), "values from -1 to -1, not from 0 to 255"),
        (COLOUR * 300.0, "not from 0 to 255"),
        (np.zeros((6, 8, 5), np.uint8), r"uint8 \[6, 8, 5\], not a picture"),
        (np.zeros((0, 8, 3), np.uint8), r"uint8 \[0, 8, 3\]"),
        (np.zeros(8, np.uint8), r"uint8 \[8\]"),
        ([[[1, 2, 3]], [[1, 2]]], "a value that is no array"),
        ("ascii art", "<U9"),
    ],
)
def test_an_environment_that_draws_badly_is_named(monkeypatch: pytest.MonkeyPatch, picture: Any, reason: str) -> None:
    with pytest.raises(EnvironmentFailure, match=f"render returned .*{reason}"):
        drawn(monkeypatch, picture)


def test_an_error_of_drawing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Painter) -> None:
        raise RuntimeError("out of paint")

    monkeypatch.setattr(Painter, "render", fail)
    with pytest.raises(EnvironmentFailure, match=r"render raised .*out of paint"):
        drawn(monkeypatch, COLOUR)


def test_an_environment_may_draw_lists_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Painter.metadata, "render_modes", ["human", "rgb_array_list"])
    np.testing.assert_array_equal(drawn(monkeypatch, [GREY, COLOUR])[0], COLOUR)
