// Package abi tests what stands between the command words and the C ABI: words made by prog, loaded and run by the native library.
package abi
