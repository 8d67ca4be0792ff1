//go:build !linux

package ir

func adviseHuge([]byte) {}
