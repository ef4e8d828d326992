//go:build !race

package growth_test

const raceFactor = 1
