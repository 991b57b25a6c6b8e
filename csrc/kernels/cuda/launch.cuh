// The two places where CUDA's syntax is not C++: a launch, and shared memory sized by it. A test harness that runs the
// kernels on a CPU defines both before this file is read; everything else in the .cu files compiles as C++.
#pragma once

#ifndef STEA_LAUNCH
#define STEA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#define STEA_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif
