// Share of one stream in the budget of its connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "door/connection.h"

namespace kubebeast {

// A share that is given back on destruction. connection: null for a local peer, which has no budget. Not thread-safe.
class StreamPass {
 public:
  explicit StreamPass(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~StreamPass() {
    if (connection_ != nullptr && reserved_ > 0) connection_->GiveBack(reserved_, !is_accepted_);
  }
  StreamPass(const StreamPass&) = delete;
  StreamPass& operator=(const StreamPass&) = delete;

  const std::shared_ptr<Connection>& connection() const { return connection_; }
  bool is_accepted() const { return is_accepted_; }

  // Reserves bytes for a Hello, once the token is right or none is required.
  void ExpectHello() {
    if (connection_ != nullptr) reserved_ = connection_->ExpectHello();
  }
  // Replaces the Hello's bytes with those of the longest message (step_bytes), after a valid Hello.
  void Accept(std::uint64_t step_bytes) {
    is_accepted_ = true;
    if (connection_ == nullptr) return;
    const std::uint64_t hello_bytes = std::exchange(reserved_, connection_->Accept(step_bytes));
    connection_->GiveBack(hello_bytes, /*was_hello=*/true);
  }
  void OnMessage(std::size_t bytes) {
    if (connection_ != nullptr) connection_->OnMessage(bytes);
  }

 private:
  const std::shared_ptr<Connection> connection_;
  std::uint64_t reserved_ = 0;
  bool is_accepted_ = false;
};

}  // namespace kubebeast
