// The same arithmetic on every thread.
#pragma once

#include <cfenv>
#include <cstdint>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

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

// While it lives, denormal numbers are zero for the calling thread, as operands and as results; for kernels that are
// not exact anyway.
class FlushedDenormals {
  public:
#if defined(__SSE__)
    FlushedDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kResults | kOperands); }
    ~FlushedDenormals() { _mm_setcsr(before_); }

  private:
    static constexpr uint32_t kResults = 0x8000;
    static constexpr uint32_t kOperands = 0x0040;
    uint32_t before_;
#elif defined(__aarch64__)
    FlushedDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(before_ | kBoth));
    }
    ~FlushedDenormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

  private:
    static constexpr uint64_t kBoth = uint64_t{1} << 24;
    uint64_t before_;
#else
    FlushedDenormals() {}  // slower, but the same to within the least normal number
    ~FlushedDenormals() {}
#endif
  public:
    FlushedDenormals(const FlushedDenormals&) = delete;
    FlushedDenormals& operator=(const FlushedDenormals&) = delete;
};

}  // namespace stea
