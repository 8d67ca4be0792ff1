// Package vulkan links the Vulkan backend: importing it under the build tag vulkan registers the backend "vulkan", which runs on any device
// with Vulkan 1.2. The library is build/lib/librlx_vulkan.a, which `make vulkan` makes, or one that CGO_LDFLAGS=-L<folder> names. The
// Vulkan loader is looked for when a device is first asked for: a program starts without one.
//
// Environment, read when a device is opened: RLX_VULKAN_LOADER names the loader's library; RLX_VULKAN_VALIDATE=1 switches the validation
// layers on, with synchronisation checks (gpu: with GPU-assisted checks besides; auto: as 1 where the layers are installed), and makes any
// message an error.
package vulkan
