// What each lane gets from a warp operation.
#include "block.h"

namespace cuda_on_cpu {
namespace {

int source_lane(const WarpCall& call, int lane) {
    const int first = lane / call.width * call.width, last = first + call.width - 1;
    int source = lane;
    switch (call.op) {
        case WarpOp::kShuffle:
            source = first + (call.argument & (call.width - 1));
            break;
        case WarpOp::kShuffleUp:
            source = lane - call.argument;
            break;
        case WarpOp::kShuffleDown:
            source = lane + call.argument;
            break;
        case WarpOp::kShuffleXor:
            source = lane ^ call.argument;
            break;
        default:
            break;
    }
    return source < first || source > last ? lane : source;  // outside its part of the warp a lane keeps its own
}

}  // namespace

uint64_t Block::result_for(const Thread& thread) {
    const WarpCall& call = thread.call;
    unsigned votes = 0;
    for (int number = 0; number < kLanes; ++number) {
        if ((call.mask >> number & 1u) != 0 && lane(thread, number).call.value != 0) votes |= 1u << number;
    }
    switch (call.op) {
        case WarpOp::kBallot:
            return votes;
        case WarpOp::kAny:
            return votes != 0;
        case WarpOp::kAll:
            return votes == call.mask;
        case WarpOp::kSync:
            return 0;
        default:
            break;
    }
    const int source = source_lane(call, static_cast<int>(thread.index % kLanes));
    if ((call.mask >> source & 1u) == 0) {
        fail(std::string(thread.site.name) + ": lane " + std::to_string(source) + " is read, but not in the mask");
        return 0;
    }
    return lane(thread, source).call.value;
}

}  // namespace cuda_on_cpu
