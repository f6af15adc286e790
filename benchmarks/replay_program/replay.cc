// One environment that only replays recorded frames, on the client library: `replay ADDRESS FRAMES LZ4 FRAME_STACK`.
//
// FRAMES: a file of uint8 frames [84, 84], one after the other. LZ4: 1 offers it, 0 does not. Ends only by an error.
#include <kubebeast/client.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace client = kubebeast::client;

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  constexpr std::size_t kFrameBytes = 84 * 84;
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::span frames(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  client::Stream stream({
      .address = argv[1],
      .env_id = "Recorded-v0",
      .observation = {{.dtype = client::DType::kUint8,
                       .shape = {84, 84},
                       .frame_stack = static_cast<std::uint32_t>(std::atoi(argv[4]))}},
      .action = {{.dtype = client::DType::kInt64, .num_categories = 6}},
      .lz4 = std::string_view(argv[3]) == "1",
  });
  client::Environment env = stream.environment(0);
  const auto frame = [&](std::size_t step) { return frames.subspan(step * kFrameBytes % frames.size(), kFrameBytes); };
  client::Reply reply = env.Start(frame(0)).Wait(std::chrono::minutes(1));
  for (std::size_t step = 1; reply.ok(); ++step) reply = env.Observe(frame(step), 0).Wait(std::chrono::minutes(1));
  std::cerr << client::CodeName(reply.status.code) << ": " << reply.status.message << '\n';
  return 1;
}
