/* CartPole in C, played by a learner: `cartpole ADDRESS` until SIGTERM or
 * SIGINT.
 *
 * The game of gymnasium's CartPole-v1 (Barto, Sutton and Anderson 1983,
 * https://doi.org/10.1109/TSMC.1983.6313077), so that both can train on the
 * same learner.
 */
#include <kubebeast_client.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_STEPS = 500 };

typedef struct {
  float x, x_dot, theta, theta_dot;
} state;

static volatile sig_atomic_t stopped = 0;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

static float small_number(void) { return (float)rand() / (float)RAND_MAX * 0.1F - 0.05F; }

static state reset(void) {
  const state start = {small_number(), small_number(), small_number(), small_number()};
  return start;
}

/* Euler's method, 0.02 s a step; action 0 pushes to the left, 1 to the right.
 */
static state step(state s, int64_t action) {
  const float gravity = 9.8F, mass_pole = 0.1F, total_mass = 1.1F, length = 0.5F, tau = 0.02F;
  const float force = action == 1 ? 10.0F : -10.0F;
  const float cosine = cosf(s.theta), sine = sinf(s.theta);
  const float temp = (force + mass_pole * length * s.theta_dot * s.theta_dot * sine) / total_mass;
  const float theta_acc =
      (gravity * sine - cosine * temp) / (length * (4.0F / 3.0F - mass_pole * cosine * cosine / total_mass));
  const float x_acc = temp - mass_pole * length * theta_acc * cosine / total_mass;
  const state next = {s.x + tau * s.x_dot, s.x_dot + tau * x_acc, s.theta + tau * s.theta_dot,
                      s.theta_dot + tau * theta_acc};
  return next;
}

static int has_fallen(state s) { return fabsf(s.x) > 2.4F || fabsf(s.theta) > 0.2094395F; }

static void print_line(void* user, const char* line) {
  (void)user;
  fprintf(stderr, "%s\n", line);
}

/* Waits for the reply to the last row, for as long as nobody stops the program.
 */
static kubebeast_code wait_for(kubebeast_stream* stream, void* const* actions) {
  kubebeast_code code = KUBEBEAST_PENDING;
  while (code == KUBEBEAST_PENDING && !stopped) code = kubebeast_wait(stream, 0, 100, actions);
  return code;
}

/* One episode: KUBEBEAST_OK at its end, KUBEBEAST_LOST where the connection
 * broke, or another code. */
static kubebeast_code play_episode(kubebeast_stream* stream) {
  int64_t action = 0;
  void* actions[] = {&action};
  state s = reset();
  const void* leaves[] = {&s};
  kubebeast_code code = kubebeast_start(stream, 0, leaves);
  for (int steps = 1; code == KUBEBEAST_OK; ++steps) {
    code = wait_for(stream, actions);
    if (code != KUBEBEAST_OK) break;
    s = step(s, action);
    if (has_fallen(s) || steps == MAX_STEPS) {
      code = kubebeast_end(stream, 0, leaves, 1.0F, has_fallen(s) ? KUBEBEAST_TERMINATED : KUBEBEAST_TRUNCATED);
      return code == KUBEBEAST_OK ? wait_for(stream, NULL) : code;
    }
    code = kubebeast_observe(stream, 0, leaves, 1.0F);
  }
  return code;
}

int main(int argc, char** argv) {
  const int64_t shape[] = {4};
  const kubebeast_leaf observation = {.dtype = KUBEBEAST_FLOAT32, .num_dims = 1, .shape = shape};
  const kubebeast_leaf action = {.dtype = KUBEBEAST_INT64, .num_categories = 2};
  kubebeast_options options = {.struct_size = sizeof(options),
                               .env_id = "CartPole-v1",
                               .observation = &observation,
                               .num_observation = 1,
                               .action = &action,
                               .num_action = 1,
                               .log = print_line};
  kubebeast_stream* stream = NULL;
  if (argc < 2) {
    fprintf(stderr, "usage: cartpole ADDRESS\n");
    return 2;
  }
  signal(SIGTERM, stop);
  signal(SIGINT, stop);
  srand((unsigned)time(NULL));
  options.address = argv[1];
  kubebeast_code code = kubebeast_open(&options, &stream);
  while (!stopped && (code == KUBEBEAST_OK || code == KUBEBEAST_LOST)) code = play_episode(stream);
  if (code > KUBEBEAST_LOST) fprintf(stderr, "%s: %s\n", kubebeast_code_name(code), kubebeast_message());
  if (stream != NULL && code <= KUBEBEAST_LOST) kubebeast_close(stream, KUBEBEAST_SHUTDOWN, NULL, 2000);
  kubebeast_free(stream);
  return code > KUBEBEAST_LOST ? 3 : 0;
}
