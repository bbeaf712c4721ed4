package lockflags

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// value is the value of a flag whose errors say what is accepted.
type value[T any] struct {
	to    *T
	parse func(string) (T, error)
}

// Set implements flag.Value.
func (v value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.to = parsed
	}
	return err
}

// String implements flag.Value. Package flag calls it of the zero value, too, and shows no default
// that is equal.
func (v value[T]) String() string {
	if v.to == nil {
		v.to = new(T)
	}
	return fmt.Sprint(*v.to)
}

func define[T any](set *flag.FlagSet, to *T, name string, parse func(string) (T, error), usage string) {
	set.Var(value[T]{to, parse}, name, usage)
}

// DurationVar defines a flag as set.DurationVar does. Its error for a number without a unit says
// so.
func DurationVar(set *flag.FlagSet, to *time.Duration, name string, otherwise time.Duration, usage string) {
	*to = otherwise
	define(set, to, name, parseDuration, usage)
}

// IntVar defines a flag as set.IntVar does. Its error says that a whole number is accepted.
func IntVar(set *flag.FlagSet, to *int, name string, otherwise int, usage string) {
	*to = otherwise
	define(set, to, name, parseInt, usage)
}

// SizeVar defines a flag for a number of bytes, as in 16MiB. Its default is what to has.
func SizeVar(set *flag.FlagSet, to *int, name, usage string) { define(set, to, name, parseSize, usage) }

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	example := "5s, 1m30s or 200ms"
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		example = text + "s"
	}
	return 0, fmt.Errorf("it must be a number with a unit, as in %s", example)
}

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, errors.New("it must be a whole number")
	}
	return n, err
}

// parseSize parses a number of bytes.
func parseSize(text string) (int, error) {
	number, unit := strings.TrimRight(text, "KMGiB"), int64(1)
	switch strings.TrimSuffix(text[len(number):], "B") {
	case "":
	case "Ki":
		unit = 1 << 10
	case "Mi":
		unit = 1 << 20
	case "Gi":
		unit = 1 << 30
	default:
		number = ""
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 {
		return 0, errors.New("it must be a number of bytes, as in 16777216 or 16MiB")
	}
	if n *= unit; n > math.MaxInt { // on a machine of 32 bits
		return 0, fmt.Errorf("it must be %d bytes at most", math.MaxInt)
	}
	return int(n), nil
}
