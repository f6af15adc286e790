"""The rules of the wire contract, by the numbers that docs/protocol.md and every violation name them by."""

from dataclasses import dataclass
from typing import Literal

Side = Literal["env-server", "learner", "both"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that a peer must do."""

    id: str
    """A letter of CHAPTERS and a number; never given to another rule."""
    side: Side
    """Who must keep it."""
    text: str
    unseen: str = ""
    """What of it the suite does not see: it shows nowhere outside the peer, or the suite cannot bring it about."""


CHAPTERS = {
    "C": "Connection",
    "H": "Hello",
    "W": "Welcome",
    "O": "Observations",
    "R": "Rows",
    "A": "Actions",
    "E": "Ends, and what follows them",
    "S": "Statuses that a learner ends streams with",
    "T": "Time",
    "V": "Versions",
}
"""By the letter of their rules."""

_DIALS = "The call is /kubebeast.v1.ActorPool/Act where the env-server dials and /kubebeast.v1.EnvServer/Play where the"

RULES = (
    Rule("C1", "both", f"{_DIALS} learner dials. The messages and their order are the same."),
    Rule(
        "C2",
        "both",
        "gRPC compresses no message. Who gets a compressed one inflates nothing and ends the stream; the learner's "
        "status is INVALID_ARGUMENT.",
    ),
    Rule(
        "C3",
        "both",
        "A message has at most 64 MiB, or what the learner's --max-message-mib says; the stream of a larger one ends "
        "with RESOURCE_EXHAUSTED.",
        unseen="what an env-server does with a larger one",
    ),
    Rule(
        "C4",
        "both",
        "Where a token is demanded, who dials sends the metadata `authorization: Bearer TOKEN`; a call without the "
        "right one ends with UNAUTHENTICATED.",
    ),
    Rule("C5", "learner", "A stream that breaks a rule ends alone: the others play on."),
    Rule("H1", "env-server", "The first message is a Hello, the only one; nothing follows it before the Welcome."),
    Rule(
        "H2",
        "env-server",
        "protocol_version is 1; protocol_minor is the minor version that the env-server knows.",
        unseen="whether the env-server knows that minor version",
    ),
    Rule(
        "H3",
        "env-server",
        "env_server_id and instance_id have 1 to 253 printable ASCII characters, env_id has at most 253.",
    ),
    Rule("H4", "env-server", "num_envs, B, is at least 1; one step and its answer, uncompressed, fit into a message."),
    Rule(
        "H5",
        "env-server",
        "There are 1 to 256 observation leaves and as many action leaves. Each has a dtype, at most 32 dimensions "
        "of 0 or more, and a path of at most 255 bytes that no other of its kind has; num_categories is not "
        "negative and fits the dtype.",
    ),
    Rule(
        "H6",
        "env-server",
        "frame_stack is 0 to 256, and of an action leaf 0 or 1. Only action leaves of floats are bounded.",
    ),
    Rule(
        "H7",
        "env-server",
        "At most one observation leaf has ROLE_ACTION_MASK, of DTYPE_BOOL and without a stack; no action leaf has a "
        "role.",
    ),
    Rule("H8", "env-server", "offered_compression has at most one entry an observation leaf."),
    Rule(
        "H9",
        "env-server",
        "env_config is empty or a JSON object of at most 8192 printable ASCII characters, with sorted keys and "
        "without spaces.",
    ),
    Rule(
        "H10",
        "env-server",
        "env_server_id stays the same across streams and processes; instance_id stays the same when a process "
        "connects again, and is new with every process.",
    ),
    Rule("H11", "env-server", "env_id, num_envs and the leaves stay the same when a process connects again."),
    Rule(
        "H12",
        "env-server",
        "An action mask has one element for each category of each element of each action leaf that has categories, in "
        "this order.",
    ),
    Rule("W1", "learner", "The answer to a Hello that is accepted is a Welcome, the first message and the only one."),
    Rule("W2", "learner", "protocol_version is 1; protocol_minor is the same for every stream."),
    Rule(
        "W3",
        "learner",
        "compression has one entry an observation leaf: the offered one or COMPRESSION_NONE; "
        "COMPRESSION_UNSPECIFIED is taken as the latter.",
    ),
    Rule("W4", "learner", "run_id is not empty and the same for every stream of the run."),
    Rule(
        "W5",
        "env-server",
        "A Welcome that breaks W1, W2 or W3 ends the stream: no Observations follow it.",
    ),
    Rule("O1", "env-server", "step counts 0, 1, 2, ... on a stream."),
    Rule("O2", "env-server", "One Observations is under way: the next one waits for the Actions of the one before."),
    Rule("O3", "env-server", "leaves has one entry an observation leaf, in the order of the Hello."),
    Rule(
        "O4",
        "env-server",
        "A leaf is encoded as the Welcome says. Uncompressed it has (B + (frame_stack - 1) * rows with is_first) * "
        "product(shape) * itemsize bytes; an LZ4 block has no size prefix.",
    ),
    Rule("O5", "env-server", "Every element of a float leaf is finite, also when it is rounded to float32."),
    Rule("O6", "env-server", "Elements of a leaf with num_categories = n are 0 to n - 1, those of DTYPE_BOOL 0 or 1."),
    Rule("O7", "env-server", "A row's action mask allows a category of every choice."),
    Rule("O8", "env-server", "rewards is float32 [B], each finite."),
    Rule(
        "O9",
        "env-server",
        "terminated, truncated and is_first are a byte an environment, 0 or 1; interrupted too, or empty where all "
        "are 0.",
    ),
    Rule(
        "O10",
        "env-server",
        "episodes has at most B entries; env is below B, episode_return is finite.",
    ),
    Rule("O11", "env-server", "env_us is 0 but in the answer to Actions with traced."),
    Rule(
        "R1",
        "env-server",
        "An environment's row is one of the table, for its episode and for the lower of both minor versions.",
        unseen="rows that no environment shows while the suite plays, as of those that fail",
    ),
    Rule("R2", "env-server", "The reward of a row that is first, absent or interrupted is 0."),
    Rule(
        "R3",
        "env-server",
        "An interrupted or absent row holds zeros.",
        unseen="rows that no environment shows while the suite plays",
    ),
    Rule("A1", "learner", "Each Observations is answered by one Actions with its step; nothing else comes between."),
    Rule(
        "A2",
        "learner",
        "leaves has one entry an action leaf, B * product(shape) * itemsize bytes, never compressed.",
    ),
    Rule("A3", "learner", "Elements of a leaf with num_categories = n are 0 to n - 1, those of DTYPE_BOOL 0 or 1."),
    Rule("A4", "learner", "Elements of a float leaf are finite."),
    Rule("A5", "learner", "A chosen category is one that the row's action mask allows."),
    Rule(
        "A6",
        "env-server",
        "Actions that break A1 to A4, and bytes that are no message, end the stream: no Observations follow.",
    ),
    Rule(
        "E1",
        "env-server",
        "A Bye is the last message; its side of the stream is closed after it. detail has at most 200 characters.",
    ),
    Rule(
        "E2",
        "env-server",
        "SIGTERM, or whatever asks an env-server of another system to end, gives a Bye with REASON_SHUTDOWN within "
        "10 s where a stream is open, and the end of the process after the learner's.",
        unseen="what else than SIGTERM asks it to end",
    ),
    Rule(
        "E3",
        "env-server",
        "After UNAVAILABLE, a broken connection, or the OK of a learner to which no Bye was sent, it connects "
        "again: a Hello, then step 0 with every row first.",
    ),
    Rule(
        "E4",
        "env-server",
        "After RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED it connects again; after OUT_OF_RANGE it may, seldom, or ends.",
        unseen="how seldom it comes again",
    ),
    Rule(
        "E5",
        "env-server",
        "INVALID_ARGUMENT, FAILED_PRECONDITION, UNAUTHENTICATED, PERMISSION_DENIED and UNIMPLEMENTED are final: it "
        "stops and says why.",
        unseen="that it says why",
    ),
    Rule(
        "E6",
        "env-server",
        "Between the end of a stream and the next dial is a random wait of 0.1 s to 10 s, longer after each failure.",
        unseen="each wait by itself: the fourth is longer than the first, and processes do not wait alike",
    ),
    Rule(
        "E7",
        "env-server",
        "Where the learner dials, an End or the end of the learner's side ends the stream, and the env-server waits "
        "for the next call. A call that it has no environments for ends with RESOURCE_EXHAUSTED.",
    ),
    Rule("E8", "learner", "A Bye, and a side that is closed without one, end the stream with OK."),
    Rule(
        "E9",
        "learner",
        "Where it dials, an End with the code and the text of the status is its last message, but for OK; then its "
        "side is closed.",
    ),
    Rule(
        "S1",
        "learner",
        "FAILED_PRECONDITION: another major version, leaves other than the run's, or an env_id that is none of its "
        "tasks.",
        unseen="an env_id that is none of its tasks",
    ),
    Rule("S2", "learner", "INVALID_ARGUMENT: a Hello breaks H1 or one of H3 to H8. The text names the field."),
    Rule(
        "S3",
        "learner",
        "INVALID_ARGUMENT: Observations break O1 to O6, O8 to O10, R1 or R2. The text names the field.",
        unseen="O6",
    ),
    Rule(
        "S4",
        "learner",
        "INVALID_ARGUMENT: a second Hello, a message with no payload or bytes that are none, a Bye that breaks E1.",
    ),
    Rule("S5", "learner", "DEADLINE_EXCEEDED: no Hello, or no Observations, within the time of T3 or T4."),
    Rule(
        "S6",
        "learner",
        "OUT_OF_RANGE where the run is finished, UNAVAILABLE where the learner is about to be replaced.",
    ),
    Rule(
        "S7",
        "learner",
        "RESOURCE_EXHAUSTED where it has as many streams or environments as it can take.",
        unseen="environments: the suite opens streams",
    ),
    Rule(
        "T1",
        "env-server",
        "Where it dials, it waits for the Welcome for 60 s at least: the learner may be starting. Where it listens, it "
        "may let the next learner in instead.",
    ),
    Rule(
        "T2",
        "env-server",
        "It waits for Actions as long as the connection lives: a learner that is busy holds streams back.",
        unseen="waits that are longer than --quiet-s",
    ),
    Rule(
        "T3",
        "learner",
        "It waits 10 s for the Hello (--handshake-timeout-s).",
        unseen="the time of a learner without that flag: the suite has to be told how long yours waits",
    ),
    Rule(
        "T4",
        "learner",
        "It waits 60 s for the next Observations (--step-timeout-s); a slow stream holds up no other.",
        unseen="the time of a learner without that flag: the suite has to be told how long yours waits",
    ),
    Rule(
        "T5",
        "both",
        "Keepalive pings come at most every 10 s; every 20 s is a good choice, and a connection is dead that leaves "
        "one without an answer for 10 s.",
        unseen="pings within TLS, and how a peer that sends none finds out; of a learner that dials, all of it",
    ),
    Rule("V1", "both", "Fields that a peer does not know are skipped."),
    Rule(
        "V2",
        "env-server",
        "Rows and fields of a minor version above the Welcome's, interrupted (1), REASON_ENVIRONMENT_FAILED (1), "
        "env_us (2), the row absent (4), are not sent to it.",
    ),
    Rule("V3", "learner", "An env-server of any minor version is welcomed, older or newer."),
    Rule(
        "V4",
        "learner",
        "traced (2) is not set for an env-server of an older minor version; it gets no End (1).",
        unseen="the End of a learner that dials",
    ),
)
"""In the order of the document."""

BY_ID = {rule.id: rule for rule in RULES}
