package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The page as a real browser shows it.

// row is an expression for what is to be seen of a lock.
func row(path, part string) string {
	return fmt.Sprintf(`document.querySelector('[data-path="%s"] %s')?.innerText.replace(/\d+ s$/, "now").trim()`, path, part)
}

func TestPageShowsQueues(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := open(t)
		first, second, path := connect(t, s), connect(t, s), s.Path(t)
		grant := hold(t, first.Mutex(path+"/orders"), actors.WithOwner("ann"), actors.WithData([]byte("batch 41")))
		next := second.Mutex(path+"/orders").Acquire(within(t), actors.WithOwner("bob"))
		foreign(t, s, path+"/java", "10.0.0.7")
		b.visit(view(t, at(t, s, pageOptions{root: path})))
		b.becomes(`document.querySelectorAll(".lock").length`, "2")
		b.becomes(`document.getElementById("totals").textContent`, "2 locks · 2 held · 1 waiter")
		b.becomes(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .queue li.holds').textContent.startsWith("holds: session 0x")`, path), "true") // its data are the user's
		b.becomes(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .queue li.waits').textContent.startsWith("1. bob · ")`, path), "true")
		b.eval(fmt.Sprintf(`document.querySelector('[data-path="%s/java"] .head').click()`, path))
		b.becomes(row(path+"/java", "td.data"), "10.0.0.7")
		b.screenshot("queues-" + s.Name())

		// A hand-off is shown as it happens.
		must(t, grant.Unlock(within(t)))
		held, err := next.Wait(within(t))
		must(t, err)
		b.becomes(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .queue li.holds').textContent.startsWith("holds: bob · ")`, path), "true")
		b.becomes(`document.querySelectorAll("#handoffs li").length`, "1")
		b.eval(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .head').click()`, path))
		b.becomes(row(path+"/orders", "td.token"), held.Token().String())
		must(t, held.Unlock(within(t)))
		b.becomes(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"]')?.classList.contains("free") ?? true`, path), "true")
		b.fine()
	})
}

// Text of others is no HTML.
func TestPageShowsTextAsText(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	const evil = `<img src=x onerror="document.title='taken'">`
	foreign(t, s, "/"+strings.ReplaceAll(evil, "/", ""), evil)
	b.visit(view(t, at(t, s, pageOptions{root: "/"})))
	b.becomes(`document.querySelectorAll(".lock").length`, "1")
	b.eval(`document.querySelector(".head").click()`)
	b.becomes(`document.querySelector("td.data")?.textContent`, evil)
	b.becomes(`document.images.length`, "0")
	b.becomes(`document.title`, "Locks below /")
	b.fine()
}

func TestThousandLocks(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	locks := connect(t, s)
	var pending []*actors.Future[*actors.Grant]
	for i := range 1000 {
		pending = append(pending, locks.Mutex(fmt.Sprintf("/locks/%03d", i)).Acquire(within(t), actors.WithOwner(actors.Owner(fmt.Sprintf("owner-%03d", i)))))
	}
	var held []*actors.Grant // a dropped grant is an error in the log
	for _, p := range pending {
		grant, err := p.Wait(within(t))
		must(t, err)
		held = append(held, grant)
	}
	defer runtime.KeepAlive(held)
	b.visit(view(t, at(t, s, pageOptions{root: "/locks"})))
	b.becomes(`document.getElementById("totals").textContent`, "1000 locks · 1000 held · no waiters")
	b.becomes(`document.querySelectorAll(".lock:not([hidden])").length`, "1000")
	b.screenshot("thousand")

	// Keys alone: search, the next lock, its whole queue, back.
	b.press("/")
	for _, key := range "owner-041" {
		b.press(string(key))
	}
	b.becomes(`[...document.querySelectorAll(".lock:not([hidden])")].map(e => e.dataset.path).join()`, "/locks/041")
	b.press("ArrowDown")
	b.press("Enter")
	b.becomes(`document.querySelectorAll("table").length`, "1")
	b.becomes(`document.querySelector("td.owner").textContent`, "owner-041")
	b.screenshot("search")
	b.press("Escape")
	b.becomes(`document.querySelector(".whole:not([hidden])")`, "<nil>")
	b.press("/")
	b.press("Escape")
	b.becomes(`document.querySelectorAll(".lock:not([hidden])").length`, "1000")
	b.press("j")
	b.press("j")
	b.becomes(`document.activeElement.closest(".lock").dataset.path`, "/locks/001")
	b.press("k")
	b.becomes(`document.activeElement.closest(".lock").dataset.path`, "/locks/000")
	b.fine()
}

func TestPhoneAndDark(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	locks := connect(t, s)
	var kept []any // a dropped grant or future is an error in the log
	for _, path := range []string{"/locks/orders", "/locks/a-path-that-is-much-longer-than-a-phone-is-wide/and-goes-on-for-a-while"} {
		kept = append(kept, hold(t, locks.Mutex(path), actors.WithOwner("ann")))
		for i := range 12 {
			kept = append(kept, locks.Mutex(path).Acquire(within(t), actors.WithOwner(actors.Owner(fmt.Sprintf("waiter-%d", i)))))
		}
	}
	defer runtime.KeepAlive(kept)
	url := view(t, at(t, s, pageOptions{root: "/"}))
	background := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int{"phone": 390, "desk": 1280} {
			b.size(width, 844, name == "phone")
			b.scheme(scheme)
			b.visit(url)
			b.becomes(`document.getElementById("totals").textContent`, "2 locks · 2 held · 24 waiters")
			b.becomes(`document.querySelector(".more").textContent`, "and 5 more")
			b.becomes(`document.documentElement.scrollWidth <= innerWidth`, "true")
			background[scheme] = b.eval(`getComputedStyle(document.body).backgroundColor`)
			b.screenshot(scheme + "-" + name)
		}
	}
	if background["light"] == background["dark"] {
		t.Errorf("the page is %s in both schemes", background["light"])
	}
	b.eval(`document.getElementById("theme").click()`)
	b.becomes(`getComputedStyle(document.body).backgroundColor`, background["light"])
	b.fine()
}

// The page says so while ZooKeeper does not answer, and goes on by itself.
func TestPageWhileZooKeeperIsAway(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	grant := hold(t, connect(t, s).Mutex("/orders"))
	b.visit(view(t, at(t, s, pageOptions{root: "/"})))
	b.becomes(`document.getElementById("session").dataset.state`, "CONNECTED")
	s.Embedded().Halt()
	b.becomes(`document.getElementById("session").dataset.state`, "trouble")
	b.becomes(`document.querySelectorAll(".lock").length`, "1")
	b.screenshot("away")
	s.Embedded().Restart()
	b.becomes(`document.getElementById("session").dataset.state`, "CONNECTED")
	grant.Release()
	b.becomes(`document.querySelectorAll("li.holds").length`, "0")
	b.fine()
}

func TestAskToRelease(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	grant := hold(t, connect(t, s).Mutex("/orders"), actors.Revocable())
	b.visit(view(t, at(t, s, pageOptions{root: "/", revoke: true})))
	b.becomes(`document.querySelectorAll(".lock").length`, "1")
	b.eval(`window.confirm = () => true; document.querySelector(".head").click(); document.querySelector("td button").click()`)
	select {
	case <-grant.Revoked():
	case <-within(t).Done():
		t.Error("the holder was not asked")
	}
	b.becomes(`document.querySelector("td button")?.textContent ?? "asked"`, "asked")
	b.fine()
}
