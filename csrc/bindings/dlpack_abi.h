// The part of DLPack that a consumer needs: the layout of what is inside a "dltensor" capsule (version 0.8, which every
// producer of the 1.x line still gives when no version is asked for).
#pragma once

#include <cstdint>

namespace stea::dlpack {

struct Device {
    int32_t type;  // 1: CPU, 2: CUDA
    int32_t id;
};

enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2 };

struct DataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t* shape;
    int64_t* strides;  // in elements; null: C order
    uint64_t byte_offset;
};

struct ManagedTensor {
    Tensor tensor;
    void* manager_context;
    void (*deleter)(ManagedTensor* self);
};

}  // namespace stea::dlpack
