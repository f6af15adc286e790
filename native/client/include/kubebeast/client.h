// Client library for environments of a C++ program that a KubeBeast learner plays.
//
//     Stream stream({.address = "learner:4431", .env_id = "Catch-v0", .observation = {...}, .action = {...}});
//     Environment env = stream.environment(0);
//     Reply reply = env.Start(board).Wait(30s);
//     while (reply.ok()) {
//       game.Apply(reply.action.value<std::int64_t>());
//       reply = game.over() ? env.End(board, reward, Ending::kTerminated).Wait(30s)
//                           : env.Observe(board, reward).Wait(30s);
//       ...
//     }
//
// A Stream carries num_envs environments in lock-step: it sends when each of them has a row, and all replies come
// together. Rows and replies alternate: a row, its reply, the next row. So at most one row per environment waits.
// The Stream dials, and dials again after a broken connection, with a jittered exponential back-off.
//
// There are no threads but the caller's: the calls of this header drive the stream, from any thread. A program that
// makes no calls for seconds sets Options::progress_thread.
//
// All functions are thread-safe and throw nothing but std::bad_alloc. Those that block take a deadline, and Close
// wakes them.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if defined(__GNUC__)
#define KUBEBEAST_EXPORT __attribute__((visibility("default")))
#else
#define KUBEBEAST_EXPORT
#endif

namespace kubebeast::client {

using Clock = std::chrono::steady_clock;

// Element type of an array, with the values of kubebeast.v1.DType.
enum class DType : std::uint8_t {
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kBool = 8,
};

// Every member has an initializer: programs may omit any of them, and GCC warns about the omission of a member without
// one.
// NOLINTBEGIN(readability-redundant-member-init)

// One array of a flattened observation or action.
struct LeafSpec {
  std::string path{};  // its place in the structure, e.g. "image"; empty if it is the only one
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape{};  // for one environment, without the stack axis; empty: a scalar
  std::uint32_t frame_stack = 1;      // k: the learner sees the newest k frames. The program passes only the newest
  std::int64_t num_categories = 0;    // n > 0: the values are categories 0 .. n-1; 0: they are numbers
  bool bounded = false;               // action of floats: they lie in [-1, 1]
  bool is_action_mask = false;        // observation: marks the allowed categories of the actions
};

// PEM files, read again for each connection. All empty: no TLS.
struct TlsFiles {
  std::string authorities{};  // CAs of the learner's certificate; empty: those of the system
  std::string certificate{};  // the program's certificate, with the chain up to its CA
  std::string key{};
  std::string server_name{};  // name in the learner's certificate; empty: the host of the address
};

struct Options {
  std::string address{};  // of the learner: "host:port", "unix:/path"
  TlsFiles tls{};
  std::string token_file{};  // its first line is the bearer token, read again for each connection; empty: none

  std::string env_server_id{};  // the same across restarts; empty: the host's name
  std::string instance_id{};    // new with every process and stream; empty: random
  std::string env_id{};         // the environment's name, e.g. "Catch-v0"
  std::string env_config{};     // settings of the environments: Hello.env_config of the contract; may be empty
  std::string run{};            // the only run (xpid) that they play for; empty: any
  std::uint32_t num_envs = 1;
  std::vector<LeafSpec> observation{};
  std::vector<LeafSpec> action{};

  bool lz4 = true;  // offered for uint8 leaves of 1 KiB and more
  // If true, finished episodes are reported with the sum of their rewards. Set it to false if rewards are clipped, or
  // if the program ends episodes within a game: it then calls Environment::ReportEpisode itself.
  bool count_episodes = true;
  std::chrono::milliseconds welcome_timeout{300'000};  // timeout of a connection without a Welcome
  // Delay before the learner is dialed again: drawn from the upper half of a range that doubles from the first to the
  // longest one.
  std::chrono::milliseconds first_backoff{250};
  std::chrono::milliseconds longest_backoff{8'000};
  // If true, a thread of the library drives the stream while the program does something else.
  bool progress_thread = false;
  // Receives log lines, one per call: connected, lost, reasons of failures. Called by the thread that drives the
  // stream, one call at a time; it must not call the library and not throw.
  std::function<void(std::string_view)> log{};
};

// NOLINTEND(readability-redundant-member-init)

enum class Code : std::uint8_t {
  kOk = 0,
  kPending = 1,  // the reply is not there yet; a new row is not taken
  kLost = 2,     // the connection broke, or the Start has other options than its stream: the episode is over, and the
                 // next row of the environment is a Start
  kMisuse = 3,   // the call does not fit the specs or the state of the environment, which has not changed
  kRefused = 4,  // the run and these environments do not fit, even if they connect again. Permanent
  kClosed = 5,   // Close was called. Permanent
};

// Returns "ok", "pending", ...
KUBEBEAST_EXPORT const char* CodeName(Code code);

struct Status {
  Code code = Code::kOk;
  std::string message;  // a description for logs

  bool ok() const { return code == Code::kOk; }
  bool pending() const { return code == Code::kPending; }
  bool lost() const { return code == Code::kLost; }
};

namespace internal {

class Player;

template <typename T>
constexpr std::optional<DType> DTypeOf() {
  if constexpr (std::same_as<T, bool>) return DType::kBool;
  if constexpr (std::same_as<T, float>) return DType::kFloat32;
  if constexpr (std::same_as<T, double>) return DType::kFloat64;
  if constexpr (std::same_as<T, std::uint8_t>) return DType::kUint8;
  if constexpr (std::signed_integral<T>) {
    if constexpr (sizeof(T) == 1) return DType::kInt8;
    if constexpr (sizeof(T) == 2) return DType::kInt16;
    if constexpr (sizeof(T) == 4) return DType::kInt32;
    if constexpr (sizeof(T) == 8) return DType::kInt64;
  }
  return std::nullopt;
}

}  // namespace internal

// An element type that arrays may have.
template <typename T>
concept Element = internal::DTypeOf<T>().has_value();

// The frame of one leaf: a contiguous range or a scalar, borrowed for the duration of a call.
class Frame {
 public:
  template <std::ranges::contiguous_range Range>
    requires Element<std::ranges::range_value_t<Range>>
  Frame(const Range& range)  // NOLINT(google-explicit-constructor): an argument is passed as it is
      : data_(std::ranges::data(range)),
        size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)),
        dtype_(internal::DTypeOf<std::ranges::range_value_t<Range>>()) {}
  template <Element T>
  Frame(const T& scalar)  // NOLINT(google-explicit-constructor)
      : data_(&scalar), size_(sizeof(T)), dtype_(internal::DTypeOf<T>()) {}
  // Bytes of any type: only their number is compared with the spec.
  Frame(const void* data, std::size_t size) : data_(data), size_(size) {}

  const void* data() const { return data_; }
  std::size_t size() const { return size_; }  // bytes
  std::optional<DType> dtype() const { return dtype_; }

 private:
  const void* data_;
  std::size_t size_;
  std::optional<DType> dtype_;
};

// The newest frame of every observation leaf, in the order of the specs; borrowed for the duration of a call.
class Observation {
 public:
  template <typename T>
    requires std::convertible_to<const T&, Frame> && (!std::convertible_to<const T&, std::span<const Frame>>)
  Observation(const T& only)  // NOLINT(google-explicit-constructor)
      : only_{Frame(only)}, frames_(only_) {}
  Observation(std::initializer_list<Frame> frames) : frames_(frames.begin(), frames.size()) {}
  Observation(std::span<const Frame> frames) : frames_(frames) {}  // NOLINT(google-explicit-constructor)
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  std::span<const Frame> frames() const { return frames_; }

 private:
  std::array<Frame, 1> only_{Frame(nullptr, 0)};
  std::span<const Frame> frames_;
};

// The action for an environment. Refers to memory of its stream, which keeps it until the environment's next row.
class Action {
 public:
  Action() = default;
  explicit Action(std::span<const std::span<const std::byte>> leaves) : leaves_(leaves) {}

  // Returns 0 if there is no action: the row was the last one of an episode, absent, or is not answered.
  std::size_t num_leaves() const { return leaves_.size(); }
  std::span<const std::byte> bytes(std::size_t leaf = 0) const { return leaves_[leaf]; }
  // Returns the elements of a leaf, which must have the type T in the spec.
  template <Element T>
  std::span<const T> values(std::size_t leaf = 0) const {
    return {reinterpret_cast<const T*>(bytes(leaf).data()), bytes(leaf).size() / sizeof(T)};
  }
  // Returns the only element of a scalar leaf.
  template <Element T>
  T value(std::size_t leaf = 0) const {
    return values<T>(leaf).front();
  }

 private:
  std::span<const std::span<const std::byte>> leaves_;
};

struct Reply {
  Status status;
  Action action;  // set if the status is ok and the row leads to an action

  bool ok() const { return status.ok(); }
  bool pending() const { return status.pending(); }
  bool lost() const { return status.lost(); }
};

// End of an episode: by its own rules, cut off by a time limit, or both at once.
enum class Ending : std::uint8_t { kTerminated, kTruncated, kBoth };

// The reply to a row, possibly still under way. Cheap to copy.
class KUBEBEAST_EXPORT PendingReply {
 public:
  // Blocks until the reply is there. Returns kPending at the deadline; the call may then be repeated. After an answer,
  // further calls return the same answer, until the environment's next row.
  Reply Wait(Clock::time_point deadline) const;
  Reply Wait(std::chrono::nanoseconds timeout) const { return Wait(Clock::now() + timeout); }
  // Returns at once, like Wait with a deadline in the past.
  Reply Poll() const { return Wait(Clock::time_point::min()); }
  // Returns ok if the row was taken; if not, every Wait returns this status at once.
  const Status& status() const { return taken_; }

 private:
  friend class Environment;
  PendingReply(std::shared_ptr<internal::Player> player, std::uint32_t env, Status taken)
      : player_(std::move(player)), env_(env), taken_(std::move(taken)) {}

  std::shared_ptr<internal::Player> player_;
  std::uint32_t env_;
  Status taken_;
};

// One environment of a stream; cheap to copy. The first five methods give a row and never block. The row is refused,
// with the reason in the status, while the reply to the one before is under way (kPending: a program with no time to
// wait adds this reward to the next one and goes on), after a lost connection (kLost, until the next Start), if it does
// not fit (kMisuse), and at the end (kRefused, kClosed). Rewards and observations must be finite numbers.
class KUBEBEAST_EXPORT Environment {
 public:
  // Gives the first observation of an episode.
  PendingReply Start(const Observation& observation);
  // Gives the observation that the last action led to, and its reward.
  PendingReply Observe(const Observation& observation, float reward);
  // Gives the last observation of the episode; the reply holds no action, and the next row is a Start.
  PendingReply End(const Observation& observation, float reward, Ending ending);
  // Reports a failed environment: its last action had no consequence, and the episode counts as cut off before it.
  PendingReply Interrupt();
  // Skips a step between two episodes, while others of the stream play on. Needs a learner of minor version 4.
  PendingReply Absent();
  // Waits for the reply to the last row: the same as the one of its PendingReply.
  Reply Wait(Clock::time_point deadline);
  // Reports a finished game, with the next row, if Options::count_episodes is off. Of several reports before one row
  // only the last one is sent. Returns kOk, or kMisuse if episodes are counted.
  Status ReportEpisode(double episode_return, std::uint64_t length);
  // Sets a number of the running episode, before the End that finishes it, or before the ReportEpisode if
  // Options::count_episodes is off. The learner logs its mean if a user asks for the key with --log-info; for the key
  // "level/score" the user gives the same text. Of several values for one key only the last one is sent. Returns kOk;
  // kMisuse if no episode is under way, or if the value is not finite; kLost after a lost connection.
  Status SetInfo(std::string_view key, double value);
  // Returns the options of the next episode, such as its level, that the learner has chosen: a JSON object; "" without
  // any, and without a connection. A program with levels calls this function before each Start, after the reply to the
  // row before: an episode counts for its level. A run that chooses levels ends the stream of a program that does not:
  // kRefused. A Start of another level than that of its stream is not sent: kLost. The program avoids that by
  // Stream::WaitUntilConnected before its first Start and after each kLost.
  std::string NextOptions() const;

 private:
  friend class Stream;
  Environment(std::shared_ptr<internal::Player> player, std::uint32_t env) : player_(std::move(player)), env_(env) {}

  std::shared_ptr<internal::Player> player_;
  std::uint32_t env_;
};

// Reason for the end of a stream, with the values of kubebeast.v1.Bye.Reason.
enum class Reason : std::uint8_t {
  kShutdown = 1,           // running episodes are truncated
  kTerminated = 2,         // the last rows ended every episode, by its own rules
  kEnvironmentFailed = 3,  // all environments failed together
};

// A stream of num_envs environments in lock-step, on its own connection.
class KUBEBEAST_EXPORT Stream {
 public:
  // Never blocks and never fails; if the options are invalid, all calls return kMisuse, with the invalid option in the
  // message.
  explicit Stream(const Options& options);
  // Calls Close(), unless it was called before.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Returns environment `env`, which must be below num_envs.
  Environment environment(std::uint32_t env);

  // Blocks until the learner has accepted the environments; returns kPending at the deadline, with the reason. Not
  // needed before the first row.
  Status WaitUntilConnected(Clock::time_point deadline);
  Status WaitUntilConnected(std::chrono::nanoseconds timeout) { return WaitUntilConnected(Clock::now() + timeout); }

  // Returns the state without a look at the network: kOk, kMisuse of the options, kRefused or kClosed.
  Status status() const;

  // Ends the stream as planned: sends a Bye and blocks until the learner has received it, at most for the timeout;
  // kPending if it may not have. Wakes all waiters. Idempotent.
  Status Close(Reason reason = Reason::kShutdown, std::string_view detail = {},
               std::chrono::nanoseconds timeout = std::chrono::seconds(2));

 private:
  std::shared_ptr<internal::Player> player_;
};

}  // namespace kubebeast::client
