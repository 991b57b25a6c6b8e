// The same arithmetic on every thread.
#pragma once

#include <cfenv>

namespace stea {

// While it lives, the calling thread keeps denormal numbers and rounds to the nearest, whatever else it was told: a
// program may have had them flushed to zero on one thread (torch.set_flush_denormal), and threads inherit it from their
// maker, but no result may depend on which thread computed a row.
class StandardFloats {
  public:
    StandardFloats() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~StandardFloats() { std::fesetenv(&before_); }
    StandardFloats(const StandardFloats&) = delete;
    StandardFloats& operator=(const StandardFloats&) = delete;

  private:
    std::fenv_t before_;
};

}  // namespace stea
