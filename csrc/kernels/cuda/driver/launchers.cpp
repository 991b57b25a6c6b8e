// The launchers of all kernels as one C++ translation unit, without the kernels.
#include "host.h"
// The sources come after the header that makes them C++.
#include "../device.cu"
#include "../evidence.cu"
#include "../mutual_best.cu"
#include "../relation_counts.cu"
