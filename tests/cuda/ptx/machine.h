// Runs kernels as a GPU does, one block after the other: warps in lock step, lanes that went apart meet again at the
// nearest post-dominator of the branch. What a GPU would not forgive ends the run with an Error.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "module.h"
#include "races.h"

namespace ptx {

struct Shape {
    unsigned x, y, z;
    unsigned size() const { return x * y * z; }
};

// What was executed, in units of warps.
struct Counters {
    uint64_t instructions = 0;
    uint64_t lanes = 0;           // active ones, over all instructions
    uint64_t global_sectors = 0;  // of 32 bytes, read or written
    uint64_t global_accesses = 0;
    uint64_t warps = 0;
};

// The bytes [begin, end) of one allocation of global memory.
struct Extent {
    uint64_t begin, end;
};

struct Launch {
    const Kernel* kernel;
    Shape grid, block;
    uint64_t dynamic_shared;
    std::vector<char> parameters;
    unsigned seed;                              // of the order in which blocks and warps come
    std::function<Extent(uint64_t)> extent_of;  // the allocation that holds an address; empty if none does
    bool finds_races;
};

constexpr uint64_t kSharedWindow = uint64_t{1} << 60;  // where shared memory begins in generic addresses
constexpr uint64_t kParamWindow = uint64_t{1} << 61;

template <typename Work>
void for_lanes(uint32_t lanes, Work work) {
    for (; lanes != 0; lanes &= lanes - 1) work(__builtin_ctz(lanes));
}

// What the warps of a block have in common.
struct Block {
    const Launch& launch;
    unsigned number;
    std::vector<char> shared;
    uint32_t barriers = 0;  // passed so far
    RaceDetector& races;
    Counters& counters;
    Extent last_extent{0, 0};
    std::vector<uint64_t> profile;  // how often each instruction was executed
};

class Warp {
  public:
    Warp(Block& block, unsigned number);

    // Executes up to `most` instructions; returns early at a barrier of the block or at the end.
    void run(int most);
    bool is_done() const { return stack_.empty(); }
    bool waits() const { return waits_; }
    void pass_barrier() { waits_ = false; }

  private:
    struct Path {
        int pc;
        uint32_t lanes;
        int meets_at;
    };

    [[noreturn]] void fail(const std::string& what) const;
    void step();
    void settle();
    uint64_t special(int reg, int lane) const;
    uint64_t value(const Operand& operand, int lane) const;
    uint64_t& target(const Operand& operand, int lane) { return registers_[32 * operand.reg + lane]; }
    void each_lane(const Instruction& now, uint32_t lanes);
    void move(const Instruction& now, int lane);
    void branch(const Instruction& now, uint32_t lanes);
    void leave(uint32_t lanes);
    void barrier(const Instruction& now, uint32_t lanes);
    uint32_t named(const Instruction& now, const Operand& mask, uint32_t lanes);
    void shuffle(const Instruction& now, uint32_t lanes);
    void vote(const Instruction& now, uint32_t lanes);
    void match(const Instruction& now, uint32_t lanes);
    void redux(const Instruction& now, uint32_t lanes);
    void load_or_store(const Instruction& now, uint32_t lanes);
    void atomic(const Instruction& now, uint32_t lanes);
    char* memory(const Instruction& now, int lane, uint64_t address, int bytes, bool is_write, bool is_atomic);
    void count_sectors();

    Block& block_;
    unsigned number_;
    std::vector<uint64_t> registers_;  // [register, lane]
    std::vector<Path> stack_;          // the last one runs
    WarpClock clock_;
    const Instruction* now_ = nullptr;
    std::vector<uint64_t> sectors_;
    uint32_t lanes_at_start_;
    bool waits_ = false;
};

// Runs all blocks; adds to the counters, and says in `profile` how often each instruction came.
void run(const Launch& launch, Counters& counters, std::vector<uint64_t>* profile);

}  // namespace ptx
