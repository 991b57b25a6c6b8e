// All CUDA sources as one C++ translation unit, found under the folder that -I names: the real one or a changed copy.
#include "cuda_on_cpu.h"
// The sources come after the header that makes them C++.
#include "kernels/cuda/device.cu"
#include "kernels/cuda/evidence.cu"
#include "kernels/cuda/mutual_best.cu"
#include "kernels/cuda/relation_counts.cu"
