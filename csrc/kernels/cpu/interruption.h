// How a long call is ended from outside.
#pragma once

#include <chrono>
#include <functional>

namespace stea {

// Thrown in the calling thread, after all others have ended, when the poll asked to stop.
struct Interrupted {};

// True asks to stop. Called from the calling thread only, about ten times a second.
using Poll = std::function<bool()>;

// Asks the poll when it is time to.
class Watch {
  public:
    explicit Watch(const Poll& poll) : poll_(poll), last_(std::chrono::steady_clock::now()) {}

    bool asks_to_stop() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return false;
        last_ = now;
        return poll_();
    }

  private:
    const Poll& poll_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace stea
