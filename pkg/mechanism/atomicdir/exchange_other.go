//go:build !linux && !darwin

package atomicdir

func exchange(a, b string) error { return inTwoSteps(a, b) }
