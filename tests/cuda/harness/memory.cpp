// Memory that only kernels may touch, and only those of the device that it belongs to.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "runtime.h"

namespace cuda_on_cpu {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 32;  // of addresses; pages come when they are touched

struct Arena {
    char* begin = nullptr;
    size_t used = 0;
    int open = 0;  // how many may touch it now
};

std::mutex mutex;
Arena arenas[kDevices];
std::map<uint64_t, uint64_t> allocations;  // begin and end

void protect(const Arena& arena, int protection) {
    if (arena.used > 0 && mprotect(arena.begin, arena.used, protection) != 0) {
        throw std::runtime_error("cuda_on_cpu: mprotect failed");
    }
}

void report(int) {
    const char text[] = "cuda_on_cpu: device memory was touched by the host, or by a kernel of another device\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(71);
}

}  // namespace

void* device_memory(int device, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    Arena& arena = arenas[device];
    if (arena.begin == nullptr) {
        void* mapped = mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) throw std::runtime_error("cuda_on_cpu: no addresses for device memory");
        arena.begin = static_cast<char*>(mapped);
    }
    const size_t whole = (bytes + kPageSize) / kPageSize * kPageSize;
    if (arena.used + whole > kArenaBytes) throw std::runtime_error("cuda_on_cpu: device memory is used up");
    char* memory = arena.begin + arena.used;
    arena.used += whole;
    protect(arena, PROT_READ | PROT_WRITE);
    std::memset(memory, 0xA5, whole);  // memory of an allocator that reuses is never zero
    if (arena.open == 0) protect(arena, PROT_NONE);
    allocations[reinterpret_cast<uint64_t>(memory)] = reinterpret_cast<uint64_t>(memory) + bytes;
    return memory;
}

std::pair<uint64_t, uint64_t> allocation_of(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex);
    auto after = allocations.upper_bound(reinterpret_cast<uint64_t>(address));
    if (after == allocations.begin()) return {0, 0};
    return *std::prev(after);
}

DeviceAccess::DeviceAccess(int device) : device_(device) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (arenas[device_].open++ == 0) protect(arenas[device_], PROT_READ | PROT_WRITE);
}

DeviceAccess::~DeviceAccess() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--arenas[device_].open == 0) protect(arenas[device_], PROT_NONE);
}

void report_touched_memory() { std::signal(SIGSEGV, report); }

}  // namespace cuda_on_cpu
