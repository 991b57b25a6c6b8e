// The functions of stea_fast._core that compare names and values.
#pragma once

#include <pybind11/pybind11.h>

namespace stea {

void add_value_functions(pybind11::module_& m);

}  // namespace stea
