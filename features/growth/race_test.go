//go:build race

package growth_test

// raceFactor allows for the race detector, with which sync.Pool drops what it keeps at random, such
// as the memory of regular expressions.
const raceFactor = 200
