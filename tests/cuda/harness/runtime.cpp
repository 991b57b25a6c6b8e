#include "runtime.h"

#include <cstring>
#include <map>
#include <mutex>

namespace cuda_on_cpu {
namespace {

std::mutex mutex;
std::string failing_call;
int calls_until_failure = 0;
cudaError_t failure = cudaSuccess;
cudaError_t last_error = cudaSuccess;
unsigned touched_devices = 0;
const void* expected_stream = nullptr;
thread_local int current = 0;

cudaError_t result_of(const char* call) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (failing_call != call || --calls_until_failure > 0) return cudaSuccess;
    failing_call.clear();
    return failure;
}

}  // namespace

Settings& settings() {
    static Settings now;
    return now;
}

void fail_call(const std::string& call, cudaError_t error, int n) {
    const std::lock_guard<std::mutex> lock(mutex);
    failing_call = call;
    failure = error;
    calls_until_failure = n;
}

void set_last_error(cudaError_t error) { last_error = error; }
int current_device() { return current; }
void make_current(int device) { current = device; }
unsigned contexts() { return touched_devices; }
void forget_contexts() { touched_devices = 0; }
void expect_stream(const void* stream) { expected_stream = stream; }

std::string stream_complaint(const void* stream) {
    touched_devices |= 1u << current;
    if (expected_stream == nullptr || stream == expected_stream) return "";
    return "the kernel was launched on another stream than the caller's";
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cudaGetErrorName(cudaError_t error) {
    static std::map<int, std::string> names = {
        {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
        {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
        {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration"},
        {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver"},
        {cudaErrorInvalidDevice, "cudaErrorInvalidDevice"},
        {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle"},
        {cudaErrorIllegalAddress, "cudaErrorIllegalAddress"},
    };
    const std::lock_guard<std::mutex> lock(mutex);
    std::string& name = names[error];
    if (name.empty()) name = "cudaError" + std::to_string(error);
    return name.c_str();
}

const char* cudaGetErrorString(cudaError_t) { return "simulated"; }

// As in CUDA: what destroys a context stays, all else is forgotten once it has been told.
cudaError_t cudaGetLastError() {
    const cudaError_t injected = result_of("cudaGetLastError");
    const cudaError_t error = injected != cudaSuccess ? injected : last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = kDevices;
    return result_of("cudaGetDeviceCount");
}

cudaError_t cudaGetDevice(int* device) {
    *device = current;
    return result_of("cudaGetDevice");
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= kDevices) return cudaErrorInvalidDevice;
    const cudaError_t error = result_of("cudaSetDevice");
    if (error != cudaSuccess) return error;
    current = device;
    touched_devices |= 1u << device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device < 0 || device >= kDevices) return cudaErrorInvalidDevice;
    const int capability = settings().capability;
    *properties = {"CPU", capability / 10, capability % 10};
    return result_of("cudaGetDeviceProperties");
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = 13000;
    return result_of("cudaDriverGetVersion");
}
