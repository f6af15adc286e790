// Catch for a KubeBeast learner, in JavaScript, written from docs/protocol.md: four games on one stream.
//
//     kubebeast learner --recipe Catch
//     npm ci
//     node env_server.js 127.0.0.1:4431

import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const PROTO = fileURLToPath(new URL("../../protos/kubebeast_protos/v1/actor_pool.proto", import.meta.url));
const { ActorPool } = grpc.loadPackageDefinition(
  protoLoader.loadSync(PROTO, { keepCase: true, longs: Number, defaults: true, oneofs: true }),
).kubebeast.v1;

const OPTIONS = {
  "grpc.use_local_subchannel_pool": 1, // a new connection each time
  "grpc.max_receive_message_length": 64 << 20,
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
};
const Status = grpc.status;
const FINAL = new Set([
  Status.INVALID_ARGUMENT,
  Status.FAILED_PRECONDITION,
  Status.UNAUTHENTICATED,
  Status.PERMISSION_DENIED,
  Status.UNIMPLEMENTED,
]);
const PROTOCOL_VERSION = 1;
const DTYPE_INT64 = 5, DTYPE_FLOAT32 = 6;
const COMPRESSION_LZ4 = 2;
const REASON_SHUTDOWN = 1;
const WELCOME_TIMEOUT_MS = 300_000, END_TIMEOUT_MS = 2_000, STEADY_MS = 5_000;
const FIRST_WAIT_MS = 250, LONGEST_WAIT_MS = 8_000;

const NUM_ENVS = 4, ROWS = 10, COLUMNS = 5, NUM_ACTIONS = 3;

/** One entry an environment. */
const list = (make) => Array.from({ length: NUM_ENVS }, (_, env) => make(env));

/** A ball falls through a board; the paddle in the last row must be below it. Actions: 0 left, 1 stay, 2 right. */
class Catch {
  isOver = true;

  /** The next row. Where a game is over the action does nothing but reset. */
  step(action) {
    const isFirst = this.isOver;
    if (isFirst) {
      this.ball = 0;
      this.column = Math.floor(Math.random() * COLUMNS);
      this.paddle = Math.floor(COLUMNS / 2);
    } else {
      this.paddle = Math.min(Math.max(this.paddle + action - 1, 0), COLUMNS - 1);
      this.ball += 1;
    }
    this.isOver = this.ball === ROWS - 1;
    const reward = !this.isOver ? 0 : this.column === this.paddle ? 1 : -1;
    return { board: this.board(), reward, isFirst, terminated: this.isOver };
  }

  board() {
    const bytes = Buffer.alloc(4 * ROWS * COLUMNS);
    for (const cell of [this.ball * COLUMNS + this.column, (ROWS - 1) * COLUMNS + this.paddle]) {
      bytes.writeFloatLE(1, 4 * cell);
    }
    return bytes;
  }
}

function hello(instanceId) {
  return {
    protocol_version: PROTOCOL_VERSION,
    env_server_id: "node",
    instance_id: instanceId,
    env_id: "Catch-v0",
    num_envs: NUM_ENVS,
    observation: [{ dtype: DTYPE_FLOAT32, shape: [ROWS, COLUMNS] }],
    action: [{ dtype: DTYPE_INT64, num_categories: NUM_ACTIONS }],
  };
}

function observations(step, games, actions) {
  const rows = games.map((game, env) => game.step(actions[env]));
  const rewards = Buffer.alloc(4 * NUM_ENVS);
  rows.forEach((row, env) => rewards.writeFloatLE(row.reward, 4 * env));
  return {
    step,
    leaves: [Buffer.concat(rows.map((row) => row.board))],
    rewards,
    terminated: Buffer.from(rows.map((row) => Number(row.terminated))),
    truncated: Buffer.alloc(NUM_ENVS),
    is_first: Buffer.from(rows.map((row) => Number(row.isFirst))),
    episodes: rows.flatMap((row, env) => row.terminated ? [{ env, episode_return: row.reward, length: ROWS - 1 }] : []),
  };
}

/** The actions of a response. Throws where the learner has broken a rule. */
function checkedActions(response, step) {
  const { actions } = response;
  if (response.payload !== "actions" || actions.step !== step) throw new Error(`no Actions of step ${step}`);
  const sizes = actions.leaves.map((leaf) => leaf.length);
  if (sizes.length !== 1 || sizes[0] !== 8 * NUM_ENVS) throw new Error(`actions of ${sizes} bytes`);
  const chosen = list((env) => Number(actions.leaves[0].readBigInt64LE(8 * env)));
  if (!chosen.every((action) => action >= 0 && action < NUM_ACTIONS)) throw new Error(`no such actions: ${chosen}`);
  return chosen;
}

/** Ends the process where the learner's version is another one. Throws where the Welcome breaks a rule. */
function checkWelcome(response) {
  if (response.payload !== "welcome") throw new Error("no Welcome");
  const { compression, protocol_version: version } = response.welcome;
  if (compression.length !== 1 || compression[0] === COMPRESSION_LZ4) throw new Error("another compression than offered");
  if (version !== PROTOCOL_VERSION) {
    console.error(`the learner has version ${version} of the protocol`);
    process.exit(3);
  }
}

let leave = () => process.exit(0); // what SIGTERM does; while a stream is open it says Bye first

/** One stream to its end; its status code. */
function play(address, instanceId) {
  const client = new ActorPool(address, grpc.credentials.createInsecure(), OPTIONS);
  const stream = client.Act();
  const played = list(() => new Catch());
  let step = -1; // before the Welcome
  const late = setTimeout(() => stream.cancel(), WELCOME_TIMEOUT_MS);
  leave = () => {
    stream.write({ bye: { reason: REASON_SHUTDOWN } });
    stream.end();
    stream.once("status", () => process.exit(0));
    setTimeout(() => process.exit(0), END_TIMEOUT_MS);
    leave = () => process.exit(0);
  };
  stream.on("data", (response) => {
    if (stream.writableEnded) return; // after the Bye
    try {
      let actions = list(() => 0); // ignored: each game begins
      if (step < 0) {
        checkWelcome(response);
        clearTimeout(late);
      } else {
        actions = checkedActions(response, step);
      }
      step += 1;
      stream.write({ observations: observations(step, played, actions) });
    } catch (error) {
      console.error(`the stream ends: ${error.message}`);
      stream.cancel();
    }
  });
  stream.on("error", (error) => console.error(error.message)); // the status says the rest
  stream.write({ hello: hello(instanceId) });
  return new Promise((resolve) => {
    stream.on("status", (status) => {
      clearTimeout(late);
      client.close();
      leave = () => process.exit(0);
      resolve(status.code);
    });
  });
}

async function main(address) {
  process.on("SIGTERM", () => leave());
  const instanceId = randomUUID();
  for (let tries = 0; ; tries += 1) {
    const began = Date.now();
    const code = await play(address, instanceId);
    if (FINAL.has(code)) process.exit(3);
    if (Date.now() - began > STEADY_MS) tries = 0;
    const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(tries, 16));
    await new Promise((resolve) => setTimeout(resolve, ceiling * (0.5 + Math.random() / 2)));
  }
}

await main(process.argv[2] ?? "127.0.0.1:4431");
