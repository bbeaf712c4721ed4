package inspection

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/messages"
)

// fill sets all that v has to something random.
func fill(t *rapid.T, v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(rapid.Int64Range(-1e10, 1e10).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds"))
		return
	case *[]byte:
		*at = rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 3).Draw(t, "length"), 3))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64Range(-1<<(v.Type().Bits()-1), 1<<(v.Type().Bits()-1)-1).Draw(t, "number"))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, 1<<v.Type().Bits()-1).Draw(t, "number"))
	default:
		t.Fatalf("%v: the test cannot fill it", v.Type())
	}
}

// equal compares instants without their places.
func equal(a, b reflect.Value) bool {
	if at, is := a.Interface().(time.Time); is {
		return at.Equal(b.Interface().(time.Time))
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func roundTrip[A, V any](t *testing.T, q *asking[A, V]) {
	t.Run(q.kind, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			for _, v := range []any{new(A), new(answerJSON[V]).Value} {
				if v == nil {
					continue
				}
				made := reflect.New(reflect.Indirect(reflect.ValueOf(v)).Type())
				fill(t, made.Elem())
				text, err := json.Marshal(made.Interface())
				if err != nil {
					t.Fatal(err)
				}
				again := reflect.New(made.Elem().Type())
				if err := json.Unmarshal(text, again.Interface()); err != nil {
					t.Fatal(err)
				}
				if !equal(made.Elem(), again.Elem()) {
					t.Fatalf("%+v became %+v by %s", made.Elem(), again.Elem(), text)
				}
			}
		})
	})
}

// Arguments and values of all questions are the same after their way as JSON.
func TestQuestionsAndAnswersTravel(t *testing.T) {
	roundTrip(t, Inspect)
	roundTrip(t, Find)
	roundTrip(t, observed)
	roundTrip(t, Participants)
	roundTrip(t, Remaining)
	roundTrip(t, Verify)
	roundTrip(t, VerifyToken)
	roundTrip(t, ReadData)
	roundTrip(t, Revoke)
	roundTrip(t, RevokeHolders)
	roundTrip(t, GetCount)
	roundTrip(t, SetCount)
	roundTrip(t, TrySetCount)
	roundTrip(t, GetGeneration)
	roundTrip(t, CheckHealth)
	if n := len(answerings); n != 15 {
		t.Errorf("%d kinds of questions: each must be here", n)
	}
}

// Errors keep their texts and reasons on their way, also those of skipped directories.
func TestErrorsTravel(t *testing.T) {
	var all []error
	for r := range messages.Reason_name {
		if r != 0 {
			reason := messages.Reason(r)
			all = append(all, reason, fmt.Errorf("a: %w: %w", reason, messages.Reason_DISCONNECTED), &messages.Refused{Reason: reason, Detail: "why", Disconnected: true},
				&messages.Lost{Reason: reason, Detail: "/node"})
		}
	}
	all = append(all, errors.New("of no reason"), nil,
		Skipped{"/a": fmt.Errorf("%w: no right", messages.Reason_NO_AUTH), "/b": messages.Reason_LIMIT_EXCEEDED})
	for _, err := range all {
		text, failed := json.Marshal(errorJSONOf(err))
		if failed != nil {
			t.Fatal(failed)
		}
		var again *errorJSON
		if failed := json.Unmarshal(text, &again); failed != nil {
			t.Fatal(failed)
		}
		got := again.asError()
		if fmt.Sprint(got) != fmt.Sprint(err) {
			t.Errorf("%v became %v", err, got)
		}
		for r := range messages.Reason_name {
			if reason := messages.Reason(r); errors.Is(got, reason) != errors.Is(err, reason) {
				t.Errorf("%v: is %v after its way: %v", err, reason, errors.Is(got, reason))
			}
		}
		was, isSkipped := err.(Skipped)
		if is, stays := got.(Skipped); stays != isSkipped || len(was) != len(is) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestPathsOfQuestions(t *testing.T) {
	multi := &messages.LockSpec{Recipe: messages.Recipe_MULTI_LOCK, Members: []*messages.Member{{Path: "/a", Lock: &messages.LockSpec{}},
		{Path: "/s", Lock: &messages.LockSpec{Recipe: messages.Recipe_SEMAPHORE, Permits: 1, CountPath: "/n"}}}}
	for _, c := range []struct {
		q       *messages.Question
		paths   []string
		changes bool
	}{
		{&messages.Question{Kind: "inspect", Path: "/a"}, []string{"/a"}, false},
		{&messages.Question{Kind: "health"}, nil, false},
		{&messages.Question{Kind: "find", Path: "/"}, []string{"/"}, false},
		{&messages.Question{Kind: "verify", Path: "any", Lock: multi}, []string{"/a", "/s", "/s/locks", "/s/leases", "/n"}, false},
		{&messages.Question{Kind: "verify-token", Path: "/a/b/x-lock-0000000001"}, []string{"/a/b"}, false},
		{&messages.Question{Kind: "data", Path: "/a/b/x-lock-0000000001"}, []string{"/a/b"}, false},
		{&messages.Question{Kind: "revoke", Path: "/s/leases/x-lease-0000000001"}, []string{"/s/leases", "/s"}, true},
		{&messages.Question{Kind: "revoke", Path: "/s/locks/x-lock-0000000001"}, []string{"/s/locks", "/s"}, true},
		{&messages.Question{Kind: "revoke", Path: "/s-__lock__/x__lock__0000000001"}, []string{"/s-__lock__", "/s"}, true},
		{&messages.Question{Kind: "revoke", Path: "/locks/x-lock-0000000001"}, []string{"/locks"}, true},
		{&messages.Question{Kind: "revoke-holders", Path: "/a", Lock: &messages.LockSpec{}}, []string{"/a"}, true},
		{&messages.Question{Kind: "set-count", Path: "/n"}, []string{"/n"}, true},
	} {
		if paths, changes, err := PathsOf(c.q); !reflect.DeepEqual(paths, c.paths) || changes != c.changes || err != nil {
			t.Errorf("%v: %v, %v, %v", c.q, paths, changes, err)
		}
	}
	for kind := range answerings {
		if answerings[kind].traits&ofEnsemble != 0 {
			continue
		}
		for _, path := range []string{"", "a", "/a/", "/a//b", "/a/../b", "/a\x00", "/a\xff", "/" + strings.Repeat("a", 1<<20), "/actorlock/../a"} {
			q := &messages.Question{Kind: kind, Path: path, Lock: &messages.LockSpec{}}
			if _, _, err := PathsOf(q); !errors.Is(err, messages.Reason_INVALID) {
				t.Errorf("%s of %.30q: %v", kind, path, err)
			}
		}
	}
}
