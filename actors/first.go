package actors

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/check"
)

// First blocks until one of the futures has a grant, and returns that grant. It cancels the other
// futures, which releases grants that they have or get. The first of several grants in the order of
// the arguments wins. If all futures fail, the error has all their errors; if ctx ends before, the
// error is its cause. Either way no grant is left. The Path of the grant says which lock it is:
//
//	g, err := actors.First(ctx, primary.Acquire(ctx), secondary.Acquire(ctx))
func First(ctx context.Context, futures ...*Future[*Grant]) (*Grant, error) {
	defer func() {
		for _, f := range futures {
			if f != nil {
				f.Cancel() // does nothing to the one whose grant is returned
			}
		}
	}()
	if err := checkFirst(ctx, futures); err != nil {
		return nil, err
	}
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, f := range futures {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(f.Done())})
	}
	errs := make([]error, len(futures))
	for failed := 0; failed < len(futures); {
		for i, f := range futures {
			if errs[i] != nil || !isDone(f) {
				continue
			}
			g, err := f.Result()
			if err == nil {
				return g, nil
			}
			errs[i], cases[i+1].Chan = err, reflect.Value{} // which blocks for ever
			failed++
		}
		if failed == len(futures) {
			break
		}
		if chosen, _, _ := reflect.Select(cases); chosen == 0 {
			return nil, context.Cause(ctx)
		}
	}
	runtime.KeepAlive(futures)
	return nil, errors.Join(errs...)
}

func checkFirst(ctx context.Context, futures []*Future[*Grant]) error {
	if ctx == nil {
		return check.ErrNilContext
	}
	if len(futures) == 0 {
		return check.Invalid("First of no futures: it needs one at least")
	}
	if i := slices.Index(futures, nil); i >= 0 {
		return check.Invalid(fmt.Sprintf("First: future %d of %d is nil", i+1, len(futures)))
	}
	return nil
}

func isDone(f *Future[*Grant]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}
