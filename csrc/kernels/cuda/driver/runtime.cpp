// The few functions of the CUDA runtime that the launchers use, over the driver, and launches by name.
#include <map>
#include <mutex>

#include "host.h"
// What makes CUDA's names known comes first.
#include "../check.cuh"
#include "library.h"
#include "loading.h"

namespace stea::cuda::driver {
namespace {

std::mutex mutex;
std::map<int, Context> contexts;                        // the primary context of every device that was used
std::map<int, std::map<std::string, Function>> loaded;  // kernels by device and name
thread_local Result last_error = 0;

Result noted(Result result) {
    if (result != 0) last_error = result;
    return result;
}

// "... [with auto* kernel = ...]": the last name in the kernel's qualified one, template arguments included.
std::string kernel_in(const std::string& signature) {
    const size_t begin = signature.find("kernel = ") + 9, end = signature.find_first_of(";]", begin);
    const std::string qualified = signature.substr(begin, end - begin);
    const size_t colons = qualified.rfind("::", qualified.find('<'));
    return colons == std::string::npos ? qualified : qualified.substr(colons + 2);
}

Result context_of(int device, Context* context) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = contexts.find(device);
    if (found != contexts.end()) {
        *context = found->second;
        return 0;
    }
    const Result result = library().retain_context(context, device);
    if (result == 0) contexts[device] = *context;
    return result;
}

Function function_of(int device, const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = loaded.find(device);
    if (found == loaded.end()) return nullptr;
    const auto function = found->second.find(name);
    return function == found->second.end() ? nullptr : function->second;
}

}  // namespace

std::vector<std::string>& kernel_names() {
    static std::vector<std::string> names;
    return names;
}

size_t note_kernel(const std::string& signature) {
    kernel_names().push_back(kernel_in(signature));
    return kernel_names().size() - 1;
}

void load_kernels(int device, const std::string& image,
                  const std::vector<std::pair<std::string, std::string>>& entries) {
    const DeviceGuard guard(device);
    Module module = nullptr;
    check(library().load_module(&module, image.c_str()), "cuModuleLoadData");
    std::map<std::string, Function> functions;
    for (const auto& [name, entry] : entries) {
        check(library().find_function(&functions[name], module, entry.c_str()), "cuModuleGetFunction");
    }
    const std::lock_guard<std::mutex> lock(mutex);
    loaded[device] = std::move(functions);
}

void launch(size_t kernel, const dim3& grid, const dim3& block, size_t shared_bytes, cudaStream_t stream,
            void** parameters) {
    int device = -1;
    if (noted(cudaGetDevice(&device)) != 0) return;
    const Function function = function_of(device, kernel_names()[kernel]);
    if (function == nullptr) {
        noted(kNoKernel);
        return;
    }
    noted(library().launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                           static_cast<unsigned>(shared_bytes), stream, parameters, nullptr));
}

}  // namespace stea::cuda::driver

namespace driver = stea::cuda::driver;

const char* cudaGetErrorName(cudaError_t error) {
    const char* name = nullptr;
    if (error == driver::kNoDriver) return "no driver";
    return driver::library().error_name(error, &name) == 0 && name != nullptr ? name : "unknown error";
}

const char* cudaGetErrorString(cudaError_t error) {
    const char* text = nullptr;
    if (error == driver::kNoDriver) return "there is no libcuda.so.1, or it is too old";
    return driver::library().error_text(error, &text) == 0 && text != nullptr ? text : "not known to the driver";
}

cudaError_t cudaGetLastError() { return std::exchange(driver::last_error, 0); }

cudaError_t cudaGetDeviceCount(int* count) {
    const driver::Result started = driver::library().started;
    return started != 0 ? started : driver::library().device_count(count);
}

cudaError_t cudaGetDevice(int* device) {
    const driver::Result result = driver::library().context_device(device);
    if (result == driver::kNoContext) *device = -1;
    return result == driver::kNoContext ? cudaSuccess : result;
}

cudaError_t cudaSetDevice(int device) {
    driver::Context context = nullptr;
    const driver::Result result = device < 0 ? 0 : driver::context_of(device, &context);
    return result != 0 ? result : driver::library().make_current(context);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    const driver::Library& library = driver::library();
    driver::Result result = library.device_name(properties->name, sizeof(properties->name), device);
    if (result == 0) result = library.device_attribute(&properties->major, driver::kMajor, device);
    return result != 0 ? result : library.device_attribute(&properties->minor, driver::kMinor, device);
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = 0;
    return driver::library().started == driver::kNoDriver ? cudaSuccess : driver::library().driver_version(version);
}
