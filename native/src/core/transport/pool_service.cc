#include "transport/pool_service.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "calls/short_call.h"

namespace kubebeast {
namespace {

constexpr char kActMethod[] = "/kubebeast.v1.ActorPool/Act";

absl::string_view ViewOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

std::string PeerOf(grpc_call* call) {
  const std::unique_ptr<char, decltype(&gpr_free)> peer(grpc_call_get_peer(call), &gpr_free);
  return peer.get();
}

}  // namespace

// A call, and what it said first.
struct PoolService::Incoming {
  Incoming() {
    grpc_call_details_init(&details);
    grpc_metadata_array_init(&metadata);
  }
  ~Incoming() {
    grpc_metadata_array_destroy(&metadata);
    grpc_call_details_destroy(&details);
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  std::optional<std::string> Find(absl::string_view key) const {
    for (std::size_t i = 0; i < metadata.count; ++i) {
      if (ViewOf(metadata.metadata[i].key) == key) return std::string(ViewOf(metadata.metadata[i].value));
    }
    return std::nullopt;
  }

  grpc_call* call = nullptr;
  grpc_call_details details;
  grpc_metadata_array metadata;
};

PoolService::PoolService(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

PoolService::~PoolService() = default;

void PoolService::Register(grpc::ServerBuilder& builder) {
  builder.RegisterAsyncGenericService(&every_method_.emplace());
}

void PoolService::Start(grpc::Server& server, grpc::ServerCompletionQueue& queue) {
  server_ = server.c_server();
  queue_ = queue.cq();
  Request();
}

void PoolService::Request() {
  incoming_ = std::make_unique<Incoming>();
  grpc_server_request_call(server_, &incoming_->call, &incoming_->details, &incoming_->metadata, queue_, queue_,
                           MakeTag());
}

void PoolService::Run(bool ok) {
  if (!ok) return;  // the server is shut down
  const std::unique_ptr<Incoming> incoming = std::move(incoming_);
  // Before the call is dealt with: the server waits for the end of every call, the queue for that of the server.
  Request();
  const std::string peer = PeerOf(incoming->call);
  pool_->newcomers.OnCall(peer);
  const absl::string_view method = ViewOf(incoming->details.method);
  if (method == kActMethod) {
    StartStream(*incoming, peer);
  } else if (method == Health::kCheckMethod) {
    ShortCall::StartUnary(incoming->call, [this](const Message& request) { return health_.Check(request); });
  } else {
    ShortCall::Refuse(incoming->call, absl::UnimplementedError(""));
  }
}

void PoolService::StartStream(const Incoming& incoming, const std::string& peer) {
  auto* const call = new ServerTransport(pool_, incoming.call, peer);
  if (!pool_->token.enabled()) {
    call->Start();
    call->Release();
    return;
  }
  const auto judge = [this, call, authorization = incoming.Find("authorization"), peer] {
    Judge(*call, authorization, peer);
    call->Release();
  };
  if (token_reader_.Run(judge)) return;
  call->Finish(absl::UnavailableError("too many calls wait for the check of their token"));
  call->Release();
}

void PoolService::Judge(ServerTransport& call, const std::optional<std::string>& authorization,
                        const std::string& peer) {
  const absl::Status status = pool_->token.Check(authorization);
  if (status.ok()) {
    call.Start();
    return;
  }
  if (absl::IsUnauthenticated(status)) ++pool_->stats->streams_unauthenticated;
  pool_->AddRefusal(peer, status);
  call.Finish(status);
}

}  // namespace kubebeast
