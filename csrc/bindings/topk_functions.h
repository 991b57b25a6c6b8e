// The functions of stea_fast._core that serve the top-K search.
#pragma once

#include <pybind11/pybind11.h>

namespace stea {

void add_topk_functions(pybind11::module_& m);

}  // namespace stea
