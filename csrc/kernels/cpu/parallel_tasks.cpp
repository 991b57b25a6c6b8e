#include "parallel_tasks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "crew.h"
#include "standard_floats.h"

namespace stea {

void parallel_tasks(int64_t count, int n_threads, const NumberedTask& task) {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    const std::function<void(int)> work = [&](int worker) {
        const StandardFloats standard;
        try {
            for (int64_t number = next++; number < count; number = next++) task(worker, number);
        } catch (const std::exception&) {  // not what unwinds a thread that is being ended
            const std::lock_guard<std::mutex> lock(mutex);
            if (!error) error = std::current_exception();
            next = count;
        }
    };
    Crew crew(static_cast<int>(std::min<int64_t>(n_threads, count)) - 1, work);
    work(0);
    crew.join();
    if (error) std::rethrow_exception(error);
}

void parallel_tasks(int64_t count, int n_threads, const NumberedTask& task, const Poll& poll) {
    std::atomic<bool> stopped{false};
    Watch watch(poll);
    parallel_tasks(count, n_threads, [&](int worker, int64_t number) {
        if (worker == 0 && watch.asks_to_stop()) stopped = true;
        if (!stopped) task(worker, number);
    });
    if (stopped) throw Interrupted{};
}

}  // namespace stea
