package zkbridge

import (
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
		attemptFails(t, b, "")
		if since, why := b.Outage(); why == nil || time.Since(since) < 0 || !strings.Contains(why.Error(), "no session yet") {
			t.Errorf("before the first session: %v, %v", since, why)
		}
		p := newPeer()
		b.Ref().SendSubscribe(&messages.Subscribe{}, p)
		for range 2 {
			proxy.Refuse(false)
			state(t, p, messages.SessionState_CONNECTED)
			if since, why := b.Outage(); why != nil {
				t.Errorf("connected: %v, %v", since, why)
			}
			before := time.Now()
			proxy.Refuse(true)
			proxy.Cut()
			state(t, p, messages.SessionState_SUSPENDED)
			since, why := b.Outage()
			if why == nil || since.Before(before) || since.After(time.Now()) {
				t.Errorf("suspended: %v, %v", since, why)
			}
			zktest.Eventually(t, patience, func() bool {
				_, why := b.Outage()
				return strings.Contains(why.Error(), "the last attempt failed")
			}, "the failed attempt is told")
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
