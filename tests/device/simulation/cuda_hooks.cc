// What a build of PyTorch for CPUs lacks to differentiate tensors that name the device "cuda": a device guard without
// effect, and hooks by which CUDA is the accelerator and pinned memory is known by its address.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/FakeGuardImpl.h>

#include <iterator>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>)

namespace {

thread_local bool is_refused = false;

class PinnedAllocator : public at::HostAllocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    TORCH_CHECK(!is_refused, "CUDA error: operation not permitted when stream is capturing: pinned memory");
    void* data = c10::GetCPUAllocator()->raw_allocate(size + 1);
    const std::scoped_lock lock(mutex());
    blocks()[data] = size + 1;
    return {data, data, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* target, const void* source, std::size_t size) const override {
    default_copy_data(target, source, size);
  }
  bool record_event(void* /*data*/, void* /*context*/, c10::Stream /*stream*/) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

  static bool Owns(const void* address) {
    const std::scoped_lock lock(mutex());
    const auto after = blocks().upper_bound(const_cast<void*>(address));
    if (after == blocks().begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return static_cast<const char*>(address) < static_cast<const char*>(begin) + size;
  }

 private:
  static void Free(void* data) {
    {
      const std::scoped_lock lock(mutex());
      blocks().erase(data);
    }
    c10::GetCPUAllocator()->raw_deallocate(data);
  }
  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static std::map<void*, std::size_t>& blocks() {
    static auto* const blocks = new std::map<void*, std::size_t>;
    return *blocks;
  }
};

PinnedAllocator& Pinned() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}

// DistributedDataParallel measures its passes by one.
struct SimulatedTimer : c10d::Timer {
  explicit SimulatedTimer(c10::Device /*device*/) {}
  std::optional<std::int64_t> measureDifference(Event /*start*/, Event /*end*/) override { return std::nullopt; }
};

struct SimulatedHooks : at::CUDAHooksInterface {
  explicit SimulatedHooks(at::CUDAHooksArgs /*arguments*/) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 8; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  bool isPinnedPtr(const void* address) const override { return PinnedAllocator::Owns(address); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &Pinned(); }
};

const bool is_registered = (at::setHostAllocator(c10::DeviceType::CUDA, &Pinned()), true);

}  // namespace

extern "C" void refuse_pinned_memory(bool refused) { is_refused = refused; }

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, ::SimulatedTimer)
}  // namespace c10d

namespace at {
using ::SimulatedHooks;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, SimulatedHooks)
}  // namespace at
