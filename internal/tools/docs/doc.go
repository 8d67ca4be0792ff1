// Package docs holds the test that keeps pages about the code true.
package docs
