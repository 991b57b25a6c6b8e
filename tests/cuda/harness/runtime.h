// The part of the CUDA runtime that the launchers use, over host memory, as strict as a machine with two GPUs.
//
// Memory of a device can be touched only while a kernel runs on that device: at all other times its pages are
// protected. A launch must go to the stream that it was told, on a grid that a GPU takes. Every call can be made to
// fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

using cudaError_t = int;
enum CudaErrors : int {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalAddress = 700,
};
using cudaStream_t = struct CUstream_st*;
struct cudaDeviceProp {
    char name[256];
    int major;
    int minor;
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);

namespace cuda_on_cpu {

constexpr int kDevices = 2;
constexpr size_t kPageSize = 4096;

// What a launch runs with; set between launches.
struct Settings {
    unsigned seed = 0;    // 0: threads in order; else a permuted schedule
    int workers = 1;      // threads of the host that run blocks
    int device_type = 1;  // DLPack's number of the memory: that of the host, or of a GPU as which it poses
    int capability = 90;  // of all devices
};
Settings& settings();

// The n-th call of this name from now on fails with this error. Cleared by an empty name.
void fail_call(const std::string& call, cudaError_t error, int n = 1);
// Makes the runtime report a kernel that went wrong.
void set_last_error(cudaError_t error);

int current_device();
void make_current(int device);  // as somebody else may, without giving it a context
// Bits of the devices on which something was done: they have a context.
unsigned contexts();
void forget_contexts();

// Launches must come on this stream from now on; null: on any.
void expect_stream(const void* stream);
// For launch(): what is wrong with a stream, if anything.
std::string stream_complaint(const void* stream);

// Memory of a device, protected until a kernel runs there; never given back.
void* device_memory(int device, size_t bytes);
// The addresses [first, second) of the allocation that holds an address; none: 0 and 0.
std::pair<uint64_t, uint64_t> allocation_of(const void* address);
// While it lives, the memory of this device can be touched.
class DeviceAccess {
  public:
    explicit DeviceAccess(int device);
    ~DeviceAccess();
    DeviceAccess(const DeviceAccess&) = delete;
    DeviceAccess& operator=(const DeviceAccess&) = delete;

  private:
    int device_;
};
// From here on touching protected memory ends the process with a report.
void report_touched_memory();

}  // namespace cuda_on_cpu

#define STEA_DLPACK_DEVICE_TYPE (::cuda_on_cpu::settings().device_type)
