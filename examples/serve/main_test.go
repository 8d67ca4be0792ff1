//go:build unix

package main_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rlx-ml/rlx-go/examples/serve/loadgen"
)

// tags are the build tags of this test, which the service is built with too.
var tags []string

// build compiles the service once.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the service (-short)")
	}
	bin := filepath.Join(t.TempDir(), "serve")
	out, err := exec.Command("go", "build", "-tags", strings.Join(tags, ","), "-o", bin, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

var address = regexp.MustCompile(`msg=serving addr=(\S+)`)

// A SIGTERM under load: every request that reached the service is answered with the bits of quiet times, and it exits with 0.
func TestTerminateUnderLoad(t *testing.T) {
	cmd := exec.Command(build(t), "-addr", "127.0.0.1:0", "-drain", "20s")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewReader(stderr)
	url := ""
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if m := address.FindStringSubmatch(line); m != nil {
			url = "http://" + m[1]
		}
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(lines)
		rest <- string(text)
	}()
	_, bodies, err := loadgen.Digits(40)
	if err != nil {
		t.Fatal(err)
	}
	l := loadgen.Load{URL: url + "/v1/run", Conns: 64, Bodies: bodies}
	transport := &http.Transport{}
	quiet := &http.Client{Transport: transport}
	for _, b := range bodies {
		status, answer, err := loadgen.Ask(t.Context(), quiet, l.URL, b)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %s (%v)", status, answer, err)
		}
		l.Want = append(l.Want, answer)
	}
	transport.CloseIdleConnections()
	report := make(chan *loadgen.Report)
	go func() { report <- l.Send(context.WithoutCancel(t.Context())) }() // until the service ends
	for served := 0.0; served < 3000; {
		m, err := loadgen.Metrics(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		served = m[`http_requests_total{code="200"}`]
	}
	http.DefaultClient.CloseIdleConnections()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := <-report
	log := <-rest
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	t.Log(r)
	if r.Different > 0 || r.Status[http.StatusOK] != r.Answers || r.Broken != l.Conns { // each connection ends once, with the service
		t.Errorf("%v", r)
	}
	m := regexp.MustCompile(`msg=stopped requests=(\d+) answered=(\d+) error=<nil>`).FindStringSubmatch(log)
	if m == nil || m[1] != m[2] || m[1] != strconv.Itoa(r.Answers+len(bodies)) {
		t.Errorf("the clients have %d answers, the service says\n%s", r.Answers+len(bodies), log)
	}
}

// What cannot start says why and exits with 1.
func TestBadModel(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.onnx")
	out, err := exec.Command(build(t), "-addr", "127.0.0.1:0", "-model", missing).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), missing) || strings.Contains(string(out), "goroutine") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the model is there")
	}
}
