package main

import "slices"

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
