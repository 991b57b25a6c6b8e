// A warp: its registers, the paths on which its lanes are, and what they do together.
#include <cstring>

#include "machine.h"

namespace ptx {
namespace {

uint64_t low_bits(uint64_t value, int bytes) { return bytes == 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1); }

}  // namespace

Warp::Warp(Block& block, unsigned number)
    : block_(block),
      number_(number),
      registers_(32 * static_cast<size_t>(block.launch.kernel->registers), 0xDEADBEEFu) {
    const unsigned threads = block.launch.block.size() - 32 * number;
    lanes_at_start_ = threads >= 32 ? ~0u : (1u << threads) - 1;
    const int end = static_cast<int>(block.launch.kernel->body.size());
    stack_.push_back({0, lanes_at_start_, end});
    ++block.counters.warps;
}

void Warp::fail(const std::string& what) const {
    const std::string where = now_ == nullptr ? "" : ", line " + std::to_string(now_->line) + " (" + now_->text + ")";
    throw Error(block_.launch.kernel->name + ", warp " + std::to_string(number_) + " of block " +
                std::to_string(block_.number) + where + ": " + what);
}

void Warp::run(int most) {
    settle();
    for (int i = 0; i < most && !is_done() && !waits_; ++i) {
        step();
        settle();
    }
}

// Drops paths without lanes, and those that have come to where they meet others.
void Warp::settle() {
    while (!stack_.empty()) {
        const Path& top = stack_.back();
        const bool arrived = top.pc == top.meets_at;
        if (top.lanes != 0 && !arrived) return;
        if (top.lanes != 0 && stack_.size() == 1) return leave(top.lanes);  // ran over the end
        stack_.pop_back();
    }
}

void Warp::step() {
    Path& path = stack_.back();
    const Instruction& now = block_.launch.kernel->body[path.pc];
    now_ = &now;
    uint32_t lanes = path.lanes;
    if (now.guard >= 0) {
        for_lanes(path.lanes, [&](int lane) {
            if ((registers_[32 * now.guard + lane] != 0) == now.guard_negated) lanes &= ~(1u << lane);
        });
    }
    ++block_.counters.instructions;
    block_.counters.lanes += static_cast<uint64_t>(__builtin_popcount(now.code == Op::kBra ? path.lanes : lanes));
    ++block_.profile[path.pc];
    if (now.code == Op::kBra) return branch(now, lanes);
    ++path.pc;
    if (lanes == 0) return;
    switch (now.code) {
        case Op::kRet:
            return leave(lanes);
        case Op::kLd:
        case Op::kSt:
            return load_or_store(now, lanes);
        case Op::kAtom:
            return atomic(now, lanes);
        case Op::kShfl:
            return shuffle(now, lanes);
        case Op::kVote:
            return vote(now, lanes);
        case Op::kMatch:
            return match(now, lanes);
        case Op::kRedux:
            return redux(now, lanes);
        case Op::kBar:
            return barrier(now, lanes);
        case Op::kFence:
            return;
        case Op::kActivemask:
            return for_lanes(lanes, [&](int lane) { target(now.operands[0], lane) = lanes; });
        default:
            return each_lane(now, lanes);
    }
}

uint64_t Warp::special(int reg, int lane) const {
    const int number = reg - kFirstSpecial, axis = number % 4;
    const Launch& launch = block_.launch;
    const unsigned thread = 32 * number_ + static_cast<unsigned>(lane);
    auto place = [axis](unsigned at, const Shape& shape) {
        const unsigned all[3] = {at % shape.x, at / shape.x % shape.y, at / shape.x / shape.y};
        return all[axis];
    };
    auto size = [axis](const Shape& shape) { return axis == 0 ? shape.x : (axis == 1 ? shape.y : shape.z); };
    const uint32_t bit = 1u << lane;
    switch (static_cast<Special>(number / 4)) {
        case Special::kTid:
            return place(thread, launch.block);
        case Special::kNtid:
            return size(launch.block);
        case Special::kCtaid:
            return place(block_.number, launch.grid);
        case Special::kNctaid:
            return size(launch.grid);
        case Special::kLaneId:
            return static_cast<uint64_t>(lane);
        case Special::kMaskLt:
            return bit - 1;
        case Special::kMaskLe:
            return (bit - 1) | bit;
        case Special::kMaskEq:
            return bit;
        case Special::kMaskGe:
            return ~(bit - 1);
        case Special::kMaskGt:
            return ~(bit - 1) & ~bit;
    }
    return 0;
}

uint64_t Warp::value(const Operand& operand, int lane) const {
    if (operand.reg < 0) return operand.number;
    if (operand.reg >= kFirstSpecial) return special(operand.reg, lane);
    const uint64_t held = registers_[32 * operand.reg + lane];
    return operand.negated ? (held ^ 1) : held + operand.number;
}

void Warp::each_lane(const Instruction& now, uint32_t lanes) {
    for_lanes(lanes, [&](int lane) {
        if (now.code == Op::kMov && now.operands.size() > 2) return move(now, lane);
        uint64_t sources[4] = {};
        if (now.operands.size() > 5) fail("too many operands");
        for (size_t i = 1; i < now.operands.size(); ++i) sources[i - 1] = value(now.operands[i], lane);
        if (now.code == Op::kCvta && now.space != Space::kGlobal) {
            const uint64_t window = now.space == Space::kShared ? kSharedWindow : kParamWindow;
            sources[0] = now.has("to") ? sources[0] - window : sources[0] + window;
        }
        target(now.operands[0], lane) = evaluate(now, sources);
    });
}

// mov.b64 {low, high}, whole and the other way round.
void Warp::move(const Instruction& now, int lane) {
    const int parts = static_cast<int>(now.operands.size()) - 1, bytes = now.type.bytes / parts;
    if (now.unpacks) {
        const uint64_t whole = value(now.operands.back(), lane);
        for (int i = 0; i < parts; ++i) target(now.operands[i], lane) = low_bits(whole >> (8 * bytes * i), bytes);
        return;
    }
    uint64_t whole = 0;
    for (int i = 0; i < parts; ++i) whole |= low_bits(value(now.operands[i + 1], lane), bytes) << (8 * bytes * i);
    target(now.operands[0], lane) = whole;
}

void Warp::branch(const Instruction& now, uint32_t lanes) {
    Path& path = stack_.back();
    const uint32_t others = path.lanes & ~lanes;
    const int next = path.pc + 1;
    if (others == 0 || lanes == 0) {
        path.pc = lanes == 0 ? next : now.target;
        return;
    }
    path.pc = now.meets_at;
    if (path.pc == path.meets_at) stack_.pop_back();
    if (next != now.meets_at) stack_.push_back({next, others, now.meets_at});
    if (now.target != now.meets_at) stack_.push_back({now.target, lanes, now.meets_at});
}

void Warp::leave(uint32_t lanes) {
    for (Path& path : stack_) path.lanes &= ~lanes;
    while (!stack_.empty() && stack_.back().lanes == 0) stack_.pop_back();
}

void Warp::barrier(const Instruction& now, uint32_t lanes) {
    if (now.has("warp")) {
        clock_.synchronize(named(now, now.operands[0], lanes));
        return;
    }
    if (lanes != lanes_at_start_) fail("a barrier of the block in a divergent warp, or after lanes have left");
    waits_ = true;
}

// The lanes that a mask names; all of them must be here.
uint32_t Warp::named(const Instruction&, const Operand& mask, uint32_t lanes) {
    uint32_t wanted = 0;
    for_lanes(lanes, [&](int lane) { wanted = static_cast<uint32_t>(value(mask, lane)); });
    for_lanes(lanes, [&](int lane) {
        const uint32_t own = static_cast<uint32_t>(value(mask, lane));
        if ((own >> lane & 1) == 0) fail("a lane that is not in the mask");
        if (own != wanted) fail("lanes with different masks");
    });
    if ((wanted & ~lanes & lanes_at_start_) != 0) fail("a lane named in the mask is elsewhere, or has left");
    return wanted & lanes;
}

void Warp::shuffle(const Instruction& now, uint32_t lanes) {
    const size_t count = now.operands.size(), first = count - 4;  // behind d, or d and p
    const uint32_t here = named(now, now.operands.back(), lanes);
    uint64_t held[32];
    for_lanes(lanes, [&](int lane) { held[lane] = value(now.operands[first], lane); });
    for_lanes(lanes, [&](int lane) {
        const int by = static_cast<int>(value(now.operands[first + 1], lane)) & 31;
        const int clamp = static_cast<int>(value(now.operands[first + 2], lane));
        const int segment = clamp >> 8 & 31, most = (lane & segment) | (clamp & 31 & ~segment);
        int from = (lane & segment) | (by & ~segment);  // idx
        if (now.has("up")) from = lane - by;
        if (now.has("down")) from = lane + by;
        if (now.has("bfly")) from = lane ^ by;
        const bool valid = now.has("up") ? from >= most : from <= most;
        if (!valid) from = lane;
        if ((here >> from & 1) == 0) fail("a value of lane " + std::to_string(from) + ", which is not here");
        target(now.operands[0], lane) = low_bits(held[from], 4);
        if (count == 6) target(now.operands[1], lane) = valid ? 1 : 0;
    });
}

void Warp::vote(const Instruction& now, uint32_t lanes) {
    const uint32_t here = named(now, now.operands[2], lanes);
    uint32_t yes = 0;
    for_lanes(here, [&](int lane) { yes |= (value(now.operands[1], lane) != 0 ? 1u : 0u) << lane; });
    const bool uniform = yes == 0 || yes == here;
    const uint64_t result =
        now.has("ballot") ? yes : (now.has("any") ? yes != 0 : (now.has("all") ? yes == here : uniform));
    for_lanes(lanes, [&](int lane) { target(now.operands[0], lane) = result; });
}

void Warp::match(const Instruction& now, uint32_t lanes) {
    if (!now.has("any")) fail("not supported");
    const uint32_t here = named(now, now.operands[2], lanes);
    for_lanes(lanes, [&](int lane) {
        uint32_t same = 0;
        const uint64_t mine = low_bits(value(now.operands[1], lane), now.type.bytes);
        for_lanes(here, [&](int other) {
            if (low_bits(value(now.operands[1], other), now.type.bytes) == mine) same |= 1u << other;
        });
        target(now.operands[0], lane) = same;
    });
}

void Warp::redux(const Instruction& now, uint32_t lanes) {
    const uint32_t here = named(now, now.operands[2], lanes);
    uint64_t all = value(now.operands[1], __builtin_ctz(here));
    for_lanes(here & (here - 1), [&](int lane) { all = after_atomic(now, all, value(now.operands[1], lane), 0); });
    for_lanes(lanes, [&](int lane) { target(now.operands[0], lane) = all; });
}

}  // namespace ptx
