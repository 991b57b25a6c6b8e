#include <cmath>

#include "check.cuh"
#include "launch.cuh"
#include "mutual_best.h"
#include "warp.cuh"

namespace stea::cuda {
namespace {

constexpr int32_t kNone = -1;

template <typename Score>
struct Best {
    int32_t place;  // in the row; the row's length for none
    Score score;

    __device__ bool beats(const Best& other) const {
        return score > other.score || (score == other.score && place < other.place);
    }
};

template <typename Score>
__device__ Best<Score> better(const Best<Score>& a, const Best<Score>& b) {
    return b.beats(a) ? b : a;
}

// A warp per row.
template <typename Score>
__global__ void best_of_rows(RankingView<Score> ranking, int32_t* best, Score* best_score) {
    const int64_t row = warp_in_grid();
    if (row >= ranking.rows) return;
    const Best<Score> none{static_cast<int32_t>(ranking.k), static_cast<Score>(-INFINITY)};
    Best<Score> mine = none;
    for (int64_t c = lane_id(); c < ranking.k; c += kWarp) {
        if (ranking.indices[row * ranking.k + c] < 0) continue;
        mine = better(mine, Best<Score>{static_cast<int32_t>(c), ranking.scores[row * ranking.k + c]});
    }
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        const Best<Score> other{__shfl_xor_sync(kAllLanes, mine.place, distance),
                                __shfl_xor_sync(kAllLanes, mine.score, distance)};
        mine = better(mine, other);
    }
    if (lane_id() != 0) return;
    best[row] = mine.place == none.place ? kNone : ranking.indices[row * ranking.k + mine.place];
    best_score[row] = mine.score;
}

// A thread per source row.
template <typename Score>
__global__ void returned_choices(MutualArgs<Score> args) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= args.forward.rows) return;
    const int32_t choice = args.best[row];
    const bool returned = choice != kNone && choice < args.backward.rows && args.best_back[choice] == row;
    args.partner[row] = returned ? choice : kNone;
    const Score zero = 0;
    args.value[row] = zero;
    if (!returned) return;
    const Score there = fmax(args.best_score[row], zero), back = fmax(args.best_back_score[choice], zero);
    args.value[row] = static_cast<Score>(sqrt(there * back));
}

template <typename Score>
void find_best(const RankingView<Score>& ranking, int32_t* best, Score* score, int block_size, cudaStream_t stream) {
    if (ranking.rows == 0) return;
    const int64_t warps = block_size / kWarp;
    STEA_LAUNCH(best_of_rows<Score>, static_cast<unsigned>((ranking.rows + warps - 1) / warps), block_size, 0, stream,
                ranking, best, score);
    check_launch("mutual_best: best_of_rows");
}

}  // namespace

template <typename Score>
void run_mutual_best(const MutualArgs<Score>& args, int block_size, Stream handle) {
    if (args.forward.rows == 0) return;
    const cudaStream_t stream = as_stream(handle);
    find_best(args.forward, args.best, args.best_score, block_size, stream);
    find_best(args.backward, args.best_back, args.best_back_score, block_size, stream);
    const int64_t blocks = (args.forward.rows + block_size - 1) / block_size;
    STEA_LAUNCH(returned_choices<Score>, static_cast<unsigned>(blocks), block_size, 0, stream, args);
    check_launch("mutual_best: returned_choices");
}

template void run_mutual_best<float>(const MutualArgs<float>&, int, Stream);
template void run_mutual_best<double>(const MutualArgs<double>&, int, Stream);

}  // namespace stea::cuda
