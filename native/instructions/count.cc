// `instructions OPERATION TIMES`: runs decode, batch, gather or gather_single_frames TIMES times, within
// kubebeast_counted, and prints the number of memory allocations of these runs.
#include <cstdlib>
#include <iostream>
#include <new>
#include <string_view>

#include "operations.h"

namespace {

std::size_t num_allocations = 0;

}  // namespace

// [new.delete.single]: the other forms call these.
void* operator new(std::size_t size) {
  ++num_allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace kubebeast::instructions {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << what << " failed\n";
  std::exit(1);
}

namespace {

Operation Find(std::string_view name, std::size_t times) {
  if (name == "decode") return Decode(times);
  if (name == "batch") return Batch();
  if (name == "gather") return Gather(false);
  if (name == "gather_single_frames") return Gather(true);
  return nullptr;
}

}  // namespace
}  // namespace kubebeast::instructions

// Function in which callgrind counts.
extern "C" __attribute__((noinline)) void kubebeast_counted(const kubebeast::instructions::Operation& operation) {
  operation();
}

int main(int argc, char** argv) {
  const std::size_t times = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
  // The first call finds no memory to reuse, and fills all caches.
  const auto operation = times > 0 ? kubebeast::instructions::Find(argv[1], times + 1) : nullptr;
  if (operation == nullptr) {
    std::cerr << "usage: instructions decode|batch|gather|gather_single_frames TIMES\n";
    return 2;
  }
  operation();
  num_allocations = 0;
  for (std::size_t i = 0; i < times; ++i) kubebeast_counted(operation);
  std::cout << num_allocations << '\n';
  return 0;
}
