package zkbridge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestOutage(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		proxy.Refuse(true)
		b := open(t, Config{Servers: proxy.Addr(), SessionTimeout: time.Minute})
		waitConnectError(t, b, "")
		if since, why := b.Outage(); why == nil || time.Since(since) < 0 || !strings.Contains(why.Error(), "no session yet") {
			t.Errorf("before the first session: %v, %v", since, why)
		}
		u := newUser(t, b)
		u.subscribe()
		for range 2 {
			proxy.Refuse(false)
			u.waitState(messages.SessionState_CONNECTED)
			if since, why := b.Outage(); why != nil {
				t.Errorf("connected: %v, %v", since, why)
			}
			before := time.Now()
			u.cutOff(proxy)
			since, why := b.Outage()
			if why == nil || since.Before(before) || since.After(time.Now()) {
				t.Errorf("suspended: %v, %v", since, why)
			}
			zktest.Eventually(t, timeLimit, func() bool {
				_, why := b.Outage()
				return strings.Contains(why.Error(), "the last attempt failed")
			}, "the outage names the failed attempt")
			if again, _ := b.Outage(); !again.Equal(since) {
				t.Errorf("since %v, and then since %v", since, again)
			}
		}
		b.Close()
		if since, why := b.Outage(); why != nil {
			t.Errorf("closed: %v, %v", since, why)
		}
	})
}

// The text of an outage says for how long from a second on: the errors of calls that fail when the
// outage begins are shown for as long as it lasts.
func TestDescribeOutage(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		since, why := time.Now(), errors.New("disconnected")
		for _, step := range []struct {
			wait time.Duration
			want string
		}{
			{0, ": disconnected"},
			{900 * time.Millisecond, ": disconnected"},
			{700 * time.Millisecond, " (for 1.6s): disconnected"},
		} {
			<-time.After(step.wait)
			want := "no answer from ZooKeeper since " + since.Format("15:04:05.000") + step.want
			if text := DescribeOutage("ZooKeeper", since, why); text != want {
				t.Errorf("%q, not %q", text, want)
			}
		}
	})
}
