package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// These tests read the page in a real browser.

// row returns an expression for the text of a part of a lock.
func row(path, part string) string {
	return fmt.Sprintf(`document.querySelector('[data-path="%s"] %s')?.innerText.replace(/\d+ s$/, "now").trim()`, path, part)
}

func TestPageShowsQueues(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := open(t)
		first, second, path := connect(t, s), connect(t, s), s.Path(t)
		grant := acquire(t, first.Mutex(path+"/orders"), actors.WithOwner("ann"), actors.WithData([]byte("batch 41")))
		next := second.Mutex(path+"/orders").Acquire(within(t), actors.WithOwner("bob"))
		createAsCurator(t, s, path+"/java", "10.0.0.7")
		b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: path})))
		b.waitValue(`document.querySelectorAll(".lock").length`, "2")
		b.waitValue(`document.getElementById("totals").textContent`, "2 locks · 2 held · 1 waiter")
		b.waitValue(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .queue li.holds').textContent.startsWith("holds: session 0x")`, path), "true") // its data are the user's
		b.waitValue(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .queue li.waits').textContent.startsWith("1. bob · ")`, path), "true")
		b.eval(fmt.Sprintf(`document.querySelector('[data-path="%s/java"] .head').click()`, path))
		b.waitValue(row(path+"/java", "td.data"), "10.0.0.7")
		b.screenshot("queues-" + s.Name())

		// The page shows a hand-off at once.
		must(t, grant.Unlock(within(t)))
		held, err := next.Wait(within(t))
		must(t, err)
		b.waitValue(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .queue li.holds').textContent.startsWith("holds: bob · ")`, path), "true")
		b.waitValue(`document.querySelectorAll("#handoffs li").length`, "1")
		b.eval(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"] .head').click()`, path))
		b.waitValue(row(path+"/orders", "td.token"), held.Token().String())
		must(t, held.Unlock(within(t)))
		b.waitValue(fmt.Sprintf(`document.querySelector('[data-path="%s/orders"]')?.classList.contains("free") ?? true`, path), "true")
		b.checkErrors()
	})
}

// The page shows the text of other clients as text, and not as HTML.
func TestPageShowsTextAsText(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	const markup = `<img src=x onerror="document.title='taken'">`
	createAsCurator(t, s, "/"+strings.ReplaceAll(markup, "/", ""), markup)
	b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: "/"})))
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	b.eval(`document.querySelector(".head").click()`)
	b.waitValue(`document.querySelector("td.data")?.textContent`, markup)
	b.waitValue(`document.images.length`, "0")
	b.waitValue(`document.title`, "Locks below /")
	b.checkErrors()
}

// Names cannot hide, or turn around what stands beside them.
func TestPageShowsNames(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	createAsCurator(t, s, "/a\u202eb\u200bc\u2028d", "e\u202ef")
	b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: "/"})))
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	b.eval(`document.querySelector(".head").click()`)
	b.waitValue(`document.querySelector(".path").textContent`, `/a\u{202e}b\u{200b}c\u{2028}d`)
	b.waitValue(`document.querySelector("td.data").textContent`, `e\u202ef`)
	b.waitValue(`/[\u202e\u200b\u2028]/.test(document.body.innerText + document.querySelector(".queue li").title)`, "false")
	b.checkErrors()
}

// The page has the locks beside a directory that cannot be read, and names it. Until it is
// connected it claims no path.
func TestPageWithSkippedDirectory(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	createAsCurator(t, s, "/orders", "")
	_, err := s.Client(t).Create("/secret", nil, 0, zk.DigestACL(zk.PermAll, "me", "secret"))
	must(t, err)
	url := startLockview(t, optionsFor(t, s, pageOptions{root: "/"}))
	b.visit(url)
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	b.waitValue(`document.getElementById("skipped").innerText.includes("/secret")`, "true")
	b.call("Network.enable", nil, nil)
	b.call("Network.setBlockedURLs", map[string]any{"urls": []string{"*/events"}}, nil)
	b.visit(url + "?")
	b.waitValue(`document.querySelector("h1").innerText.trim() + "|" + document.title`, "Locks|Locks")
}

// The whole queue has its buttons on the screen.
func TestWholeQueueFits(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	locks := connect(t, s)
	grant := acquire(t, locks.RWMutex("/locks/orders-of-the-day").Write(), actors.WithOwner("billing-service-7"))
	waiter := locks.RWMutex("/locks/orders-of-the-day").Read().Acquire(within(t), actors.WithOwner("a-reader"), actors.WithData([]byte(strings.Repeat("data ", 50))))
	defer runtime.KeepAlive([]any{grant, waiter})
	b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: "/", revoke: true})))
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	b.eval(`document.querySelector(".head").click()`)
	b.size(1200, 800, false)
	b.waitValue(`(e => e.scrollWidth <= e.clientWidth)(document.querySelector(".whole"))`, "true")
	b.screenshot("whole")
	b.size(390, 844, true)
	b.waitValue(`(e => e.left >= 0 && e.right <= innerWidth)(document.querySelector("td button").getBoundingClientRect())`, "true")
	b.screenshot("whole-phone")
	b.checkErrors()
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
	b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: "/locks"})))
	b.waitValue(`document.getElementById("totals").textContent`, "1000 locks · 1000 held · no waiters")
	b.waitValue(`document.querySelectorAll(".lock:not([hidden])").length`, "1000")
	b.screenshot("thousand")

	// With the keyboard only: search, the next lock, its whole queue, back.
	b.press("/")
	for _, key := range "owner-041" {
		b.press(string(key))
	}
	b.waitValue(`[...document.querySelectorAll(".lock:not([hidden])")].map(e => e.dataset.path).join()`, "/locks/041")
	b.press("ArrowDown")
	b.press("Enter")
	b.waitValue(`document.querySelectorAll("table").length`, "1")
	b.waitValue(`document.querySelector("td.owner").textContent`, "owner-041")
	b.screenshot("search")
	b.press("Escape")
	b.waitValue(`document.querySelector(".whole:not([hidden])")`, "<nil>")
	b.press("/")
	b.press("Escape")
	b.waitValue(`document.querySelectorAll(".lock:not([hidden])").length`, "1000")
	b.press("j")
	b.press("j")
	b.waitValue(`document.activeElement.closest(".lock").dataset.path`, "/locks/001")
	b.press("k")
	b.waitValue(`document.activeElement.closest(".lock").dataset.path`, "/locks/000")
	b.checkErrors()
}

func TestPhoneAndDark(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	locks := connect(t, s)
	var kept []any // a dropped grant or future is an error in the log
	for _, path := range []string{"/locks/orders", "/locks/a-path-that-is-much-longer-than-a-phone-is-wide/and-goes-on-for-a-while"} {
		kept = append(kept, acquire(t, locks.Mutex(path), actors.WithOwner("ann")))
		for i := range 12 {
			kept = append(kept, locks.Mutex(path).Acquire(within(t), actors.WithOwner(actors.Owner(fmt.Sprintf("waiter-%d", i)))))
		}
	}
	defer runtime.KeepAlive(kept)
	url := startLockview(t, optionsFor(t, s, pageOptions{root: "/"}))
	background := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int{"phone": 390, "desk": 1280} {
			b.size(width, 844, name == "phone")
			b.scheme(scheme)
			b.visit(url)
			b.waitValue(`document.getElementById("totals").textContent`, "2 locks · 2 held · 24 waiters")
			b.waitValue(`document.querySelector(".more").textContent`, "and 5 more")
			b.waitValue(`document.documentElement.scrollWidth <= innerWidth`, "true")
			background[scheme] = b.eval(`getComputedStyle(document.body).backgroundColor`)
			b.screenshot(scheme + "-" + name)
		}
	}
	if background["light"] == background["dark"] {
		t.Errorf("the page is %s in both schemes", background["light"])
	}
	b.eval(`document.getElementById("theme").click()`)
	b.waitValue(`getComputedStyle(document.body).backgroundColor`, background["light"])
	b.checkErrors()
}

// The page shows that ZooKeeper does not answer, and goes on when it answers again.
func TestPageWhileZooKeeperIsAway(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	grant := acquire(t, connect(t, s).Mutex("/orders"))
	b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: "/"})))
	b.waitValue(`document.getElementById("session").dataset.state`, "CONNECTED")
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	s.Embedded().Halt()
	b.waitValue(`document.getElementById("session").dataset.state`, "trouble")
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	b.screenshot("away")
	s.Embedded().Restart()
	b.waitValue(`document.getElementById("session").dataset.state`, "CONNECTED")
	grant.Release()
	b.waitValue(`document.querySelectorAll("li.holds").length`, "0")
	b.checkErrors()
}

func TestAskToRelease(t *testing.T) {
	t.Parallel()
	s, b := zktest.Embedded(t), open(t)
	grant := acquire(t, connect(t, s).Mutex("/orders"), actors.Revocable())
	b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: "/", revoke: true})))
	b.waitValue(`document.querySelectorAll(".lock").length`, "1")
	b.eval(`window.confirm = () => true; document.querySelector(".head").click(); document.querySelector("td button").click()`)
	select {
	case <-grant.Revoked():
	case <-within(t).Done():
		t.Error("the holder was not asked")
	}
	b.waitValue(`document.querySelector("td button")?.textContent ?? "asked"`, "asked")
	b.checkErrors()
}
