//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A real Prometheus scrapes lockd: two lost grants are 2 lost grants per minute, and each query of both
// dashboards is accepted. promtool has no objection to the metrics. Debian's package prometheus has both.
func TestPrometheus(t *testing.T) {
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	t.Parallel()
	zk := zktest.Embedded(t)
	p := start(t, zk, "-insecure", "-metrics", "127.0.0.1:0", "-audit", os.DevNull)
	address := regexp.MustCompile(`metrics are served" address=(\S+)`).FindStringSubmatch(p.log())[1]
	defer http.DefaultClient.CloseIdleConnections()

	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(string(get(t, "http://"+address+"/metrics")))
	if text, err := check.CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	ask := startPrometheus(t, address)
	const lost = `sum by (reason) (rate(actorlock_lost_total{job=~"$job"}[$__rate_interval])) * 60`
	zktest.Eventually(t, timeLimit, func() bool { return ask(t, lost)["node_deleted"] == "0" }, "the counter is 0")
	locks := p.client(t)
	for i := range 2 {
		grant := hold(t, locks, fmt.Sprint(zk.Path(t), "/", i))
		if err := zk.Client(t).Delete(grant.Node(), -1); err != nil {
			t.Fatal(err)
		}
		<-grant.Done()
	}
	zktest.Eventually(t, timeLimit, func() bool {
		n, err := strconv.ParseFloat(ask(t, lost)["node_deleted"], 64)
		return err == nil && n > 1.9 && n < 2.1
	}, "2 lost grants per minute")
	asked := false
	for _, file := range []string{"dashboard.json", "../../actors/telemetry/dashboard.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"expr": (".*"),?\n`).FindAllSubmatch(text, -1) {
			var query string
			if err := json.Unmarshal(m[1], &query); err != nil {
				t.Fatal(err)
			}
			asked = asked || query == lost
			// lockd has no sizes of batches, and this one no certificate.
			if len(ask(t, query)) == 0 && !strings.Contains(query, "batch_size") && !strings.Contains(query, "certificate_ends") {
				t.Errorf("%s: no answer to %s", file, query)
			}
		}
	}
	if !asked {
		t.Errorf("no dashboard has %s", lost)
	}
}

// get returns what a server answers with 200.
func get(t *testing.T, from string) []byte {
	t.Helper()
	answer, err := http.Get(from)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", from, answer.Status, err, text)
	}
	return text
}

// startPrometheus starts a Prometheus that scrapes a target five times a second. The result answers the
// queries of dashboards by the values of their series, of one series for each reason.
func startPrometheus(t *testing.T, target string) (ask func(t *testing.T, query string) map[string]string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs: [{job_name: lockd, static_configs: [{targets: ['" + target + "']}]}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	zktest.Spawn(t, exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address))
	zktest.Eventually(t, timeLimit, func() bool {
		answer, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	}, "Prometheus is ready")
	return func(t *testing.T, query string) map[string]string {
		t.Helper()
		query = strings.NewReplacer("$job", "lockd", "$__rate_interval", "1m").Replace(query)
		var answer struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Value  []any
				}
			}
		}
		if err := json.Unmarshal(get(t, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query)), &answer); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, r := range answer.Data.Result {
			all[r.Metric["reason"]] = fmt.Sprint(r.Value[1])
		}
		return all
	}
}
