// Arrays of a device in, pointers out: by DLPack, without conversion. A wrong dtype, layout, size or device is an
// error.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "../kernels/cuda/device.h"
#include "dlpack_abi.h"

namespace stea::cuda {

namespace py = pybind11;

template <typename T>
std::string dtype_name() {
    const std::string kind = std::is_floating_point_v<T> ? "float" : std::is_signed_v<T> ? "int" : "uint";
    return kind + std::to_string(8 * sizeof(T));
}

inline std::string dtype_name(const dlpack::DataType& type) {
    const char* kinds[] = {"int", "uint", "float"};
    return (type.code < 3 ? kinds[type.code] : "type code " + std::to_string(type.code) + ", bits ") +
           std::to_string(type.bits);
}

// Takes the arrays of one call: all of them must be on one device. They are kept until the work is enqueued.
class DeviceArrays {
  public:
    // `stream`: of the caller; a producer makes its data ready for it.
    explicit DeviceArrays(uintptr_t stream) : stream_(stream) {}
    ~DeviceArrays() {
        for (dlpack::ManagedTensor* held : held_) {
            if (held->deleter != nullptr) held->deleter(held);
        }
    }
    DeviceArrays(const DeviceArrays&) = delete;
    DeviceArrays& operator=(const DeviceArrays&) = delete;

    // A C-ordered array of `shape`; -1 stands for any size.
    template <typename T>
    T* take(const py::handle& array, const std::string& name, const std::vector<int64_t>& shape) {
        const dlpack::Tensor& tensor = import(array, name);
        const dlpack::TypeCode code = std::is_floating_point_v<T> ? dlpack::kFloat
                                      : std::is_signed_v<T>       ? dlpack::kInt
                                                                  : dlpack::kUInt;
        if (tensor.dtype.code != code || tensor.dtype.bits != 8 * sizeof(T) || tensor.dtype.lanes != 1) {
            throw py::type_error(name + " must be " + dtype_name<T>() + ", not " + dtype_name(tensor.dtype));
        }
        check_shape(tensor, name, shape);
        return reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
    }

    // Size of the array taken last.
    int64_t size(int axis) const { return held_.back()->tensor.shape[axis]; }
    int device() const { return device_; }
    Stream stream() const { return reinterpret_cast<Stream>(stream_); }

  private:
    const dlpack::Tensor& import(const py::handle& array, const std::string& name) {
        if (!py::hasattr(array, "__dlpack__") || !py::hasattr(array, "__dlpack_device__")) {
            throw py::type_error(name + " must be an array with __dlpack__, not " +
                                 std::string(py::str(py::type::of(array).attr("__name__"))));
        }
        check_device(array.attr("__dlpack_device__")().cast<std::pair<int, int>>(), name);
        const py::object capsule = exported(array, name);
        auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        if (managed == nullptr) throw py::error_already_set();
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
        held_.push_back(managed);
        return managed->tensor;
    }

    void check_device(std::pair<int, int> device, const std::string& name) {
        if (device.first != dlpack_device_type()) {
            throw std::invalid_argument(name + " must be on a CUDA device (DLPack device type " +
                                        std::to_string(dlpack_device_type()) + "), not on one of type " +
                                        std::to_string(device.first));
        }
        if (held_.empty()) device_ = device.second;
        if (device.second != device_) {
            throw std::invalid_argument(name + " is on device " + std::to_string(device.second) +
                                        ", the arrays before it on device " + std::to_string(device_));
        }
    }

    py::object exported(const py::handle& array, const std::string& name) const {
        constexpr int kCuda = 2;
        constexpr uintptr_t kLegacyDefault = 1;  // DLPack's number of stream 0
        try {
            if (dlpack_device_type() != kCuda) return array.attr("__dlpack__")();  // host memory has no streams
            return array.attr("__dlpack__")(py::arg("stream") = stream_ == 0 ? kLegacyDefault : stream_);
        } catch (py::error_already_set& error) {
            throw std::invalid_argument(name + " cannot be read: " + error.what());
        }
    }

    static void check_shape(const dlpack::Tensor& tensor, const std::string& name, const std::vector<int64_t>& shape) {
        bool fits = tensor.ndim == static_cast<int>(shape.size());
        bool contiguous = true;
        int64_t stride = 1;
        for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
            fits = fits && (shape[axis] == -1 || shape[axis] == tensor.shape[axis]);
            const bool matters = tensor.strides != nullptr && tensor.shape[axis] > 1;
            contiguous = contiguous && (!matters || tensor.strides[axis] == stride);
            stride *= tensor.shape[axis];
        }
        if (!fits) {
            throw std::invalid_argument(name + " must have shape " + written(shape.data(), shape.size()) + ", not " +
                                        written(tensor.shape, static_cast<size_t>(tensor.ndim)));
        }
        if (!contiguous && stride != 0) throw std::invalid_argument(name + " must be contiguous, in C order");
    }

    static std::string written(const int64_t* shape, size_t ndim) {
        std::string text = "(";
        for (size_t axis = 0; axis < ndim; ++axis) {
            text += (axis > 0 ? ", " : "") + (shape[axis] < 0 ? std::string("n") : std::to_string(shape[axis]));
        }
        return text + ")";
    }

    uintptr_t stream_;
    int device_ = 0;
    std::vector<dlpack::ManagedTensor*> held_;
};

}  // namespace stea::cuda
