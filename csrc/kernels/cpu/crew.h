// Threads that help with one call, kept for the next.
#pragma once

#include <condition_variable>
#include <functional>

namespace stea {

struct Helper;  // one thread

// Runs a function on other threads until joined.
//
// The threads are not ended with the call: they wait some seconds for the next one. Where other programs keep the
// processors busy, a new thread is often put on the processor of its maker and first runs after some milliseconds,
// which is longer than a call may take. One that wakes up is back where it was within microseconds.
class Crew {
  public:
    // Calls work(worker) for worker = 1 ... helpers, each on a thread of its own; fewer where the system gives no
    // more threads. `work` must not throw, and must stay valid until join() returns.
    Crew(int helpers, const std::function<void(int worker)>& work);
    ~Crew() { join(); }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // Waits until all calls have returned.
    void join();

  private:
    friend struct Helper;
    const std::function<void(int worker)>& work_;
    int running_ = 0;  // guarded by the mutex of the idle threads
    std::condition_variable done_;
};

}  // namespace stea
