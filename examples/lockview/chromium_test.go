package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// browser is a headless Chromium with one page. It takes commands of the DevTools protocol by a
// pipe.
type browser struct {
	*testing.T
	commands *os.File
	session  string

	mu       sync.Mutex
	last     int
	pending  map[int]chan reply
	failures []string // exceptions and errors of the page
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Method string          `json:"method"` // of an event
	Params json.RawMessage `json:"params"`
}

// open starts Chromium. Without Chromium the test is skipped, as tests without a real ZooKeeper
// are. By habit it skips the test in seven runs of eight.
func open(t *testing.T) *browser {
	t.Helper()
	zktest.OneRunIn(t, 8)
	program, err := exec.LookPath("chromium")
	if err != nil {
		zktest.Lack(t, errors.New("no Chromium on this machine (install Debian's package chromium)"), err)
	}
	in, commands, err := os.Pipe()
	must(t, err)
	answers, out, err := os.Pipe()
	must(t, err)
	// Chromium's processes may write to the folder for a moment after its end.
	profile, err := os.MkdirTemp("", "lockview")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(profile) })
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{in, out}
	zktest.Spawn(t, cmd)
	in.Close()
	out.Close()
	b := &browser{T: t, commands: commands, pending: map[int]chan reply{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(answers)
	}()
	t.Cleanup(func() {
		commands.Close()
		answers.Close()
		<-read
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.call("Page.enable", nil, nil)
	b.call("Runtime.enable", nil, nil)
	b.call("Log.enable", nil, nil)
	b.size(1280, 800, false)
	return b
}

func (b *browser) read(answers *os.File) {
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, 64<<20)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		return 0, nil, nil
	})
	for lines.Scan() {
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		b.mu.Lock()
		switch {
		case r.Method == "Runtime.exceptionThrown" || r.Method == "Log.entryAdded":
			b.failures = append(b.failures, string(r.Params))
		case r.ID != 0:
			b.pending[r.ID] <- r
			delete(b.pending, r.ID)
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, answer := range b.pending {
		close(answer)
	}
	b.pending = nil
}

// call sends a command and stores its result.
func (b *browser) call(method string, params, result any) {
	b.Helper()
	b.mu.Lock()
	if b.pending == nil {
		b.mu.Unlock()
		b.Fatal("Chromium has ended")
	}
	b.last++
	answer := make(chan reply, 1)
	b.pending[b.last] = answer
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
		Session string `json:"sessionId,omitempty"`
	}{b.last, method, params, b.session})
	b.mu.Unlock()
	must(b.T, err)
	_, err = b.commands.Write(append(text, 0))
	must(b.T, err)
	r, ok := <-answer
	switch {
	case !ok:
		b.Fatal("Chromium has ended")
	case r.Error != nil:
		b.Fatalf("%s: %s", method, r.Error.Message)
	case result != nil:
		must(b.T, json.Unmarshal(r.Result, result))
	}
}

func (b *browser) size(width, height int, phone bool) {
	b.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
}

func (b *browser) scheme(scheme string) {
	b.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

func (b *browser) visit(url string) {
	b.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.waitValue(`document.readyState === "complete" && location.href`, url)
}

// eval returns the value of a JavaScript expression as text.
func (b *browser) eval(expression string) string {
	b.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return fmt.Sprint(r.Result.Value)
}

// waitValue waits until the expression has the value.
func (b *browser) waitValue(expression, value string) {
	b.Helper()
	zktest.Eventually(b, timeLimit, func() bool { return b.eval(expression) == value }, "%s is %q (now %q)", expression, value, lazyText(func() string { return b.eval(expression) }))
}

// lazyText is a text that is made when it is printed.
type lazyText func() string

func (l lazyText) String() string { return l() }

// press presses a key, such as "Enter" or "j".
func (b *browser) press(key string) {
	b.Helper()
	event := map[string]any{"type": "keyDown", "key": key, "code": key}
	switch {
	case len(key) == 1:
		event["text"] = key
	case key == "Enter":
		event["text"], event["windowsVirtualKeyCode"] = "\r", 13
	}
	b.call("Input.dispatchKeyEvent", event, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key}, nil)
}

// screenshot writes an image of the page to the folder of the flag -screenshots.
func (b *browser) screenshot(name string) {
	b.Helper()
	if *screenshots == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	image, err := base64.StdEncoding.DecodeString(shot.Data)
	must(b.T, err)
	must(b.T, os.WriteFile(filepath.Join(*screenshots, name+".png"), image, 0o644))
}

// checkErrors fails the test if the page has thrown an exception or logged an error.
func (b *browser) checkErrors() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.failures {
		b.Error(fmt.Errorf("the page: %s", f))
	}
	b.failures = nil
}
