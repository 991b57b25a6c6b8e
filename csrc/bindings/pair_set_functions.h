// The functions of stea_fast._core over the pair set of the joint refinement.
#pragma once

#include <pybind11/pybind11.h>

namespace stea {

void add_pair_set_functions(pybind11::module_& m);

}  // namespace stea
