// The Python module kubebeast_native._core; its interface is described in _core.pyi.
#include "bindings.h"
#include "google/protobuf/stubs/common.h"
#include "sync/deadlock_detection.h"
#include "wire/protocol.h"

// Defined only after a header of protobuf and of the C library.
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include "google/protobuf/stubs/logging.h"
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

// Blocks of some 100 KB come and go with every message: glibc would map, unmap and trim them each time, which costs a
// third of the server's CPU time in page faults. 32 MiB is the largest threshold that glibc before 2.35 accepts.
void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
}

// protobuf before 22 prints a line for each string that is not UTF-8: a peer could fill the log.
void SilenceProtobuf() {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(nullptr);
#endif
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  KeepFreedMemory();
  SilenceProtobuf();
  kubebeast::SkipDeadlockDetection();
  module.attr("PROTOCOL_VERSION") = kubebeast::kProtocolVersion;
  module.attr("PROTOCOL_MINOR") = kubebeast::kProtocolMinor;
  module.attr("OPTIONS_MINOR") = kubebeast::kOptionsMinor;
  kubebeast::BindSpec(module);
  kubebeast::BindInference(module);
  kubebeast::BindRollouts(module);
  kubebeast::BindEvents(module);
  kubebeast::BindPool(module);
  kubebeast::BindActCall(module);
}
