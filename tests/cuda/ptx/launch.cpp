#include "launch.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "../harness/cuda_on_cpu.h"
#include "machine.h"

namespace ptx {
namespace {

std::map<std::string, Kernel> read_kernels() {
    const char* files = std::getenv("STEA_PTX");
    if (files == nullptr) throw Error("STEA_PTX names no files");
    std::map<std::string, Kernel> kernels;
    std::istringstream names(files);
    for (std::string name; std::getline(names, name, ':');) {
        std::ifstream file(name);
        std::ostringstream text;
        text << file.rdbuf();
        if (text.str().empty()) throw Error("nothing in " + name);
        kernels.merge(parse(text.str(), name.substr(name.rfind('/') + 1)));
    }
    return kernels;
}

// "... [with auto* kernel = stea::cuda::{anonymous}::best_of_rows<float>; std::string = ...]"
const Kernel& kernel_of(const std::string& signature) {
    static const std::map<std::string, Kernel> kernels = read_kernels();
    const size_t begin = signature.find("kernel = ") + 9, end = signature.find_first_of(";]", begin);
    const auto found = kernels.find(last_name(signature.substr(begin, end - begin)));
    if (found == kernels.end()) throw Error("no PTX of " + signature);
    return found->second;
}

std::vector<char> packed(const Kernel& kernel, const std::vector<std::vector<char>>& parameters) {
    std::vector<char> all;
    if (parameters.size() != kernel.parameters.size()) throw Error(kernel.name + ": other parameters in its PTX");
    for (size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& place = kernel.parameters[i];
        if (place.bytes != parameters[i].size()) throw Error(kernel.name + ": a parameter of another size in its PTX");
        all.resize(place.offset);
        all.insert(all.end(), parameters[i].begin(), parameters[i].end());
    }
    return all;
}

void write_counts(const Kernel& kernel, const Counters& counters) {
    const char* path = std::getenv("STEA_PTX_COUNTS");
    if (path == nullptr) return;
    std::ofstream file(path, std::ios::app);
    file << kernel.name << '\t' << counters.warps << '\t' << counters.instructions << '\t' << counters.lanes << '\t'
         << counters.global_accesses << '\t' << counters.global_sectors << '\n';
}

// Every instruction with how often it was executed.
void write_profile(const Kernel& kernel, const std::vector<uint64_t>& profile) {
    const char* path = std::getenv("STEA_PTX_PROFILE");
    if (path == nullptr) return;
    std::ofstream file(path, std::ios::app);
    for (size_t i = 0; i < profile.size(); ++i) {
        file << kernel.name << '\t' << kernel.body[i].line << '\t' << profile[i] << '\t' << kernel.body[i].text << '\n';
    }
}

}  // namespace

void launch(const std::string& signature, const dim3& grid, const dim3& block, size_t shared_bytes, const void* stream,
            const std::vector<std::vector<char>>& parameters) {
    const Kernel& kernel = kernel_of(signature);
    if (!cuda_on_cpu::accepts_launch(grid, block, shared_bytes, stream, kernel.name.c_str())) return;
    const cuda_on_cpu::DeviceAccess access(cuda_on_cpu::current_device());
    const char* races = std::getenv("STEA_PTX_RACES");
    const Launch launched{&kernel,
                          {grid.x, grid.y, grid.z},
                          {block.x, block.y, block.z},
                          shared_bytes,
                          packed(kernel, parameters),
                          cuda_on_cpu::settings().seed,
                          [](uint64_t address) {
                              const auto found = cuda_on_cpu::allocation_of(reinterpret_cast<const void*>(address));
                              return Extent{found.first, found.second};
                          },
                          races == nullptr || std::string(races) != "off"};
    Counters counters;
    std::vector<uint64_t> profile;
    run(launched, counters, &profile);
    write_profile(kernel, profile);
    write_counts(kernel, counters);
}

}  // namespace ptx
