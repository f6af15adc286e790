"""Origins of unrolls follow each environment, and never from one life of a process into the next."""

from kubebeast_learner.actors.mono.origins import Origins, as_tensor


def test_unrolls_of_each_group_are_numbered() -> None:
    origins = Origins()
    origins.begin_streams([0, 1])
    origins.begin_streams([2])

    assert origins.next_unroll(1, 2) == [(1, 0, 0), (1, 1, 0)]
    assert origins.next_unroll(2, 1) == [(2, 0, 0)]
    assert origins.next_unroll(1, 2) == [(1, 0, 1), (1, 1, 1)]


def test_a_process_that_was_restarted_has_streams_of_its_own() -> None:
    origins = Origins()
    origins.begin_streams([0, 1])
    origins.next_unroll(0, 1)
    origins.begin_streams([0])

    assert origins.next_unroll(0, 1) == [(2, 0, 0)]
    assert origins.next_unroll(1, 1) == [(1, 0, 0)]


def test_a_batch_has_a_column_for_each_unroll() -> None:
    assert as_tensor([(0, 1, 2), (3, 4, 5)]).tolist() == [[0, 3], [1, 4], [2, 5]]
