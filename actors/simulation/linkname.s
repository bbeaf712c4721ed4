// This file lets package simulation declare a function without a body: see request_drop_test.go.
