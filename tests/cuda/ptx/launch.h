// Launches that execute the PTX of a kernel instead of its C++: what STEA_LAUNCH is in the harness's mode "ptx".
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

struct dim3;

namespace ptx {

// Runs a kernel of the files that STEA_PTX names (with ":" between them). STEA_PTX_COUNTS, if set, names a file that
// gets one line per launch: kernel, warps, instructions, active lanes, accesses of global memory, sectors of 32 bytes.
// STEA_PTX_PROFILE likewise: how often each instruction was executed. STEA_PTX_RACES=off looks for no races.
void launch(const std::string& signature, const dim3& grid, const dim3& block, size_t shared_bytes, const void* stream,
            const std::vector<std::vector<char>>& parameters);

template <typename T>
std::vector<char> bytes_of(const T& value) {
    std::vector<char> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

// The compiler says which kernel it is, template arguments included.
template <auto* kernel>
std::string signature() {
    return __PRETTY_FUNCTION__;
}

template <auto* kernel, typename... Parameters, typename... Arguments>
void launch_as(void (*)(Parameters...), const dim3& grid, const dim3& block, size_t shared_bytes, const void* stream,
               const Arguments&... arguments) {
    launch(signature<kernel>(), grid, block, shared_bytes, stream, {bytes_of(static_cast<Parameters>(arguments))...});
}

}  // namespace ptx
