package main

import (
	"math"
	"slices"
)

// median returns the middle value, the mean of the two in the middle, or 0 if there are no values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread returns (greatest - smallest) / median, or 0 if there are no values.
func spread(values []float64) float64 {
	middle := median(values)
	if middle == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / middle
}

// interval returns two of the values. The true median lies between them with at least the probability. That is so for
// every distribution, because each value is below the median as a coin shows heads. interval returns the least and the
// greatest value if the values are too few for the probability.
func interval(values []float64, probability float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0, 0
	}
	rank := 0
	for outside := 0.0; rank < (n-1)/2; rank++ {
		if outside += 2 * heads(rank, n); outside > 1-probability {
			break
		}
	}
	rank = max(rank-1, 0)
	return sorted[rank], sorted[n-1-rank]
}

// heads returns the probability of k heads among n coins.
func heads(k, n int) float64 {
	logarithm := func(n int) float64 { f, _ := math.Lgamma(float64(n + 1)); return f }
	return math.Exp(logarithm(n) - logarithm(k) - logarithm(n-k) - float64(n)*math.Ln2)
}

// trend returns the ratio of the medians of the second and the first half of the values. It returns 1 if one of them is 0.
func trend(values []float64) float64 {
	first, second := median(values[:len(values)/2]), median(values[(len(values)+1)/2:])
	if first == 0 || second == 0 {
		return 1
	}
	return second / first
}
