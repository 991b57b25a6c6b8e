#include "crew.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
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

// One thread, from its first call on.
struct Helper {
    Crew* crew;
    int worker;
    std::condition_variable wake;

    void serve(Idle& idle) {
        do {
            crew->work_(worker);
        } while (next_call(idle));
    }

    // Idle before the crew hears of the end: its next call finds this thread.
    bool next_call(Idle& idle) {
        std::unique_lock<std::mutex> lock(idle.mutex);
        idle.helpers.push_back(this);
        if (--crew->running_ == 0) crew->done_.notify_one();
        crew = nullptr;
        if (wake.wait_for(lock, kPatience, [this] { return crew != nullptr; })) return true;
        idle.helpers.erase(std::find(idle.helpers.begin(), idle.helpers.end(), this));
        return false;
    }
};

Crew::Crew(int helpers, const std::function<void(int worker)>& work) : work_(work) {
    Idle& idle = idle_threads();
    const std::lock_guard<std::mutex> lock(idle.mutex);
    for (int worker = 1; worker <= helpers; ++worker) {
        if (!idle.helpers.empty()) {
            Helper& helper = *idle.helpers.back();
            idle.helpers.pop_back();
            helper.crew = this;
            helper.worker = worker;
            helper.wake.notify_one();
        } else {
            try {
                std::thread([this, worker, &idle] { Helper{this, worker, {}}.serve(idle); }).detach();
            } catch (const std::system_error&) {
                return;
            }
        }
        ++running_;
    }
}

void Crew::join() {
    std::unique_lock<std::mutex> lock(idle_threads().mutex);
    done_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace stea
