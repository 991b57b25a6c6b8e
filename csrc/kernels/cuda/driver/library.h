// The functions of the driver's library that are used here, found at run time: nothing is linked to it.
#pragma once

#include <cstddef>

namespace stea::cuda::driver {

using Result = int;  // CUresult; 0 is success
using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using DriverStream = struct CUstream_st*;

constexpr Result kNoContext = 201;       // CUDA_ERROR_INVALID_CONTEXT
constexpr Result kNoDriver = 35;         // cudaErrorInsufficientDriver: also what the runtime says without a driver
constexpr Result kNoKernel = 500;        // CUDA_ERROR_NOT_FOUND
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR

struct Library {
    Result (*init)(unsigned flags);
    Result (*driver_version)(int* version);
    Result (*device_count)(int* count);
    Result (*device_name)(char* name, int size, int device);
    Result (*device_attribute)(int* value, int attribute, int device);
    Result (*retain_context)(Context* context, int device);
    Result (*context_device)(int* device);
    Result (*make_current)(Context context);
    Result (*load_module)(Module* module, const void* image);
    Result (*find_function)(Function* function, Module module, const char* name);
    Result (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared_bytes, DriverStream stream, void** parameters,
                     void** extra);
    Result (*error_name)(Result error, const char** name);
    Result (*error_text)(Result error, const char** text);
    Result started;  // what cuInit said; kNoDriver where there is no library
};

const Library& library();

}  // namespace stea::cuda::driver
