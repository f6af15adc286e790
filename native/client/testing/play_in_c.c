#include "testing/play_in_c.h"

#include <string.h>

#include "kubebeast_client.h"

int64_t play_in_c(const char* address, int num_steps) {
  const int64_t shape[] = {2};
  kubebeast_leaf observation;
  kubebeast_leaf action;
  kubebeast_options options;
  kubebeast_stream* stream = NULL;
  float numbers[2] = {0, 0};
  const void* leaves[] = {numbers};
  int64_t choice = 0;
  void* choices[] = {&choice};
  int64_t sum = 0;
  memset(&observation, 0, sizeof(observation));
  observation.dtype = KUBEBEAST_FLOAT32;
  observation.num_dims = 1;
  observation.shape = shape;
  memset(&action, 0, sizeof(action));
  action.dtype = KUBEBEAST_INT64;
  action.num_categories = 4;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.address = address;
  options.observation = &observation;
  options.num_observation = 1;
  options.action = &action;
  options.num_action = 1;

  kubebeast_code code = kubebeast_open(&options, &stream);
  if (code == KUBEBEAST_OK) code = kubebeast_wait_until_connected(stream, 60000);
  if (code == KUBEBEAST_OK && kubebeast_next_options(stream, 1) != NULL) code = KUBEBEAST_INTERNAL;
  if (code == KUBEBEAST_OK && strcmp(kubebeast_next_options(stream, 0), "{\"n\":0}") != 0) code = KUBEBEAST_INTERNAL;
  if (code == KUBEBEAST_OK) code = kubebeast_start(stream, 0, leaves);
  for (int step = 0; code == KUBEBEAST_OK && step < num_steps; ++step) {
    code = kubebeast_wait(stream, 0, 60000, choices);
    sum += choice;
    if (code != KUBEBEAST_OK) break;
    if (step + 1 < num_steps) {
      code = kubebeast_observe(stream, 0, leaves, 1.0F);
    } else {
      code = kubebeast_set_info(stream, 0, "steps", num_steps);
      if (code == KUBEBEAST_OK) code = kubebeast_end(stream, 0, leaves, 1.0F, KUBEBEAST_TERMINATED);
    }
  }
  if (code == KUBEBEAST_OK) code = kubebeast_wait(stream, 0, 60000, NULL);
  if (code == KUBEBEAST_OK) code = kubebeast_close(stream, KUBEBEAST_ALL_TERMINATED, "done", 60000);
  kubebeast_free(stream);
  return code == KUBEBEAST_OK ? sum : -code;
}
