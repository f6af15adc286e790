#include "transport/pool_service.h"

#include <grpc/grpc.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "calls/short_call.h"

namespace kubebeast {
namespace {

constexpr char kActMethod[] = "/kubebeast.v1.ActorPool/Act";

// Number for each kind of call. gRPC keeps calls that are not requested in an unbounded list.
constexpr int kRequestsInAdvance = 64;

// Returns a queue with a thread that does no I/O of connections.
std::unique_ptr<grpc::CompletionQueue> MakeQuietQueue() {
  const grpc_completion_queue_attributes attributes{GRPC_CQ_CURRENT_VERSION, GRPC_CQ_NEXT, GRPC_CQ_NON_POLLING,
                                                    nullptr};
  return std::make_unique<grpc::CompletionQueue>(grpc_completion_queue_create(
      grpc_completion_queue_factory_lookup(&attributes), &attributes, /*reserved=*/nullptr));
}

}  // namespace

// A registered method, so that its calls are matched apart from all others.
class PoolService::ActMethod final : public grpc::Service {
 public:
  ActMethod() {
    using Method = grpc::internal::RpcServiceMethod;
    method_ = new Method(kActMethod, grpc::internal::RpcMethod::BIDI_STREAMING, /*handler=*/nullptr);
    AddMethod(method_);  // takes ownership
    MarkMethodAsync(0);
  }
  void* tag() const { return method_->server_tag(); }

 private:
  grpc::internal::RpcServiceMethod* method_;
};

class PoolService::Act final : public IncomingCall {
 public:
  explicit Act(PoolService& service) : IncomingCall(service.requests_), service_(service) {}

  static void Request(PoolService& service) {
    auto* const act = new Act(service);
    grpc_server_request_registered_call(service.server_, service.act_->tag(), &act->call, &act->deadline,
                                        &act->metadata, /*optional_payload=*/nullptr, service.queue_, service.queue_,
                                        act->MakeTag());
  }

 private:
  void Run(bool ok) override {
    std::unique_ptr<Act> own(this);
    if (!ok) return;  // the server is shut down
    // Before the call is handled: the server waits for the end of every call, and the queue for the end of the server.
    if (!service_.stopping_) Request(service_);
    service_.StartStream(std::move(own));
  }

  PoolService& service_;
};

class PoolService::Other final : public IncomingCall {
 public:
  explicit Other(PoolService& service) : IncomingCall(service.requests_), service_(service) {}

  static void Request(PoolService& service) {
    auto* const other = new Other(service);
    grpc_server_request_call(service.server_, &other->call, &other->details, &other->metadata,
                             service.answered_->queue().cq(), service.queue_, other->MakeTag());
  }

 private:
  void Run(bool ok) override {
    std::unique_ptr<Other> own(this);
    if (!ok) return;
    if (!service_.stopping_) Request(service_);
    service_.StartShortCall(std::move(own));
  }

  PoolService& service_;
};

PoolService::PoolService(std::shared_ptr<PoolContext> pool) : pool_(std::move(pool)) {}

PoolService::~PoolService() { Stop(); }

void PoolService::Register(grpc::ServerBuilder& builder) {
  act_ = std::make_unique<ActMethod>();
  builder.RegisterService(act_.get());
  builder.RegisterAsyncGenericService(&other_methods_.emplace());
}

absl::Status PoolService::Start(grpc::Server& server, grpc::ServerCompletionQueue& queue) {
  server_ = server.c_server();
  queue_ = queue.cq();
  answered_ = std::make_unique<Poller>(MakeQuietQueue());
  if (absl::Status status = answered_->Start(); !status.ok()) return status;
  for (int i = 0; i < kRequestsInAdvance; ++i) {
    Act::Request(*this);
    Other::Request(*this);
  }
  return absl::OkStatus();
}

void PoolService::Stop() {
  // Every request comes back, as the server accepts no more calls: a call that began operations on a queue after its
  // shutdown would abort the process.
  stopping_ = true;
  requests_.Wait();
  token_reader_.Stop();
  answers_.Stop();
  short_calls_.Wait();
  answered_.reset();
}

bool PoolService::FindConnection(const std::string& peer, std::shared_ptr<Connection>* connection) {
  if (HostOfPeer(peer).empty()) return true;
  *connection = pool_->door.Find(peer);
  return *connection != nullptr && !(*connection)->refused();
}

void PoolService::StartStream(std::unique_ptr<Act> incoming) {
  const std::string peer = incoming->peer();
  std::shared_ptr<Connection> connection;
  bool is_allowed = FindConnection(peer, &connection);
  if (is_allowed && connection != nullptr && !connection->OnAct(Clock::now())) {
    pool_->door.Refuse(*connection, connection_refusal::kCalls);
    is_allowed = false;
  }
  if (!is_allowed) {
    grpc_call_unref(incoming->call);
    return;
  }
  auto* const call = new ServerTransport(pool_, incoming->call, peer, std::move(connection));
  if (!pool_->token.enabled()) {
    call->Start();
    call->Release();
    return;
  }
  const auto judge = [this, call, authorization = incoming->Find("authorization"), peer] {
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

void PoolService::StartShortCall(std::unique_ptr<Other> incoming) {
  const std::string peer = incoming->peer();
  const std::string host = HostOfPeer(peer);
  const Clock::time_point now = Clock::now();
  std::shared_ptr<Connection> connection;
  bool is_allowed = FindConnection(peer, &connection);
  if (is_allowed && connection != nullptr) {
    HostRates& rates = incoming->method() == Health::kCheckMethod ? pool_->short_calls : pool_->unknown_methods;
    is_allowed = connection->OnShortCall(now) && rates.Take(host, now);
    if (!is_allowed) pool_->door.Refuse(*connection, connection_refusal::kCalls);
  }
  const std::shared_ptr<Other> kept = std::move(incoming);
  if (is_allowed && answers_.Run([this, kept] { Answer(*kept); })) return;
  grpc_call_unref(kept->call);
}

void PoolService::Answer(const Other& incoming) {
  if (incoming.method() == Health::kCheckMethod) {
    ShortCall::StartUnary(incoming.call, short_calls_,
                          [this](const Message& request) { return health_.Check(request); });
  } else {
    ShortCall::Refuse(incoming.call, short_calls_, absl::UnimplementedError(""));
  }
}

}  // namespace kubebeast
