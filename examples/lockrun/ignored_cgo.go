//go:build unix && cgo

package main

/*
#include <signal.h>

static unsigned long long ignored;

// Go's runtime replaces the dispositions that a process is started with. A constructor runs before it.
__attribute__((constructor)) static void note_ignored(void) {
	struct sigaction now;
	for (int s = 1; s < 32; s++) {
		if (sigaction(s, 0, &now) == 0 && now.sa_handler == SIG_IGN) {
			ignored |= 1ULL << s;
		}
	}
}

static unsigned long long ignored_signals(void) { return ignored; }
*/
import "C"

// knowsIgnored reports whether ignoredSignals knows all signals.
const knowsIgnored = true

func ignoredSignals() uint64 { return uint64(C.ignored_signals()) }
