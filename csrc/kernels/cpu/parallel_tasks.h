// Spreads numbered tasks over threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace stea {

// Calls task(worker, number) once for every number below `count`; the first exception is rethrown at the end.
template <typename Task>
void parallel_tasks(int64_t count, int n_threads, Task&& task) {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    const auto work = [&](int worker) {
        try {
            for (int64_t number = next++; number < count; number = next++) task(worker, number);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (!error) error = std::current_exception();
            next = count;
        }
    };
    std::vector<std::thread> helpers;
    try {
        for (int worker = 1; worker < n_threads && worker < count; ++worker) helpers.emplace_back(work, worker);
    } catch (const std::system_error&) {
        // The system gives no more threads: those that started, and this one, do the work.
    }
    work(0);
    for (std::thread& helper : helpers) helper.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace stea
