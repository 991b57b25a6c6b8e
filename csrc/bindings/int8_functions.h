// The functions of stea_fast._core that serve the int8 search.
#pragma once

#include <pybind11/pybind11.h>

namespace stea {

void add_int8_functions(pybind11::module_& m);

}  // namespace stea
