/* Client library for environments of a C program, or any language that calls C, that a KubeBeast learner plays.
 *
 * The functions are those of kubebeast/client.h, which describes them: a stream of environments in lock-step; each
 * environment gives a row and waits for its reply, in turn. Thread-safe. No function blocks unless its comment says
 * so.
 *
 * Every function that can fail returns a code; kubebeast_message() describes the calling thread's last failure.
 */
#ifndef KUBEBEAST_CLIENT_H_
#define KUBEBEAST_CLIENT_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KUBEBEAST_API __attribute__((visibility("default")))
#else
#define KUBEBEAST_API
#endif

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,performance-enum-size): this is C */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kubebeast_stream kubebeast_stream;

enum {
  KUBEBEAST_OK = 0,
  KUBEBEAST_PENDING = 1, /* the reply is not there yet; a new row is not taken */
  KUBEBEAST_LOST = 2,    /* the connection broke, or the start has other options than its stream: the episode is over,
                            and the next row is a start */
  KUBEBEAST_MISUSE = 3,  /* an invalid argument, or a row that does not fit; nothing has changed */
  KUBEBEAST_REFUSED = 4, /* the run and these environments do not fit. Permanent */
  KUBEBEAST_CLOSED = 5,  /* kubebeast_close was called. Permanent */
  KUBEBEAST_INTERNAL = 6 /* no memory, or a bug of the library */
};
typedef int32_t kubebeast_code;

enum {
  KUBEBEAST_UINT8 = 1,
  KUBEBEAST_INT8 = 2,
  KUBEBEAST_INT16 = 3,
  KUBEBEAST_INT32 = 4,
  KUBEBEAST_INT64 = 5,
  KUBEBEAST_FLOAT32 = 6,
  KUBEBEAST_FLOAT64 = 7,
  KUBEBEAST_BOOL = 8 /* one byte, 0 or 1 */
};

/* End of an episode. */
enum { KUBEBEAST_TERMINATED = 0, KUBEBEAST_TRUNCATED = 1, KUBEBEAST_BOTH = 2 };

/* Reason for the end of a stream. */
enum { KUBEBEAST_SHUTDOWN = 1, KUBEBEAST_ALL_TERMINATED = 2, KUBEBEAST_ENVIRONMENT_FAILED = 3 };

/* One array of an observation or action. Zeros are defaults: a scalar of numbers without a stack. */
typedef struct kubebeast_leaf {
  const char* path; /* its place in the structure; NULL or "" if it is the only one */
  int32_t dtype;
  uint32_t num_dims;
  const int64_t* shape; /* num_dims entries: for one environment, without the stack axis */
  uint32_t frame_stack; /* k: the learner sees the newest k frames; the program passes only the newest */
  int32_t bounded;      /* action of floats: they lie in [-1, 1] */
  int64_t num_categories;
  int32_t is_action_mask;
} kubebeast_leaf;

/* Options of a stream. Set all to zero first. Strings may be NULL; all values are copied. */
typedef struct kubebeast_options {
  size_t struct_size;  /* sizeof(kubebeast_options) */
  const char* address; /* of the learner: "host:port", "unix:/path" */
  const char* tls_authorities;
  const char* tls_certificate;
  const char* tls_key;
  const char* tls_server_name;
  const char* token_file;
  const char* env_server_id; /* NULL: the host's name */
  const char* instance_id;   /* NULL: random */
  const char* env_id;
  const char* env_config;
  const kubebeast_leaf* observation;
  const kubebeast_leaf* action;
  uint32_t num_observation;
  uint32_t num_action;
  uint32_t num_envs; /* 0: 1 */
  int32_t no_lz4;
  int32_t
      report_episodes; /* the program calls kubebeast_report_episode; else episodes are counted from their rewards */
  int32_t progress_thread;
  uint32_t welcome_timeout_ms; /* 0: 300 000 */
  /* Receives one log line per call, one call at a time; must not call the library. May be NULL. */
  void (*log)(void* user, const char* line);
  void* log_user;
  const char* run; /* the only run (xpid) that the environments play for; NULL: any */
} kubebeast_options;

/* Creates a stream, which kubebeast_free destroys. Does not wait for the learner. */
KUBEBEAST_API kubebeast_code kubebeast_open(const kubebeast_options* options, kubebeast_stream** stream);

/* Blocks until the learner has accepted the environments; returns KUBEBEAST_PENDING after timeout_ms. */
KUBEBEAST_API kubebeast_code kubebeast_wait_until_connected(kubebeast_stream* stream, uint32_t timeout_ms);

/* Give a row. leaves: for each observation leaf its newest frame, of the size in the spec. */
KUBEBEAST_API kubebeast_code kubebeast_start(kubebeast_stream* stream, uint32_t env, const void* const* leaves);
KUBEBEAST_API kubebeast_code kubebeast_observe(kubebeast_stream* stream, uint32_t env, const void* const* leaves,
                                               float reward);
KUBEBEAST_API kubebeast_code kubebeast_end(kubebeast_stream* stream, uint32_t env, const void* const* leaves,
                                           float reward, int32_t ending);
KUBEBEAST_API kubebeast_code kubebeast_interrupt(kubebeast_stream* stream, uint32_t env);
KUBEBEAST_API kubebeast_code kubebeast_absent(kubebeast_stream* stream, uint32_t env);

/* Blocks until the reply to the environment's row is there, at most timeout_ms; with 0, never blocks. If the row has an
 * action (a start or an observe), it is copied to `leaves`: for each action leaf memory of the size in the spec. leaves
 * may be NULL if the action is not needed. */
KUBEBEAST_API kubebeast_code kubebeast_wait(kubebeast_stream* stream, uint32_t env, uint32_t timeout_ms,
                                            void* const* leaves);

KUBEBEAST_API kubebeast_code kubebeast_report_episode(kubebeast_stream* stream, uint32_t env, float episode_return,
                                                      uint64_t length);

/* Sets a number of the running episode, e.g. "success", before its end. */
KUBEBEAST_API kubebeast_code kubebeast_set_info(kubebeast_stream* stream, uint32_t env, const char* key, double value);

/* Returns the options of the environment's next episode, such as its level, that the learner has chosen: a JSON object;
 * "" without any, and without a connection; NULL if there is no such environment. Valid until the thread's next call of
 * this function. A program with levels calls this function before each start, after the reply to the row before: an
 * episode counts for its level. A run that chooses levels ends the stream of a program that does not:
 * KUBEBEAST_REFUSED. A start of another level than that of its stream is not sent: KUBEBEAST_LOST. The program avoids
 * that by kubebeast_wait_until_connected before its first start and after each KUBEBEAST_LOST. */
KUBEBEAST_API const char* kubebeast_next_options(kubebeast_stream* stream, uint32_t env);

/* Ends the stream as planned: sends a Bye and blocks until the learner has received it; KUBEBEAST_PENDING if it may not
 * have after timeout_ms. Wakes all waiters. detail may be NULL. */
KUBEBEAST_API kubebeast_code kubebeast_close(kubebeast_stream* stream, int32_t reason, const char* detail,
                                             uint32_t timeout_ms);

/* Closes the stream, unless it is closed, blocks for at most 2 s, and frees it. No other call may be under way. Does
 * nothing if the stream is NULL. */
KUBEBEAST_API void kubebeast_free(kubebeast_stream* stream);

/* Returns "ok", "pending", ... */
KUBEBEAST_API const char* kubebeast_code_name(kubebeast_code code);

/* Returns a description of the calling thread's last failure; empty if the last function returned KUBEBEAST_OK. Valid
 * until the thread's next call. */
KUBEBEAST_API const char* kubebeast_message(void);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(readability-identifier-naming,modernize-use-using,performance-enum-size) */

#endif
