// Finds accesses to the same byte that nothing orders, at least one of them a write.
//
// Within a warp bar.warp.sync orders, within a block bar.sync, between blocks nothing. Lanes that run in lock step are
// not ordered by that: a GPU may let them run apart. Atomic operations do not race with each other.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace ptx {

// What each lane of a warp knows of the progress of the others.
class WarpClock {
  public:
    WarpClock();
    void synchronize(uint32_t lanes);
    uint32_t now(int lane) const { return known_[lane][lane]; }
    bool knows(int lane, int other, uint32_t time) const { return known_[lane][other] >= time; }

  private:
    std::array<std::array<uint32_t, 32>, 32> known_;
};

// Who touches memory, and when.
struct Access {
    uint32_t block;
    uint32_t thread;  // in the block
    uint32_t barriers;
    bool is_write;
    bool is_atomic;
    const WarpClock* clock;
};

class RaceDetector {
  public:
    // What is wrong with this access, or nothing. `shared` memory is that of the access's block.
    std::string touch(uint64_t address, int bytes, bool shared, const Access& access);
    void forget_shared();

  private:
    struct Past {
        uint32_t block = 0, thread = 0, barriers = 0, time = 0;
        bool exists = false, is_atomic = false;
    };
    struct Cell {
        Past write, read, other_read;
    };
    using Page = std::array<Cell, 64>;
    using Pages = std::unordered_map<uint64_t, std::unique_ptr<Page>>;

    static bool is_ordered(const Past& past, const Access& now);
    std::string touch_cell(Cell& cell, const Access& access);

    Pages global_, shared_;
};

}  // namespace ptx
