"""The native actor pool with a null model, which isolates the cost of the transport on the learner's side."""

import dataclasses
import threading
from multiprocessing.connection import Connection

import numpy as np

import kubebeast_native as native
from benchmarks import frames, recorded_env
from benchmarks.cell import Cell, Snapshot
from kubebeast_common.pool.options_feed import OptionsFeed
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.curriculum.progress import Progress

_WAIT_MS = 1000
LEVELS = [{"seed": seed, "size": 5 + seed % 7} for seed in range(1000)]


def serve(cell: Cell, channel: Connection) -> None:
    """Sends its address over `channel`, then a Snapshot per received message, until the other end closes."""
    # A real model finds several streams waiting after each batch; the null model would find one.
    min_rows = max(1, cell.streams // 2) * cell.num_envs
    pool = native.ActorPool(
        address="127.0.0.1:0",
        run_id="transport",
        unroll_length=cell.unroll_length,
        batch_size=cell.batch_size,
        # No environment is held back, because waiting would hide the cost of transport.
        max_queued_rollouts=cell.streams * cell.num_envs + 2 * cell.batch_size,
        min_inference_rows=min_rows,
        max_inference_rows=max(256, min_rows),
        expected=env_spec(cell),
        episode_options=cell.with_options,
        tls_cert=str(cell.tls.cert) if cell.tls else "",
        tls_key=str(cell.tls.key) if cell.tls else "",
    )
    levels = Levels("progress", Progress(LEVELS, seed=1), ()) if cell.with_options else None
    feed = None if levels is None else OptionsFeed(pool, levels.draw)
    pool.start()
    if feed is not None:
        feed.fill()
        feed.start()
    pool.open(num_logits=frames.NUM_ACTIONS, core_state_size=0, single_frames=cell.single_frames)
    rooms = [threading.Thread(target=room, args=(pool,)) for room in (_answer, _consume)]
    for room in rooms:
        room.start()
    channel.send(pool.address)
    try:
        while channel.recv():
            for episode in pool.take_episodes():
                if levels is not None:
                    levels.add(episode.options, episode.episode_return, episode.length, ())
            stats = pool.stats()
            channel.send(
                Snapshot.take(
                    steps=stats["rows_received"],
                    bytes_received=stats["bytes_received"],
                    steps_delivered=stats["steps_delivered"],
                )
            )
    except EOFError:
        pass
    finally:
        pool.close()
        for room in rooms:
            room.join()


def env_spec(cell: Cell) -> native.EnvSpec:
    """Returns the spec of the environments in the streams of a cell."""
    kinds = (recorded_env.observation_leaves(cell), recorded_env.action_leaves())
    observation, action = ([native.LeafSpec(*dataclasses.astuple(leaf)) for leaf in leaves] for leaves in kinds)
    return native.EnvSpec("", observation, action)


def _answer(pool: native.ActorPool) -> None:
    """Runs the null model: the same action and outputs for every row."""
    actions = np.zeros(1 << 16, np.int64)
    logits = np.zeros((1 << 16, frames.NUM_ACTIONS), np.float32)
    baseline = np.zeros(1 << 16, np.float32)

    def reply_to_next() -> None:  # and releases it, as the learner's inference does
        if batch := pool.next_inference(_WAIT_MS):
            rows = batch.num_rows
            batch.reply([actions[:rows]], logits[:rows], baseline[:rows], policy_version=0)

    try:
        while True:
            reply_to_next()
    except native.ClosedError:
        return


def _consume(pool: native.ActorPool) -> None:
    """Runs the null learner: takes every training batch and drops it."""
    try:
        while True:
            pool.next_rollouts(_WAIT_MS)
    except native.ClosedError:
        return
