#include "crew.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stea {

constexpr auto kPatience = std::chrono::seconds(10);

struct Idle {
    const pid_t process = getpid();
    std::mutex mutex;
    std::vector<Helper*> helpers;  // the one that waits for the shortest time last: its caches are warmest
};

namespace {

// Of this process: a fork has none of the threads, and perhaps a locked mutex. Never deleted, because the threads may
// outlive everything else.
Idle& idle_threads() {
    static std::atomic<Idle*> current{nullptr};
    Idle* known = current.load();
    while (known == nullptr || known->process != getpid()) {
        auto* made = new Idle;
        if (current.compare_exchange_strong(known, made)) return *made;
        delete made;
    }
    return *known;
}

}  // namespace

// One thread, from its first call on. It is on the list of the idle ones exactly while it has no crew.
struct Helper {
    Crew* crew;  // guarded by the mutex of the idle threads
    int worker;
    std::condition_variable wake;

    void serve(Idle& idle) {
        std::unique_lock<std::mutex> lock(idle.mutex);
        while (wake.wait_for(lock, kPatience, [this] { return crew != nullptr; })) {
            begin();
            lock.unlock();
            crew->work_(worker);
            lock.lock();
            // Idle before the crew hears of the end: its next call finds this thread.
            idle.helpers.push_back(this);
            if (--crew->running_ == 0) crew->done_.notify_one();
            crew = nullptr;
        }
        idle.helpers.erase(std::find(idle.helpers.begin(), idle.helpers.end(), this));
    }

    void begin() {
        std::vector<Helper*>& waiting = crew->not_begun_;
        waiting.erase(std::find(waiting.begin(), waiting.end(), this));
        ++crew->running_;
    }
};

namespace {

// A new thread that will find its crew, or nothing where the system gives no more threads.
Helper* start_thread(Idle& idle, Crew* crew, int worker) {
    try {
        std::unique_ptr<Helper> helper(new Helper{crew, worker, {}});
        std::thread([&idle, raw = helper.get()] {
            const std::unique_ptr<Helper> owned(raw);
            owned->serve(idle);
        }).detach();
        return helper.release();
    } catch (const std::exception&) {  // no more threads, or no memory for one
        return nullptr;
    }
}

}  // namespace

Crew::Crew(int helpers, const std::function<void(int worker)>& work) : work_(work) {
    if (helpers <= 0) return;
    not_begun_.reserve(static_cast<size_t>(helpers));
    Idle& idle = idle_threads();
    const std::lock_guard<std::mutex> lock(idle.mutex);
    for (int worker = 1; worker <= helpers; ++worker) {
        Helper* helper = nullptr;
        if (idle.helpers.empty()) {
            helper = start_thread(idle, this, worker);
            if (helper == nullptr) return;
        } else {
            helper = idle.helpers.back();
            idle.helpers.pop_back();
            helper->crew = this;
            helper->worker = worker;
            helper->wake.notify_one();
        }
        not_begun_.push_back(helper);
    }
}

void Crew::join() {
    Idle& idle = idle_threads();
    std::unique_lock<std::mutex> lock(idle.mutex);
    for (Helper* helper : not_begun_) {
        helper->crew = nullptr;
        idle.helpers.push_back(helper);
    }
    not_begun_.clear();
    done_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace stea
