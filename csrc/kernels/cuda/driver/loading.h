// Where the kernels come from that are compiled at run time.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stea::cuda::driver {

// The names of all kernels that something launches, as in the sources: "best_of_rows<float>".
std::vector<std::string>& kernel_names();

// Takes the kernels of a device from PTX or machine code. `entries`: for every name, what it is called there.
void load_kernels(int device, const std::string& image,
                  const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace stea::cuda::driver
