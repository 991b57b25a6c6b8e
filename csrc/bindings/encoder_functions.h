// The functions of stea_fast._core that serve the encoders.
#pragma once

#include <pybind11/pybind11.h>

namespace stea {

void add_encoder_functions(pybind11::module_& m);

}  // namespace stea
