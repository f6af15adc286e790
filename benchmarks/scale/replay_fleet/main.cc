// `replay_fleet ADDRESS MESSAGES FIRST_STREAM STREAMS THINK_US UNROLL_LENGTH`: so many streams that replay messages.
//
// MESSAGES: a file of messages, each after its length in four bytes, little-endian. A line on standard input is a
// command: "count" prints how many are welcome and how many steps were answered; "clear" forgets the latencies so far;
// "latencies" prints them. Ends with its input, and by an error where a stream ends.
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "replay_stream.h"

namespace {

// Connections that are made at a time: more would only fill the learner's backlog.
constexpr std::int64_t kMaxUnwelcome = 64;

std::vector<std::string> ReadMessages(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> messages;
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size |= std::size_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
    messages.push_back(bytes.substr(at + 4, size));
    at += 4 + size;
  }
  return messages;
}

void Obey(replay::Counts& counts) {
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "count") std::cout << counts.welcomed << " " << counts.steps << std::endl;
    if (command == "clear") counts.latencies.Clear();
    if (command == "latencies") std::cout << counts.latencies.Describe() << std::endl;
  }
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const replay::Load load{.address = argv[1],
                          .messages = ReadMessages(argv[2]),
                          .think = std::chrono::microseconds(std::atoll(argv[5])),
                          .unroll_length = static_cast<std::size_t>(std::atoll(argv[6]))};
  if (load.messages.size() < 3 || load.unroll_length == 0) return 2;
  const std::int64_t first = std::atoll(argv[3]);
  const std::int64_t num_streams = std::atoll(argv[4]);
  replay::Counts counts;
  std::thread commands([&counts] { Obey(counts); });
  grpc::CompletionQueue queue;
  std::deque<replay::ReplayStream> streams;
  void* tag = nullptr;
  bool ok = false;
  do {
    while (static_cast<std::int64_t>(streams.size()) < num_streams &&
           static_cast<std::int64_t>(streams.size()) - counts.welcomed < kMaxUnwelcome) {
      streams.emplace_back(load, counts, queue, static_cast<std::uint64_t>(first) + streams.size());
    }
    if (!queue.Next(&tag, &ok)) return 1;
    const auto* const event = static_cast<replay::ReplayStream::Event*>(tag);
    (event->stream->*event->on)(ok);
  } while (true);
}
