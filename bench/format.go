package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// number formats a figure with three significant digits, and with all digits before the point.
func number(f float64) string {
	switch {
	case f >= 1000:
		return thousands(strconv.FormatFloat(f, 'f', 0, 64))
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// byNumbers orders names such as ops_10_waiters and ops_100_waiters by their words first, then by their number.
func byNumbers(a, b string) int {
	nameA, numberA := splitNumber(a)
	nameB, numberB := splitNumber(b)
	return cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(numberA, numberB))
}

func splitNumber(key string) (name string, n int) {
	words := strings.Split(key, "_")
	for i, word := range words {
		if value, err := strconv.Atoi(word); err == nil {
			words[i], n = "#", value
		}
	}
	return strings.Join(words, "_"), n
}
