//go:build unix && rlx_static

package main_test

func init() { tags = append(tags, "rlx_static") }
