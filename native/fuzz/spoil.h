// Conversion of valid messages into messages that break the contract somewhere.
#pragma once

#include <string>

#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "script.h"

namespace kubebeast::fuzz {

// Returns the bytes of a message as the script chooses: untouched, with other values in some fields, with some bytes
// changed, or bytes of the script instead.
std::string Spoil(const v1::ActRequest& request, Script& script);

// Keeps protobuf's complaints about spoilt messages out of the fuzzer's output.
void SilenceProtobuf();

}  // namespace kubebeast::fuzz
