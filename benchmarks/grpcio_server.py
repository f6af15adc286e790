"""Reference server: the same contract on grpcio with the generated stubs, one thread per stream, uncompressed."""

from collections.abc import Iterator
from concurrent import futures
from multiprocessing.connection import Connection

import grpc
import numpy as np

from benchmarks.cell import Cell, Snapshot
from kubebeast_protos.v1 import PROTOCOL_VERSION, actor_pool_pb2_grpc
from kubebeast_protos.v1 import actor_pool_pb2 as pb


class GrpcioActorPool(actor_pool_pb2_grpc.ActorPoolServicer):
    """A service that answers every step with action 0 and copies its rows into an unroll, as a Python learner must."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        # One entry per stream, written only by the stream's thread.
        self._steps: list[int] = []
        self._bytes: list[int] = []

    def Act(self, requests: Iterator[pb.ActRequest], context: grpc.ServicerContext) -> Iterator[pb.ActResponse]:  # noqa: N802
        cell = self._cell
        stream = len(self._steps)
        self._steps.append(0)
        self._bytes.append(0)
        unroll = np.empty((cell.unroll_length + 1, cell.num_envs, 84, 84), np.uint8)
        actions = [bytes(8 * cell.num_envs)]
        next(requests)
        yield pb.ActResponse(
            welcome=pb.Welcome(protocol_version=PROTOCOL_VERSION, run_id="transport", compression=[pb.COMPRESSION_NONE])
        )
        for request in requests:
            observations = request.observations
            leaf = np.frombuffer(observations.leaves[0], np.uint8).reshape(cell.num_envs, 84, 84)
            unroll[observations.step % len(unroll)] = leaf
            self._steps[stream] += cell.num_envs
            self._bytes[stream] += leaf.nbytes + 7 * cell.num_envs
            yield pb.ActResponse(actions=pb.Actions(step=observations.step, leaves=actions))

    def snapshot(self) -> Snapshot:
        steps = sum(self._steps)
        return Snapshot.take(steps=steps, bytes_received=sum(self._bytes), steps_delivered=steps)


def serve(cell: Cell, channel: Connection) -> None:
    """Sends its address over `channel`, then a Snapshot per received message, until the other end closes."""
    options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.so_reuseport", 0)]
    server = grpc.server(futures.ThreadPoolExecutor(cell.streams + 1), options=options)
    pool = GrpcioActorPool(cell)
    actor_pool_pb2_grpc.add_ActorPoolServicer_to_server(pool, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel.send(f"127.0.0.1:{port}")
    try:
        while channel.recv():
            channel.send(pool.snapshot())
    except EOFError:
        pass
    finally:
        server.stop(grace=None).wait()
