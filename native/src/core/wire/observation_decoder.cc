#include "wire/observation_decoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensors/finite.h"
#include "wire/leaf_reader.h"
#include "wire/wire_reader.h"

namespace kubebeast {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr absl::string_view kName = "observations";
constexpr absl::string_view kEpisodeName = "observations.episodes";
constexpr std::uint32_t kNumFields = 10;        // fields of Observations
constexpr std::uint32_t kNumEpisodeFields = 5;  // fields of Episode

// Returns the nearest float32 to a finite number, within its range; NaN for any other number.
float ToFloat(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return std::isfinite(value) ? static_cast<float>(std::clamp(value, -kMax, kMax)) : std::nanf("");
}

template <typename... Parts>
absl::Status InvalidObservations(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(kName, ".", parts...));
}

// Decoder of one message, with fields in any order.
class Decoder {
 public:
  Decoder(const std::vector<LeafSpec>& specs, const std::vector<Compression>& compression,
          const ObservationExpectation& expected, std::string* scratch)
      : specs_(specs),
        compression_(compression),
        expected_(expected),
        num_envs_(expected.is_first.size()),
        scratch_(scratch) {
    rows_->leaves.reserve(specs.size());
  }

  absl::StatusOr<std::shared_ptr<ObservationRows>> Decode(CodedInputStream* in) {
    absl::Status status =
        ForEachSubmessageField(in, kName, [this, in](std::uint32_t tag) { return ReadField(in, tag); });
    if (status.ok()) status = CheckMessage();
    if (!status.ok()) return status;
    return std::move(rows_);
  }

 private:
  absl::Status ReadField(CodedInputStream* in, std::uint32_t tag) {
    switch (tag) {
      case Tag(1, WireType::kVarint):
        return ReadStep(in);
      case Tag(2, WireType::kBytes):
        return ReadNextLeaf(in);
      case Tag(3, WireType::kBytes):
        return ReadRewards(in);
      case Tag(4, WireType::kBytes):
        return ReadFlags(in, "terminated", &rows_->terminated);
      case Tag(5, WireType::kBytes):
        return ReadFlags(in, "truncated", &rows_->truncated);
      case Tag(6, WireType::kBytes):
        return ReadFlags(in, "is_first", &rows_->is_first);
      case Tag(7, WireType::kBytes):
        return ReadEpisode(in);
      case Tag(8, WireType::kBytes):
        return ReadFlags(in, "interrupted", &rows_->interrupted);
      case Tag(9, WireType::kVarint):
        return in->ReadVarint64(&rows_->env_us) ? absl::OkStatus() : Malformed(kName);
      case Tag(10, WireType::kBytes):
        return ReadFlags(in, "waiting", &rows_->waiting);
      default:
        return SkipUnknownField(in, tag, kNumFields, kName);
    }
  }

  absl::Status ReadStep(CodedInputStream* in) {
    if (!in->ReadVarint64(&rows_->step)) return Malformed(kName);
    return CheckStep();
  }

  absl::Status CheckStep() const {
    if (rows_->step == expected_.step) return absl::OkStatus();
    return InvalidObservations("step: ", rows_->step, ", expected ", expected_.step);
  }

  absl::Status ReadNextLeaf(CodedInputStream* in) {
    const std::size_t index = rows_->leaves.size();
    if (index == specs_.size()) return InvalidObservations("leaves: more than the expected ", index);
    const LeafSpec& spec = specs_[index];

    const std::size_t frame_bytes = spec.frame_bytes();
    ObservationRows::Leaf leaf;
    leaf.offsets.reserve(num_envs_);
    std::size_t size = 0;
    for (const std::uint8_t is_first : expected_.is_first) {
      leaf.offsets.push_back(size);
      size += is_first != 0 ? spec.frame_stack * frame_bytes : frame_bytes;
    }
    auto data = ReadLeaf(in, spec, compression_[index], size, scratch_);
    absl::Status status = data.status();
    if (status.ok()) {
      leaf.data = *std::move(data);
      status = CheckFinite(spec.dtype, leaf, size);
    }
    if (!status.ok()) return InvalidObservations("leaves[", index, "] (", spec.ToString(), "): ", status.message());
    rows_->leaves.push_back(std::move(leaf));
    return absl::OkStatus();
  }

  static absl::Status CheckFinite(DType dtype, const ObservationRows::Leaf& leaf, std::size_t size) {
    if (dtype == DType::kFloat32) return CheckFiniteAs<float>(leaf, size);
    if (dtype == DType::kFloat64) return CheckFiniteAs<double>(leaf, size);
    return absl::OkStatus();
  }

  template <typename Float>
  static absl::Status CheckFiniteAs(const ObservationRows::Leaf& leaf, std::size_t size) {
    const std::size_t i = FindNonFinite<Float>(leaf.data.get(), size / sizeof(Float));
    if (i * sizeof(Float) == size) return absl::OkStatus();
    const auto after = std::upper_bound(leaf.offsets.begin(), leaf.offsets.end(), i * sizeof(Float));
    return absl::InvalidArgumentError(absl::StrCat("row ", after - leaf.offsets.begin() - 1, " holds ",
                                                   LoadFloat<Float>(leaf.data.get(), i), ", which is not finite",
                                                   sizeof(Float) == sizeof(float) ? "" : " as float32"));
  }

  // Reads the length of a field with one element per environment; it must be the field's first occurrence.
  absl::Status ReadColumnLength(CodedInputStream* in, absl::string_view name, std::size_t item_size, bool empty) const {
    int length = 0;
    if (!ReadLength(in, &length)) return Malformed(kName);
    if (!empty) return InvalidObservations(name, ": given twice");
    if (static_cast<std::size_t>(length) == num_envs_ * item_size) return absl::OkStatus();
    return InvalidObservations(name, ": ", length, " bytes, expected ", num_envs_ * item_size);
  }

  absl::Status ReadRewards(CodedInputStream* in) {
    std::vector<float>& rewards = rows_->rewards;
    absl::Status status = ReadColumnLength(in, "rewards", sizeof(float), rewards.empty());
    if (!status.ok()) return status;
    rewards.resize(num_envs_);
    if (!in->ReadRaw(rewards.data(), static_cast<int>(num_envs_ * sizeof(float)))) return Malformed(kName);
    for (std::size_t i = 0; i < num_envs_; ++i) {
      if (!std::isfinite(rewards[i])) return InvalidObservations("rewards[", i, "]: ", rewards[i], " is not finite");
    }
    return absl::OkStatus();
  }

  absl::Status ReadFlags(CodedInputStream* in, absl::string_view name, std::vector<std::uint8_t>* flags) const {
    absl::Status status = ReadColumnLength(in, name, 1, flags->empty());
    if (!status.ok()) return status;
    flags->resize(num_envs_);
    if (!in->ReadRaw(flags->data(), static_cast<int>(num_envs_))) return Malformed(kName);
    for (std::size_t i = 0; i < num_envs_; ++i) {
      if ((*flags)[i] > 1) return InvalidObservations(name, "[", i, "]: ", (*flags)[i], ", expected 0 or 1");
    }
    return absl::OkStatus();
  }

  absl::Status ReadEpisode(CodedInputStream* in) {
    if (rows_->episodes.size() == num_envs_)
      return InvalidObservations("episodes: more than the ", num_envs_, " environments");
    EpisodeEnd episode;
    std::uint64_t env = 0;
    float rounded = 0;
    std::optional<double> exact;
    absl::Status status = ForEachSubmessageField(in, kEpisodeName, [&](std::uint32_t tag) {
      std::uint32_t bits = 0;
      std::uint64_t exact_bits = 0;
      switch (tag) {
        case Tag(1, WireType::kVarint):
          return in->ReadVarint64(&env) ? absl::OkStatus() : Malformed(kEpisodeName);
        case Tag(2, WireType::kFixed32):
          if (!in->ReadLittleEndian32(&bits)) return Malformed(kEpisodeName);
          rounded = std::bit_cast<float>(bits);
          return absl::OkStatus();
        case Tag(3, WireType::kVarint):
          return in->ReadVarint64(&episode.length) ? absl::OkStatus() : Malformed(kEpisodeName);
        case Tag(4, WireType::kBytes):
          return ReadInfo(in, &episode.info);
        case Tag(5, WireType::kFixed64):
          if (!in->ReadLittleEndian64(&exact_bits)) return Malformed(kEpisodeName);
          exact = std::bit_cast<double>(exact_bits);
          return absl::OkStatus();
        default:
          return SkipUnknownField(in, tag, kNumEpisodeFields, kEpisodeName);
      }
    });
    if (!status.ok()) return status;
    if (env >= num_envs_) return InvalidObservations("episodes.env: ", env, ", expected 0 to ", num_envs_ - 1);
    if (!std::isfinite(rounded)) return InvalidObservations("episodes.episode_return: ", rounded, " is not finite");
    if (exact.has_value() && ToFloat(*exact) != rounded) {
      return InvalidObservations("episodes.exact_return: ", *exact, ", expected a number that rounds to ", rounded);
    }
    episode.episode_return = exact.value_or(rounded);
    episode.env = static_cast<std::uint32_t>(env);
    rows_->episodes.push_back(std::move(episode));
    return absl::OkStatus();
  }

  absl::Status ReadInfo(CodedInputStream* in, std::vector<double>* info) const {
    int length = 0;
    if (!ReadLength(in, &length)) return Malformed(kEpisodeName);
    if (!info->empty()) return InvalidObservations("episodes.info: given twice");
    const auto num_bytes = static_cast<std::size_t>(length);
    if (num_bytes != 0 && num_bytes != expected_.num_info * sizeof(double)) {
      return InvalidObservations("episodes.info: ", num_bytes, " bytes, expected ", expected_.num_info, " doubles");
    }
    info->resize(num_bytes / sizeof(double));
    if (!in->ReadRaw(info->data(), length)) return Malformed(kEpisodeName);
    const auto infinite = std::find_if(info->begin(), info->end(), [](double value) { return std::isinf(value); });
    if (infinite == info->end()) return absl::OkStatus();
    return InvalidObservations("episodes.info[", infinite - info->begin(), "]: ", *infinite,
                               ", expected a finite number");
  }

  // Checks the properties that need all fields.
  absl::Status CheckMessage() const {
    if (absl::Status status = CheckStep(); !status.ok()) return status;
    if (rows_->leaves.size() != specs_.size()) {
      return InvalidObservations("leaves: ", rows_->leaves.size(), ", expected ", specs_.size());
    }
    if (rows_->rewards.empty()) return InvalidObservations("rewards: missing");
    if (rows_->terminated.empty()) return InvalidObservations("terminated: missing");
    if (rows_->truncated.empty()) return InvalidObservations("truncated: missing");
    if (rows_->is_first.empty()) return InvalidObservations("is_first: missing");
    rows_->interrupted.resize(num_envs_);  // omitted if all are 0
    if (expected_.takes_turns) rows_->waiting.resize(num_envs_);
    for (std::size_t i = 0; i < num_envs_; ++i) {
      if (absl::Status status = CheckRow(i); !status.ok()) return status;
    }
    return expected_.takes_turns ? CheckTurns() : absl::OkStatus();
  }

  // A row that waits does so for another agent of its environment.
  absl::Status CheckTurns() const {
    const auto begin = rows_->waiting.begin();
    for (std::size_t i = 0; i < num_envs_; i += expected_.num_agents) {
      const auto first = begin + static_cast<std::ptrdiff_t>(i);
      const auto end = first + static_cast<std::ptrdiff_t>(expected_.num_agents);
      const bool has_waiting = std::find(first, end, 1) != end;
      std::size_t num_acting = 0;
      for (std::size_t agent = i; agent < i + expected_.num_agents; ++agent) {
        num_acting += rows_->waiting[agent] == 0 && !(rows_->is_first[agent] != 0 && rows_->interrupted[agent] != 0);
      }
      if (has_waiting && num_acting == 0) {
        return InvalidObservations("waiting[", i, "]: it is no agent's turn in the environment of this row");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRow(std::size_t i) const {
    const bool is_first = rows_->is_first[i] != 0;
    if (is_first != (expected_.is_first[i] != 0)) {
      return is_first ? InvalidObservations("is_first[", i, "]: 1, but the row does not follow a final one")
                      : InvalidObservations("is_first[", i, "]: 0, but the row opens an episode");
    }
    if (!rows_->waiting.empty() && rows_->waiting[i] != 0) return CheckWaiting(i);
    if (rows_->interrupted[i] != 0) return CheckInterrupted(i);
    if (!is_first) return absl::OkStatus();
    if (rows_->terminated[i] != 0 || rows_->truncated[i] != 0) {
      return InvalidObservations("is_first[", i, "]: 1 together with terminated or truncated");
    }
    if (rows_->rewards[i] != 0)
      return InvalidObservations("rewards[", i, "]: ", rows_->rewards[i], ", expected 0 where is_first");
    return absl::OkStatus();
  }

  absl::Status CheckWaiting(std::size_t i) const {
    if (!expected_.takes_turns) return InvalidObservations("waiting[", i, "]: 1, but hello.takes_turns is false");
    if (rows_->is_first[i] != 0) return InvalidObservations("waiting[", i, "]: 1 together with is_first");
    if (rows_->terminated[i] != 0 || rows_->truncated[i] != 0 || rows_->interrupted[i] != 0) {
      return InvalidObservations("waiting[", i, "]: 1 together with terminated, truncated or interrupted");
    }
    if (rows_->rewards[i] == 0) return absl::OkStatus();
    return InvalidObservations("rewards[", i, "]: ", rows_->rewards[i], ", expected 0 where waiting");
  }

  absl::Status CheckInterrupted(std::size_t i) const {
    if (rows_->truncated[i] == 0 || rows_->terminated[i] != 0) {
      return InvalidObservations("interrupted[", i, "]: 1, but the row is not truncated");
    }
    if (rows_->rewards[i] == 0) return absl::OkStatus();
    return InvalidObservations("rewards[", i, "]: ", rows_->rewards[i], ", expected 0 where interrupted");
  }

  const std::vector<LeafSpec>& specs_;
  const std::vector<Compression>& compression_;
  const ObservationExpectation& expected_;
  const std::size_t num_envs_;
  std::string* const scratch_;
  std::shared_ptr<ObservationRows> rows_ = std::make_shared<ObservationRows>();
};

}  // namespace

absl::StatusOr<std::shared_ptr<ObservationRows>> DecodeObservations(CodedInputStream* in,
                                                                    const std::vector<LeafSpec>& specs,
                                                                    const std::vector<Compression>& compression,
                                                                    const ObservationExpectation& expected,
                                                                    std::string* scratch) {
  return Decoder(specs, compression, expected, scratch).Decode(in);
}

}  // namespace kubebeast
