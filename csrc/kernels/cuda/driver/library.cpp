#include "library.h"

#include <dlfcn.h>

namespace stea::cuda::driver {
namespace {

template <typename Pointer>
bool find(void* handle, const char* name, Pointer* function) {
    *function = reinterpret_cast<Pointer>(dlsym(handle, name));
    return *function != nullptr;
}

// Devices are numbers from 0 in the driver as well, so cuDeviceGet is not needed.
Library opened() {
    Library found{};
    found.started = kNoDriver;
    void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return found;
    const bool complete =
        find(handle, "cuInit", &found.init) && find(handle, "cuDriverGetVersion", &found.driver_version) &&
        find(handle, "cuDeviceGetCount", &found.device_count) && find(handle, "cuDeviceGetName", &found.device_name) &&
        find(handle, "cuDeviceGetAttribute", &found.device_attribute) &&
        find(handle, "cuDevicePrimaryCtxRetain", &found.retain_context) &&
        find(handle, "cuCtxGetDevice", &found.context_device) && find(handle, "cuCtxSetCurrent", &found.make_current) &&
        find(handle, "cuModuleLoadData", &found.load_module) &&
        find(handle, "cuModuleGetFunction", &found.find_function) && find(handle, "cuLaunchKernel", &found.launch) &&
        find(handle, "cuGetErrorName", &found.error_name) && find(handle, "cuGetErrorString", &found.error_text);
    if (complete) found.started = found.init(0);
    return found;
}

}  // namespace

const Library& library() {
    static const Library found = opened();
    return found;
}

}  // namespace stea::cuda::driver
