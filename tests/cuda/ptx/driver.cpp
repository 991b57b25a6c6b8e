// A libcuda.so.1 without a GPU: two devices newer than every compiler, which take PTX and execute it here.
#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "machine.h"

namespace {

constexpr int kDevices = 2, kMajor = 75, kCapability = 13, kNoContext = 201, kInvalidImage = 200, kNotFound = 500;
constexpr int kLaunchFailed = 719;
thread_local intptr_t current = 0;  // number of the device and one; 0: none

using Kernels = std::map<std::string, ptx::Kernel>;

std::vector<char> packed(const ptx::Kernel& kernel, void** parameters) {
    std::vector<char> all;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
        all.resize(kernel.parameters[i].offset);
        const char* value = static_cast<const char*>(parameters[i]);
        all.insert(all.end(), value, value + kernel.parameters[i].bytes);
    }
    return all;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = kDevices, 0; }
int cuDeviceGetName(char* name, int size, int) { return std::strncpy(name, "interpreter", size), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == kMajor ? kCapability : 0, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
    return *context = reinterpret_cast<void*>(static_cast<intptr_t>(device + 1)), 0;
}
int cuCtxGetDevice(int* device) {
    if (current == 0) return kNoContext;
    return *device = static_cast<int>(current - 1), 0;
}
int cuCtxSetCurrent(void* context) { return current = reinterpret_cast<intptr_t>(context), 0; }
int cuGetErrorName(int error, const char** name) {
    return *name = error == kNotFound ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR", 0;
}
int cuGetErrorString(int, const char** text) { return *text = "said by the interpreter", 0; }

int cuModuleLoadData(void** module, const void* image) {
    try {
        *module = new Kernels(ptx::parse(static_cast<const char*>(image), "image"));
        return 0;
    } catch (const std::exception&) {
        return kInvalidImage;
    }
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
    for (auto& each : *static_cast<Kernels*>(module)) {
        if (each.second.mangled != name) continue;
        *function = &each.second;
        return 0;
    }
    return kNotFound;
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void*, void** parameters, void**) {
    const auto& kernel = *static_cast<ptx::Kernel*>(function);
    const auto everything = [](uint64_t) { return ptx::Extent{1, uint64_t{1} << 60}; };
    const ptx::Launch launch{&kernel,
                             {grid_x, grid_y, grid_z},
                             {block_x, block_y, block_z},
                             shared_bytes,
                             packed(kernel, parameters),
                             1,
                             everything,
                             true};
    ptx::Counters counters;
    std::vector<uint64_t> profile;
    try {
        ptx::run(launch, counters, &profile);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return kLaunchFailed;
    }
    std::fprintf(stderr, "executed %s on %d\n", kernel.name.c_str(), static_cast<int>(current - 1));
    return 0;
}

}  // extern "C"
