// Tells a torch without CUDA that its devices need no guarding, so that tensors may pose as those of a GPU.
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, NoOpDeviceGuardImpl<DeviceType::CUDA>)
}  // namespace c10::impl
