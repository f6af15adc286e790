/* Environments of a C program, or of any language that calls C, played by a KubeBeast learner.
 *
 * The functions are those of kubebeast/client.h, which explains them: a stream of environments in lock-step; each
 * environment gives a row and waits for its reply, in turn. Thread-safe. Nothing blocks but where it says so.
 *
 * Every function that can fail returns a code; kubebeast_message() tells more about the calling thread's last one.
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
  KUBEBEAST_PENDING = 1, /* the reply is not there yet; a row that was given is not taken */
  KUBEBEAST_LOST = 2,    /* the connection broke: the episode is over, and the next row is a start */
  KUBEBEAST_MISUSE = 3,  /* an argument that cannot be used, or a row that does not fit; nothing has changed */
  KUBEBEAST_REFUSED = 4, /* the learner does not take these environments. For ever */
  KUBEBEAST_CLOSED = 5,  /* kubebeast_close was called. For ever */
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

/* How an episode ended. */
enum { KUBEBEAST_TERMINATED = 0, KUBEBEAST_TRUNCATED = 1, KUBEBEAST_BOTH = 2 };

/* Why a stream is closed. */
enum { KUBEBEAST_SHUTDOWN = 1, KUBEBEAST_ALL_TERMINATED = 2, KUBEBEAST_ENVIRONMENT_FAILED = 3 };

/* One array of an observation or action. Zeros are defaults: a scalar of numbers without a stack. */
typedef struct kubebeast_leaf {
  const char* path; /* where it stands in the structure; NULL or "" where it is the only one */
  int32_t dtype;
  uint32_t num_dims;
  const int64_t* shape; /* num_dims entries: of one environment, without the stack axis */
  uint32_t frame_stack; /* k: the learner sees the newest k frames; the program passes the newest alone */
  int32_t bounded;      /* of an action of floats: they lie in [-1, 1] */
  int64_t num_categories;
  int32_t is_action_mask;
} kubebeast_leaf;

/* Set all to zero first. Strings may be NULL; everything is copied. */
typedef struct kubebeast_options {
  size_t struct_size;  /* sizeof(kubebeast_options) */
  const char* address; /* of the learner: "host:port", "unix:/path" */
  const char* tls_authorities;
  const char* tls_certificate;
  const char* tls_key;
  const char* tls_server_name;
  const char* token_file;
  const char* env_server_id; /* NULL: the host's name */
  const char* instance_id;   /* NULL: drawn at random */
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
  /* One line for people, a call at a time; must not call the library. May be NULL. */
  void (*log)(void* user, const char* line);
  void* log_user;
} kubebeast_options;

/* Makes a stream, which kubebeast_free destroys. Does not wait for the learner. */
KUBEBEAST_API kubebeast_code kubebeast_open(const kubebeast_options* options, kubebeast_stream** stream);

/* Waits until the learner has accepted the environments; KUBEBEAST_PENDING after timeout_ms. */
KUBEBEAST_API kubebeast_code kubebeast_wait_until_connected(kubebeast_stream* stream, uint32_t timeout_ms);

/* Rows. leaves: for each observation leaf its newest frame, as large as the spec says. */
KUBEBEAST_API kubebeast_code kubebeast_start(kubebeast_stream* stream, uint32_t env, const void* const* leaves);
KUBEBEAST_API kubebeast_code kubebeast_observe(kubebeast_stream* stream, uint32_t env, const void* const* leaves,
                                               float reward);
KUBEBEAST_API kubebeast_code kubebeast_end(kubebeast_stream* stream, uint32_t env, const void* const* leaves,
                                           float reward, int32_t ending);
KUBEBEAST_API kubebeast_code kubebeast_interrupt(kubebeast_stream* stream, uint32_t env);
KUBEBEAST_API kubebeast_code kubebeast_absent(kubebeast_stream* stream, uint32_t env);

/* Waits for the reply to the environment's row, at most timeout_ms; 0 asks without waiting. Where the row has an action
 * (a start or an observe), it is copied to `leaves`: for each action leaf memory as large as the spec says. leaves may
 * be NULL where the action does not matter. */
KUBEBEAST_API kubebeast_code kubebeast_wait(kubebeast_stream* stream, uint32_t env, uint32_t timeout_ms,
                                            void* const* leaves);

KUBEBEAST_API kubebeast_code kubebeast_report_episode(kubebeast_stream* stream, uint32_t env, float episode_return,
                                                      uint64_t length);

/* A planned end: tells the learner and waits until it knows; KUBEBEAST_PENDING where it may not after timeout_ms. Wakes
 * who waits. detail may be NULL. */
KUBEBEAST_API kubebeast_code kubebeast_close(kubebeast_stream* stream, int32_t reason, const char* detail,
                                             uint32_t timeout_ms);

/* Closes the stream, unless it is closed, waits at most 2 s, and frees it. No other call may be under way. NULL:
 * nothing. */
KUBEBEAST_API void kubebeast_free(kubebeast_stream* stream);

/* "ok", "pending", ... */
KUBEBEAST_API const char* kubebeast_code_name(kubebeast_code code);

/* What the calling thread's last function says for people; empty where it returned KUBEBEAST_OK. Valid until the
 * thread's next call. */
KUBEBEAST_API const char* kubebeast_message(void);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(readability-identifier-naming,modernize-use-using,performance-enum-size) */

#endif
