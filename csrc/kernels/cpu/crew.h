// The threads of all native code: they help with one call and are kept for the next.
#pragma once

#include <condition_variable>
#include <functional>
#include <vector>

namespace stea {

struct Helper;  // one thread

// Runs a function on other threads until joined.
//
// The threads are not ended with the call: they wait some seconds for the next one. Where other programs keep the
// processors busy, a new thread is often put on the processor of its maker and first runs after some milliseconds,
// which is longer than a call may take. One that wakes up is back where it was within microseconds.
//
// A thread that the system has not yet given a processor when the call ends is not waited for: right after a matrix
// product the threads of the BLAS are still spinning, and others may get no processor before the work is done.
class Crew {
  public:
    // Calls work(worker) for worker = 1 ... helpers, each on a thread of its own; fewer where the system gives no
    // more threads, or gives them too late. `work` must not throw, and must stay valid until join() returns.
    Crew(int helpers, const std::function<void(int worker)>& work);
    ~Crew() { join(); }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // Takes back what has not begun, and waits until all calls that have begun have returned.
    void join();

  private:
    friend struct Helper;
    const std::function<void(int worker)>& work_;
    std::vector<Helper*> not_begun_;  // guarded by the mutex of the idle threads, as is the number
    int running_ = 0;
    std::condition_variable done_;
};

}  // namespace stea
