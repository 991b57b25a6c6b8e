#include "parallel_rows.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "crew.h"
#include "standard_floats.h"

namespace stea {
namespace {

constexpr int64_t kChunk = 64;
constexpr int64_t kHubDegree = 1024;

class Run {
  public:
    Run(const GraphView& graph, RowRange rows, const RowTask& task, const WorkerTask& finish)
        : graph_(graph), rows_(rows), task_(task), finish_(finish) {
        for (int64_t row = rows.begin; row < rows.end; ++row) {
            if (is_hub(row)) hubs_.push_back(row);
        }
        std::stable_sort(hubs_.begin(), hubs_.end(), [this](int64_t a, int64_t b) { return degree(a) > degree(b); });
    }

    template <typename BetweenSteps>
    void work(int worker, BetweenSteps&& between_steps) {
        const StandardFloats standard;
        try {
            while (!stop_ && step(worker)) between_steps();
            if (!stop_) finish_(worker);
        } catch (const std::exception&) {  // not what unwinds a thread that is being ended
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!error_) error_ = std::current_exception();
            stop_ = true;
        }
    }

    void stop() { stop_ = true; }

    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

  private:
    int64_t degree(int64_t row) const { return graph_.indptr[row + 1] - graph_.indptr[row]; }
    bool is_hub(int64_t row) const { return degree(row) >= kHubDegree; }

    bool step(int worker) {
        const int64_t hub = next_hub_.fetch_add(1);
        if (hub < static_cast<int64_t>(hubs_.size())) {
            task_(worker, hubs_[static_cast<size_t>(hub)]);
            return true;
        }
        const int64_t begin = rows_.begin + next_chunk_.fetch_add(1) * kChunk;
        const int64_t end = std::min(begin + kChunk, rows_.end);
        for (int64_t row = begin; row < end; ++row) {
            if (!is_hub(row)) task_(worker, row);
        }
        return end < rows_.end;
    }

    const GraphView graph_;
    const RowRange rows_;
    const RowTask& task_;
    const WorkerTask& finish_;
    std::vector<int64_t> hubs_;
    std::atomic<int64_t> next_hub_{0};
    std::atomic<int64_t> next_chunk_{0};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace

void parallel_rows(const GraphView& graph, RowRange rows, int n_threads, const RowTask& task, const WorkerTask& finish,
                   const Poll& poll) {
    Run run(graph, rows, task, finish);
    const int64_t chunks = (rows.end - rows.begin + kChunk - 1) / kChunk;
    const std::function<void(int)> help = [&run](int worker) { run.work(worker, [] {}); };
    Crew crew(static_cast<int>(std::min<int64_t>(n_threads, chunks)) - 1, help);
    bool interrupted = false;
    Watch watch(poll);
    run.work(0, [&] {
        if (!watch.asks_to_stop()) return;
        interrupted = true;
        run.stop();
    });
    crew.join();
    run.rethrow();
    if (interrupted) throw Interrupted{};
}

}  // namespace stea
