// How a warp reads and writes: every access is looked up, checked for races and counted.
#include <algorithm>
#include <cstring>

#include "machine.h"

namespace ptx {
char* Warp::memory(const Instruction& now, int lane, uint64_t address, int bytes, bool is_write, bool is_atomic) {
    Space space = now.space;
    if (space == Space::kGeneric) {
        space = address >= kParamWindow ? Space::kParam : (address >= kSharedWindow ? Space::kShared : Space::kGlobal);
        if (space == Space::kParam) address -= kParamWindow;
        if (space == Space::kShared) address -= kSharedWindow;
    }
    const uint64_t end = address + static_cast<uint64_t>(bytes);
    if (address % static_cast<uint64_t>(bytes) != 0) fail("a misaligned address");
    if (space == Space::kParam) {
        const std::vector<char>& parameters = block_.launch.parameters;
        if (end > parameters.size() || is_write) fail("outside of the parameters");
        return const_cast<char*>(parameters.data()) + address;
    }
    const bool is_shared = space == Space::kShared;
    if (is_shared) {
        if (end > block_.shared.size()) fail("outside of shared memory, by lane " + std::to_string(lane));
    } else {
        sectors_.push_back(address / 32);
        if (address < block_.last_extent.begin || end > block_.last_extent.end) {
            block_.last_extent = block_.launch.extent_of(address);
            const bool inside = address >= block_.last_extent.begin && end <= block_.last_extent.end;
            if (!inside) fail("outside of every allocation, by lane " + std::to_string(lane));
        }
    }
    if (block_.launch.finds_races) {
        const uint32_t thread = 32 * number_ + static_cast<uint32_t>(lane);
        const Access access{block_.number, thread, block_.barriers, is_write, is_atomic, &clock_};
        const std::string race = block_.races.touch(address, bytes, is_shared, access);
        if (!race.empty()) fail(race);
    }
    return is_shared ? block_.shared.data() + address : reinterpret_cast<char*>(address);
}

void Warp::count_sectors() {
    if (sectors_.empty()) return;
    std::sort(sectors_.begin(), sectors_.end());
    const auto end = std::unique(sectors_.begin(), sectors_.end());
    block_.counters.global_sectors += static_cast<uint64_t>(end - sectors_.begin());
    ++block_.counters.global_accesses;
}

void Warp::load_or_store(const Instruction& now, uint32_t lanes) {
    const bool is_store = now.code == Op::kSt;
    const bool is_atomic = now.has("volatile") || now.has("relaxed") || now.has("acquire") || now.has("release");
    const int bytes = now.type.bytes;
    const Operand& place = is_store ? now.operands.front() : now.operands.back();
    sectors_.clear();
    for_lanes(lanes, [&](int lane) {
        char* at = memory(now, lane, value(place, lane), bytes * now.vector, is_store, is_atomic);
        for (int i = 0; i < now.vector; ++i, at += bytes) {
            if (is_store) {
                const uint64_t stored = value(now.operands[1 + i], lane);
                std::memcpy(at, &stored, static_cast<size_t>(bytes));
                continue;
            }
            uint64_t loaded = 0;
            std::memcpy(&loaded, at, static_cast<size_t>(bytes));
            const int unused = 64 - 8 * bytes;
            if (now.type.kind == 's') loaded = static_cast<uint64_t>(static_cast<int64_t>(loaded << unused) >> unused);
            target(now.operands[i], lane) = loaded;
        }
    });
    count_sectors();
}

// One lane after the other; red has no place for what was there before.
void Warp::atomic(const Instruction& now, uint32_t lanes) {
    const size_t first = now.op == "red" ? 0 : 1;
    const size_t bytes = static_cast<size_t>(now.type.bytes);
    sectors_.clear();
    for_lanes(lanes, [&](int lane) {
        const uint64_t address = value(now.operands[first], lane);
        char* at = memory(now, lane, address, now.type.bytes, true, true);
        uint64_t before = 0, given = value(now.operands[first + 1], lane), other = 0;
        if (now.operands.size() > first + 2) other = value(now.operands[first + 2], lane);
        if (bytes == 4) given &= 0xffffffffu;
        std::memcpy(&before, at, bytes);
        const uint64_t after = after_atomic(now, before, given, other);
        std::memcpy(at, &after, bytes);
        if (first == 1) target(now.operands[0], lane) = before;
    });
    count_sectors();
}

}  // namespace ptx
