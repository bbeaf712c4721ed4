// This file lets the package declare a function without a body, see drop_test.go.
