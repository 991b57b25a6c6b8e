// Spreads numbered tasks over threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace stea {

// What the threads of one call share. It outlives the call where a thread starts too late.
class TaskQueue {
  public:
    using Task = std::function<void(int worker, int64_t number)>;

    TaskQueue(int64_t count, const Task& task) : count_(count), task_(&task) {}

    // Takes part in the work, unless it is over.
    void help(int worker) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (closed_) return;
            ++helpers_;
        }
        work(worker);
        const std::lock_guard<std::mutex> lock(mutex_);
        --helpers_;
        idle_.notify_all();
    }

    void work(int worker) {
        try {
            for (int64_t number = next_++; number < count_; number = next_++) (*task_)(worker, number);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!error_) error_ = std::current_exception();
            next_ = count_;
        }
    }

    // Lets nobody else in and waits for those who are.
    void close() {
        std::unique_lock<std::mutex> lock(mutex_);
        closed_ = true;
        idle_.wait(lock, [this] { return helpers_ == 0; });
        if (error_) std::rethrow_exception(error_);
    }

  private:
    const int64_t count_;
    const Task* task_;  // valid until close() returns
    std::atomic<int64_t> next_{0};
    std::mutex mutex_;
    std::condition_variable idle_;
    int helpers_ = 0;
    bool closed_ = false;
    std::exception_ptr error_;
};

// Calls task(worker, number) once for every number below `count`; the first exception is rethrown at the end.
//
// A thread that the system starts late is not waited for: right after a matrix product the threads of the BLAS
// are still spinning on the other processors, and a new thread may get none before the work is done.
inline void parallel_tasks(int64_t count, int n_threads, const TaskQueue::Task& task) {
    const auto queue = std::make_shared<TaskQueue>(count, task);
    try {
        for (int worker = 1; worker < n_threads && worker < count; ++worker) {
            std::thread([queue, worker] { queue->help(worker); }).detach();
        }
    } catch (const std::system_error&) {
        // The system gives no more threads: those that started, and this one, do the work.
    }
    queue->work(0);
    queue->close();
}

}  // namespace stea
