package actors

import (
	"fmt"
	"runtime"
	"strings"
)

// stack is the calls that have led to a request, innermost first.
type stack []uintptr

// stackDepth bounds a stack: the log has one line for it.
const stackDepth = 12

// callers returns the stack of the caller, without the part that belongs to this package.
func callers() stack {
	all := make(stack, stackDepth+4)
	return all[:runtime.Callers(2, all)]
}

// String returns the calls outside of this package, as "function (file:line)".
func (s stack) String() string {
	if len(s) == 0 {
		return ""
	}
	var calls []string
	frames := runtime.CallersFrames(s)
	for more := true; more && len(calls) < stackDepth; {
		var f runtime.Frame
		f, more = frames.Next()
		own := strings.HasPrefix(f.Function, ownPackage)
		if f.Function != "" && !(own && len(calls) == 0) {
			calls = append(calls, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return strings.Join(calls, " < ")
}

const ownPackage = "github.com/actorlock/actorlock/actors."
