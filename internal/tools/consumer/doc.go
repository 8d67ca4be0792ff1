// Package consumer tests what a user of the module does: it builds the README's program in a module outside the repository, in every
// build mode, and again after an edit of a header and of a kernel.
package consumer
