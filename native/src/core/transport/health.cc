#include "transport/health.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>

#include "calls/message_reader.h"
#include "wire/wire_reader.h"

namespace kubebeast {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr char kService[] = "kubebeast.v1.ActorPool";
constexpr char kMessage[] = "health check";
// A valid request holds one of two short names.
constexpr std::size_t kMaxRequestBytes = 1024;

constexpr std::uint32_t kNumFields = 1;
constexpr std::uint32_t kServiceTag = Tag(1, WireType::kBytes);
// HealthCheckResponse.status: SERVING or NOT_SERVING.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

}  // namespace

absl::StatusOr<std::string> Health::Check(const Message& request) const {
  if (!request.has_value() || request.compressed()) return Malformed(kMessage);
  const std::size_t size = request.size();
  if (absl::Status status = CheckMessageSize(size, kMaxRequestBytes); !status.ok()) return status;
  MessageReader reader(request);
  CodedInputStream in(&reader);
  in.PushLimit(static_cast<int>(size));
  std::string service;
  absl::Status status = ForEachField(&in, kMessage, [&](std::uint32_t tag) -> absl::Status {
    if (tag != kServiceTag) return SkipUnknownField(&in, tag, kNumFields, kMessage);
    int length = 0;
    return ReadLength(&in, &length) && in.ReadString(&service, length) ? absl::OkStatus() : Malformed(kMessage);
  });
  if (!status.ok()) return status;
  if (!service.empty() && service != kService) return absl::NotFoundError("unknown service");
  return serving_ ? kServing : kNotServing;
}

}  // namespace kubebeast
