#include "host_checks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "../../../csrc/kernels/cuda/device.h"
#include "../../../csrc/kernels/cuda/mutual_best.h"
#include "runtime.h"

namespace {

using namespace stea::cuda;

// One call as the bindings make it: two rows that choose each other crosswise.
struct Call {
    int device;
    void* stream;

    template <typename T>
    T* on_device(std::initializer_list<T> values) const {
        T* memory = static_cast<T*>(cuda_on_cpu::device_memory(device, values.size() * sizeof(T)));
        const cuda_on_cpu::DeviceAccess access(device);
        std::memcpy(memory, values.begin(), values.size() * sizeof(T));
        return memory;
    }

    // What went wrong, or "" and the partners that were found.
    std::string run(std::string* partners) const {
        const MutualArgs<float> args{{on_device<int32_t>({1, 0}), on_device<float>({1.0f, 1.0f}), 2, 1},
                                     {on_device<int32_t>({1, 0}), on_device<float>({1.0f, 1.0f}), 2, 1},
                                     on_device<int32_t>({7, 7}),
                                     on_device<float>({7, 7}),
                                     on_device<int32_t>({7, 7}),
                                     on_device<float>({7, 7}),
                                     on_device<int32_t>({7, 7}),
                                     on_device<float>({7, 7})};
        try {
            const DeviceGuard guard(device);
            run_mutual_best(args, 32, stream);
        } catch (const CudaError& error) {
            return error.what();
        }
        const cuda_on_cpu::DeviceAccess access(device);
        *partners = std::to_string(args.partner[0]) + std::to_string(args.partner[1]);
        return "";
    }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What is wrong after this call of the runtime failed in this way; "" if all is as it should be.
std::string complaint_about(const char* name, int nth, cudaError_t error, bool is_sticky, void* stream) {
    const Call call{1, stream};
    std::string partners;
    cuda_on_cpu::fail_call(name, error, nth);
    const std::string first = call.run(&partners);
    if (!contains(first, "cudaError")) return "the failure was not reported: " + first;
    if (contains(first, "no longer be used") != is_sticky) return "the context was misjudged: " + first;
    if (cuda_on_cpu::current_device() != 0) return "the former device is not current again";
    const std::string second = call.run(&partners);
    if (is_sticky) return contains(second, "destroyed by an earlier error") ? "" : "the context was used again";
    return second.empty() && partners == "10" ? "" : "the next call failed: " + second + ", partners " + partners;
}

// Only the device that was asked for gets a context, and it is current only meanwhile.
std::string stray_context(void* stream) {
    std::string partners;
    cuda_on_cpu::forget_contexts();
    const std::string error = Call{0, stream}.run(&partners);
    if (!error.empty() || partners != "10") return "a call on the current device failed: " + error;
    if (cuda_on_cpu::contexts() != 1u) return "a call on the first device touched another one";
    (void)device_count();
    (void)device_properties(1);
    if (cuda_on_cpu::contexts() != 1u) return "a question about devices gave one a context";
    return "";
}

// Each check in a process of its own: a destroyed context cannot be restored.
bool passes(const std::string& title, const std::function<std::string()>& check) {
    const pid_t child = fork();
    if (child == 0) {
        const std::string complaint = check();
        if (!complaint.empty()) std::fprintf(stderr, "%s: %s\n", title.c_str(), complaint.c_str());
        _exit(complaint.empty() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) std::fprintf(stderr, "%s: the process died\n", title.c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int host_checks(void* stream) {
    struct Place {
        const char* call;
        int nth;
    };
    // The last errors are asked for before the work and after each of the three launches.
    const Place places[] = {{"cudaGetLastError", 1}, {"cudaGetDevice", 1},    {"cudaSetDevice", 1},
                            {"cudaGetLastError", 2}, {"cudaGetLastError", 3}, {"cudaGetLastError", 4}};
    const int sticky[] = {214, 700, 702, 710, 714, 715, 716, 717, 718, 719};
    const int passing[] = {1, 2, 9, 46, 98, 101, 209, 304, 400, 600, 701, 704, 720, 801, 802, 900, 999};
    bool all_pass = passes("contexts", [&] { return stray_context(stream); });
    for (const Place& place : places) {
        for (const bool is_sticky : {true, false}) {
            const int* codes = is_sticky ? sticky : passing;
            const int count = is_sticky ? sizeof(sticky) / sizeof(int) : sizeof(passing) / sizeof(int);
            for (int i = 0; i < count; ++i) {
                const std::string title =
                    std::string(place.call) + " " + std::to_string(place.nth) + " = " + std::to_string(codes[i]);
                all_pass &= passes(
                    title, [&, i] { return complaint_about(place.call, place.nth, codes[i], is_sticky, stream); });
            }
        }
    }
    return all_pass ? 0 : 72;
}
