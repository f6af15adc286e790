/* A test program in C. */
#ifndef PLAY_IN_C_H_
#define PLAY_IN_C_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plays num_steps steps of an environment on the learner; returns the sum of its actions, or the negated code of a
 * failed call. */
int64_t play_in_c(const char* address, int num_steps);

#ifdef __cplusplus
}
#endif

#endif
