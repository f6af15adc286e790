"""The rules of the wire contract, numbered as in docs/protocol.md and in reports of violations."""

from kubebeast_conformance.chapters import Rule

RULES = (
    Rule(
        "C1",
        "both",
        "If the env-server dials, the call is /kubebeast.v1.ActorPool/Act. If the learner dials, it is "
        "/kubebeast.v1.EnvServer/Play. The messages and their order are the same.",
    ),
    Rule(
        "C2",
        "both",
        "Peers send messages without gRPC's compression. A peer that receives a compressed message does not inflate it "
        "and ends the stream; the learner's status is INVALID_ARGUMENT.",
    ),
    Rule(
        "C3",
        "both",
        "A message has at most 64 MiB, or the size in the learner's --max-message-mib. If a message is larger, its "
        "stream ends with RESOURCE_EXHAUSTED.",
        unseen="an env-server's reaction to a larger message",
    ),
    Rule(
        "C4",
        "both",
        "If the listening side requires a token, the dialing side sends the metadata `authorization: Bearer TOKEN`. A "
        "call without the correct token ends with UNAUTHENTICATED.",
    ),
    Rule("C5", "learner", "A stream that breaks a rule ends alone. The other streams continue."),
    Rule(
        "C6",
        "learner",
        "The learner closes a connection that has no stream but keeps sending frames or calls of any kind. Meanwhile "
        "other streams continue, and a peer with the correct token can connect.",
        unseen="the whole rule without --floods",
    ),
    Rule("H1", "env-server", "The first message is a Hello, the only one. Nothing else follows before the Welcome."),
    Rule(
        "H2",
        "env-server",
        "protocol_version is 1; protocol_minor is the minor version that the env-server knows.",
        unseen="whether the env-server knows that minor version",
    ),
    Rule(
        "H3",
        "env-server",
        "env_server_id and instance_id have 1 to 253 printable ASCII characters. env_id has at most 253.",
    ),
    Rule(
        "H4",
        "env-server",
        "num_envs (B) is at least 1. One step and its answer, each uncompressed, fit into a message.",
    ),
    Rule(
        "H5",
        "env-server",
        "There are 1 to 256 observation leaves and 1 to 256 action leaves. Each leaf has a dtype, at most 32 "
        "dimensions of size 0 or more, and a path of at most 255 bytes that is unique among the leaves of its kind. "
        "num_categories is not negative and fits the dtype.",
    ),
    Rule(
        "H6",
        "env-server",
        "frame_stack is 0 to 256, for an action leaf 0 or 1; 0 means 1, no stack. Only action leaves of floats may be "
        "bounded.",
    ),
    Rule(
        "H7",
        "env-server",
        "At most one observation leaf has ROLE_ACTION_MASK, with DTYPE_BOOL and no stack. Action leaves have no role.",
    ),
    Rule("H8", "env-server", "offered_compression has at most one entry per observation leaf."),
    Rule(
        "H9",
        "env-server",
        "env_config is empty or a JSON object of at most 8192 printable ASCII characters, with sorted keys and "
        "without spaces.",
    ),
    Rule(
        "H10",
        "env-server",
        "env_server_id stays the same across streams and processes. instance_id is new for every process and stays the "
        "same if the process reconnects.",
    ),
    Rule("H11", "env-server", "env_id, num_envs and the leaves stay the same if a process reconnects."),
    Rule(
        "H12",
        "env-server",
        "An action mask has one element for each category of each element of each action leaf with categories, in this "
        "order.",
    ),
    Rule(
        "H13",
        "env-server",
        "run has at most 253 bytes. It is empty, or the run_id of the only run that the env-server serves.",
        unseen="whether it matches the setting of the env-server",
    ),
    Rule("H14", "env-server", "num_agents is 0 or divides num_envs. takes_turns is set only if it is at least 2."),
    Rule(
        "W1", "learner", "The answer to an accepted Hello is a Welcome. It is the first message and the only Welcome."
    ),
    Rule("W2", "learner", "protocol_version is 1; protocol_minor is the same for every stream."),
    Rule(
        "W3",
        "learner",
        "compression has one entry per observation leaf: the offered compression or COMPRESSION_NONE. "
        "COMPRESSION_UNSPECIFIED means COMPRESSION_NONE.",
    ),
    Rule("W4", "learner", "run_id is not empty and the same for every stream of the run."),
    Rule(
        "W5",
        "env-server",
        "If a Welcome breaks W1, W2, W3 or W7, or names another run than the Hello, the env-server ends the stream and "
        "sends no Observations.",
    ),
    Rule("W6", "learner", "log_info has at most 32 entries, of 1 to 100 printable ASCII characters each."),
    Rule(
        "W7",
        "learner",
        "episode_options has at most one entry per environment, with env below B. options is a JSON object of at most "
        "4096 printable ASCII characters.",
    ),
    Rule(
        "W8",
        "env-server",
        "An environment is reset with the newest options that the learner has sent for it. If the environments take "
        "none, the env-server ends the stream after the Welcome.",
        unseen="the options that resets receive",
    ),
    Rule("O1", "env-server", "step counts 0, 1, 2, ... on a stream."),
    Rule(
        "O2",
        "env-server",
        "Exactly one Observations is in flight. The env-server sends the next one after it has "
        "received the Actions for the previous one.",
    ),
    Rule("O3", "env-server", "leaves has one entry per observation leaf, in the order of the Hello."),
    Rule(
        "O4",
        "env-server",
        "A leaf has the encoding that the Welcome chose. Its uncompressed size is (B + (frame_stack - 1) * rows with "
        "is_first) * product(shape) * itemsize bytes, with frame_stack at least 1. An LZ4 block has no size prefix.",
    ),
    Rule("O5", "env-server", "Every element of a float leaf is finite, also after rounding to float32."),
    Rule("O6", "env-server", "Elements of a leaf with num_categories = n are 0 to n - 1, those of DTYPE_BOOL 0 or 1."),
    Rule("O7", "env-server", "The action mask of a row allows at least one category of every choice."),
    Rule("O8", "env-server", "rewards is float32 [B], each finite."),
    Rule(
        "O9",
        "env-server",
        "terminated, truncated and is_first have one byte per environment, 0 or 1. interrupted and waiting have the "
        "same, or are empty if all are 0.",
    ),
    Rule(
        "O10",
        "env-server",
        "episodes has at most B entries. env is below B, and episode_return is finite. exact_return is absent or "
        "rounds to it. info is empty, or has one value for each entry of the Welcome's log_info, finite or NaN.",
    ),
    Rule("O11", "env-server", "env_us is 0, except in the answer to Actions with traced."),
    Rule(
        "R1",
        "env-server",
        "Each row is one of those in the table of rows, as the state of its episode and the lower of both minor "
        "versions allow.",
        unseen="rows that do not occur while the suite plays, such as those of failed environments",
    ),
    Rule("R2", "env-server", "The reward of a row that is first, absent, interrupted or waiting is 0."),
    Rule(
        "R3",
        "env-server",
        "An interrupted, absent or waiting row holds zeros, or ones in an action mask.",
        unseen="rows that do not occur while the suite plays",
    ),
    Rule(
        "R4",
        "env-server",
        "Rows wait only if takes_turns is set. If an agent waits, another one of its environment has a turn: it "
        "neither waits nor is absent.",
        unseen="rows that do not occur while the suite plays",
    ),
    Rule(
        "A1",
        "learner",
        "The learner answers each Observations with one Actions of the same step. No other message comes between.",
    ),
    Rule(
        "A2",
        "learner",
        "leaves has one entry per action leaf, of B * product(shape) * itemsize bytes, never compressed.",
    ),
    Rule("A3", "learner", "Elements of a leaf with num_categories = n are 0 to n - 1, those of DTYPE_BOOL 0 or 1."),
    Rule("A4", "learner", "Elements of a float leaf are finite."),
    Rule("A5", "learner", "Every chosen category is allowed by the action mask of its row."),
    Rule(
        "A6",
        "env-server",
        "If Actions break one of A1 to A4 or A7, as far as the message shows, or bytes are not a message, the "
        "env-server ends the stream and sends no Observations.",
    ),
    Rule(
        "A7",
        "learner",
        "episode_options is as in W7, and only for environments with a final or interrupted row in the answered "
        "Observations.",
    ),
    Rule(
        "E1",
        "env-server",
        "A Bye is the last message. The env-server then closes its side. detail has at most 200 characters.",
    ),
    Rule(
        "E2",
        "env-server",
        "After SIGTERM, or an equivalent request on another system, the env-server sends a Bye with REASON_SHUTDOWN "
        "within 10 s if a stream is open. The process exits after the learner has ended the stream.",
        unseen="requests other than SIGTERM",
    ),
    Rule(
        "E3",
        "env-server",
        "After UNAVAILABLE, a broken connection, or an OK without a Bye, the env-server reconnects: it sends a Hello, "
        "then step 0 with is_first in every row.",
    ),
    Rule(
        "E4",
        "env-server",
        "After RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED, the env-server reconnects. After OUT_OF_RANGE, it reconnects "
        "at long intervals or exits.",
        unseen="the length of these intervals",
    ),
    Rule(
        "E5",
        "env-server",
        "INVALID_ARGUMENT, FAILED_PRECONDITION, UNAUTHENTICATED, PERMISSION_DENIED and UNIMPLEMENTED are final: the "
        "env-server stops and reports the reason.",
        unseen="the reported reason",
    ),
    Rule(
        "E6",
        "env-server",
        "The env-server waits between the end of a stream and the next dial. The wait is random, 0.1 s to 10 s, and on "
        "average longer after each failure.",
        unseen="each single wait: the suite checks that the fourth is longer than the first and that processes wait "
        "for different times",
    ),
    Rule(
        "E7",
        "env-server",
        "If the learner dials, an End or the end of the learner's side ends the stream, and the env-server waits for "
        "the next call. If it has no environments for a call, it ends the call with RESOURCE_EXHAUSTED.",
    ),
    Rule(
        "E8",
        "learner",
        "If the env-server sends a Bye, or closes its side without one, the learner ends the stream with OK.",
    ),
    Rule(
        "E9",
        "learner",
        "If the learner dials, its last message is an End with the code and text of the status, except for OK. Then it "
        "closes its side.",
    ),
    Rule(
        "S1",
        "learner",
        "FAILED_PRECONDITION: the Hello has another major version, another run, other leaves than the run, or an "
        "env_id that is none of its tasks.",
        unseen="an env_id that is none of its tasks",
    ),
    Rule(
        "S2",
        "learner",
        "INVALID_ARGUMENT: a Hello breaks one of H1, H3 to H8, H13 and H14. The text of the status names the field.",
    ),
    Rule(
        "S3",
        "learner",
        "INVALID_ARGUMENT: Observations break one of the rules O1 to O6, O8 to O10, R1, R2 and R4. The text of the "
        "status names the field.",
        unseen="O6",
    ),
    Rule(
        "S4",
        "learner",
        "INVALID_ARGUMENT: the env-server sends a second Hello, a message without a payload, bytes that are not a "
        "message, or a Bye that breaks E1.",
    ),
    Rule("S5", "learner", "DEADLINE_EXCEEDED: no Hello or no Observations arrive within the time of T3 or T4."),
    Rule("S6", "learner", "OUT_OF_RANGE: the run is finished. UNAVAILABLE: the learner is about to be replaced."),
    Rule(
        "S7",
        "learner",
        "RESOURCE_EXHAUSTED: the learner has the maximum number of streams or environments.",
        unseen="environments, because the suite only opens streams",
    ),
    Rule(
        "T1",
        "env-server",
        "If the env-server dials, it waits at least 60 s for the Welcome, because the learner may be starting. If it "
        "listens, it may admit the next learner instead.",
    ),
    Rule(
        "T2",
        "env-server",
        "The env-server waits for Actions as long as the connection lives, because a busy learner holds streams back.",
        unseen="waits of more than --quiet-s",
    ),
    Rule(
        "T3",
        "learner",
        "The learner waits 10 s for the Hello (--handshake-timeout-s).",
        unseen="the time of a learner without this flag, because the suite needs the value",
    ),
    Rule(
        "T4",
        "learner",
        "The learner waits 60 s for the next Observations (--step-timeout-s). A slow stream does not delay other "
        "streams.",
        unseen="the time of a learner without this flag, because the suite needs the value",
    ),
    Rule(
        "T5",
        "both",
        "Keepalive pings are at least 10 s apart; every 20 s is a good choice. If a ping has no answer after 10 s, the "
        "connection is dead.",
        unseen="pings within TLS, the detection of dead connections by a peer without pings, and the whole rule for a "
        "learner that dials",
    ),
    Rule("V1", "both", "A peer skips unknown fields."),
    Rule(
        "V2",
        "env-server",
        "The env-server sends no rows and fields of a newer minor version than the Welcome's: interrupted (1), "
        "REASON_ENVIRONMENT_FAILED (1), env_us (2), absent rows (4), info and exact_return (6), waiting rows (8).",
    ),
    Rule("V3", "learner", "The learner accepts env-servers of any minor version, older or newer."),
    Rule(
        "V4",
        "learner",
        "The learner does not set traced (2), log_info (6) and episode_options (7) and does not send an End (1) for an "
        "env-server of an older minor version.",
        unseen="the End of a learner that dials",
    ),
)
"""Rules in the order of the document."""

BY_ID = {rule.id: rule for rule in RULES}
