// Errors of the CUDA runtime as exceptions with the call's name, and memory that lives as long as the work on a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace stea::cuda {

inline cudaStream_t as_stream(Stream stream) { return static_cast<cudaStream_t>(stream); }

// Throws CudaError("<call>: <name>: <text>"). An error that destroys the context is remembered, and every later
// DeviceGuard refuses to work in it.
void check(cudaError_t error, const char* call);

// After a launch: errors of its configuration, and those that earlier work left behind.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

// `count` elements of the stream-ordered allocator, given back in stream order.
void* allocate(size_t bytes, const char* call, cudaStream_t stream);
void release(void* memory, cudaStream_t stream) noexcept;

template <typename T>
class Scratch {
  public:
    Scratch(size_t count, const char* call, cudaStream_t stream)
        : data_(static_cast<T*>(allocate(count * sizeof(T), call, stream))),
          bytes_(count * sizeof(T)),
          stream_(stream) {}
    ~Scratch() { release(data_, stream_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    T* data() const { return data_; }
    void clear() { check(cudaMemsetAsync(data_, 0, bytes_, stream_), "cudaMemsetAsync"); }

  private:
    T* data_;
    size_t bytes_;
    cudaStream_t stream_;
};

}  // namespace stea::cuda
