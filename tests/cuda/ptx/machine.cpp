// Blocks in any order, their warps in turns of any length.
#include "machine.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace ptx {
namespace {

void run_block(Block& block, std::minstd_rand& random) {
    std::vector<Warp> warps;
    const unsigned count = (block.launch.block.size() + 31) / 32;
    warps.reserve(count);
    for (unsigned i = 0; i < count; ++i) warps.emplace_back(block, i);
    while (true) {
        unsigned done = 0, waiting = 0;
        std::vector<Warp*> ready;
        for (Warp& warp : warps) {
            done += warp.is_done() ? 1 : 0;
            waiting += warp.waits() ? 1 : 0;
            if (!warp.is_done() && !warp.waits()) ready.push_back(&warp);
        }
        if (done == count) return;
        if (!ready.empty()) {
            ready[random() % ready.size()]->run(1 + static_cast<int>(random() % 200));
            continue;
        }
        if (done > 0) throw Error(block.launch.kernel->name + ": a barrier that some warps have left behind");
        for (Warp& warp : warps) warp.pass_barrier();
        ++block.barriers;
    }
}

}  // namespace

void run(const Launch& launch, Counters& counters, std::vector<uint64_t>* profile) {
    std::vector<unsigned> order(launch.grid.size());
    std::iota(order.begin(), order.end(), 0u);
    std::minstd_rand random(launch.seed + 1);
    if (launch.seed != 0) std::shuffle(order.begin(), order.end(), random);
    RaceDetector races;
    Block block{launch, 0, {}, 0, races, counters, {0, 0}, std::vector<uint64_t>(launch.kernel->body.size())};
    for (unsigned number : order) {
        block.number = number;
        block.barriers = 0;
        block.shared.assign(launch.kernel->static_shared + launch.dynamic_shared, static_cast<char>(0xA5));
        races.forget_shared();
        run_block(block, random);
    }
    *profile = block.profile;
}

}  // namespace ptx
