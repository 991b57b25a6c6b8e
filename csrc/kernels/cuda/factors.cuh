// Products of factors 1 - x, and their logarithms.
#pragma once

#include "../evidence.h"
#include "views.h"

namespace stea::cuda {

// -log(1 - x) for x in [0, 0.5), within 5e-7 of its value: 2 artanh(u / 2) with u = 2 x / (2 - x), the polynomial
// fitted.
__device__ inline float minus_log_of_rest(float x) {
    const float u = __fdividef(x, fmaf(-0.5f, x, 1.0f)), square = u * u;
    const float sum = fmaf(fmaf(0.00265605f, square, 0.01238557f), square, 0.08334195f);
    return fmaf(u * square, sum, u);
}

// A product of factors (1 - x)(1 - y), each of them at least kMinFactor. Near 1 what is missing there has the digits,
// and near 0 the product itself.
struct Factors {
    float product = 1.0f;
    float missing = 0.0f;  // 1 - product

    __device__ Factors() {}
    __device__ Factors(const Strength& strength, float weight) {
        const float least = static_cast<float>(kMinFactor), minus = -weight;
        const float of_source = fmaf(strength.source, minus, 1.0f), of_target = fmaf(strength.target, minus, 1.0f);
        product = fmaxf(of_source, least) * fmaxf(of_target, least);
        missing = fmaf(strength.target * weight, of_source, strength.source * weight);
    }

    __device__ float evidence() const { return missing < 0.5f ? minus_log_of_rest(missing) : -__logf(product); }

    __device__ void multiply(const Factors& other) {
        missing = fmaf(product, other.missing, missing);
        product *= other.product;
    }
    __device__ void take_smaller(const Factors& other) {
        missing = fmaxf(missing, other.missing);
        product = fminf(product, other.product);
    }
};

}  // namespace stea::cuda
