"""An environment on the C interface of the client library, as a program in another language has it.

`python c_interface.py LIBRARY NUM_STEPS OPTION=VALUE ...` plays NUM_STEPS steps and prints the name of the last code.
Imports nothing that brings a gRPC of its own.
"""

import ctypes
import sys

OK = 0
FLOAT32, INT64 = 6, 5
TEXTS = (
    *("address", "tls_authorities", "tls_certificate", "tls_key", "tls_server_name", "token_file", "env_server_id"),
    *("instance_id", "env_id", "env_config"),
)
TIMEOUT_MS = 20_000


class Leaf(ctypes.Structure):
    _fields_ = (
        ("path", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("num_dims", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("frame_stack", ctypes.c_uint32),
        ("bounded", ctypes.c_int32),
        ("num_categories", ctypes.c_int64),
        ("is_action_mask", ctypes.c_int32),
    )


class Options(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        *((name, ctypes.c_char_p) for name in TEXTS),
        ("observation", ctypes.POINTER(Leaf)),
        ("action", ctypes.POINTER(Leaf)),
        ("num_observation", ctypes.c_uint32),
        ("num_action", ctypes.c_uint32),
        ("num_envs", ctypes.c_uint32),
        ("no_lz4", ctypes.c_int32),
        ("report_episodes", ctypes.c_int32),
        ("progress_thread", ctypes.c_int32),
        ("welcome_timeout_ms", ctypes.c_uint32),
        ("log", ctypes.c_void_p),
        ("log_user", ctypes.c_void_p),
    )


def play(library: ctypes.CDLL, num_steps: int, texts: dict[str, bytes]) -> int:
    """Returns the last code."""
    shape = (ctypes.c_int64 * 1)(2)
    observation = Leaf(dtype=FLOAT32, num_dims=1, shape=shape)
    action = Leaf(dtype=INT64, num_categories=2)
    options = Options(num_observation=1, num_action=1, progress_thread=1, **texts)
    options.struct_size = ctypes.sizeof(options)
    options.observation, options.action = ctypes.pointer(observation), ctypes.pointer(action)
    stream = ctypes.c_void_p()
    numbers, choice = (ctypes.c_float * 2)(), ctypes.c_int64()
    leaves, choices = (ctypes.c_void_p * 1)(ctypes.addressof(numbers)), (ctypes.c_void_p * 1)(ctypes.addressof(choice))

    code: int = library.kubebeast_open(ctypes.byref(options), ctypes.byref(stream))
    if code == OK:
        code = library.kubebeast_start(stream, 0, leaves)
    for _ in range(num_steps):
        if code == OK:
            code = library.kubebeast_wait(stream, 0, TIMEOUT_MS, choices)
        if code == OK:
            code = library.kubebeast_observe(stream, 0, leaves, ctypes.c_float(1.0))
    library.kubebeast_free(stream)
    return code


def main() -> None:
    library, num_steps, *settings = sys.argv[1:]
    texts = {name: value.encode() for name, value in (setting.split("=", 1) for setting in settings)}
    functions = ctypes.CDLL(library)
    functions.kubebeast_code_name.restype = ctypes.c_char_p
    print(functions.kubebeast_code_name(play(functions, int(num_steps), texts)).decode())


if __name__ == "__main__":
    main()
