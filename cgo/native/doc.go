// Package native binds libraries that have the C ABI of rlx.h. It is the only Go code that knows the ABI: a package per backend says which
// library, and how it is found.
package native
