// Package loadgen sends digits to a running service and checks the answers.
package loadgen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rlx-ml/rlx-go/examples/serve/service"
	"github.com/rlx-ml/rlx-go/rlx"
)

// Load is what to send.
type Load struct {
	URL    string // of /v1/run
	Conns  int
	Bodies [][]byte
	Want   [][]byte // answer of each body, compared byte by byte: equal text is equal bits; nil: not compared
}

// Report is what came back.
type Report struct {
	Answers   int // complete, of any status
	Status    map[int]int
	Different int             // answers other than Want
	Broken    int             // connections that ended without an answer: after the end of a service, those that it never took
	Latencies []time.Duration // of the answers, sorted
	Took      time.Duration
}

// Quantile is the latency that a share q of the answers did not exceed.
func (r *Report) Quantile(q float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(q*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

func (r *Report) String() string {
	return fmt.Sprintf("%d answers in %v, %.0f/s; latency p50 %v, p90 %v, p99 %v, max %v; status %v; %d differ, %d connections broken",
		r.Answers, r.Took.Round(time.Millisecond), float64(r.Answers)/r.Took.Seconds(), r.Quantile(0.5), r.Quantile(0.9), r.Quantile(0.99), r.Quantile(1),
		r.Status, r.Different, r.Broken)
}

// Digits makes n requests of one random digit each.
func Digits(n int) (feeds []rlx.Feed, bodies [][]byte, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		v := make([]float32, 64)
		for i := range v {
			v[i] = float32(r.IntN(17)) / 16
		}
		f := rlx.Feed{"pixels": rlx.New(v, 1, 64)}
		b, err := service.EncodeFeed(f)
		if err != nil {
			return nil, nil, err
		}
		feeds, bodies = append(feeds, f), append(bodies, b)
	}
	return feeds, bodies, nil
}

// Ask sends one body.
func Ask(ctx context.Context, c *http.Client, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.GetBody = nil // an answer that is missing is not asked for again in silence
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// Send keeps all connections busy, each with one request at a time, until ctx ends or the service does. A request under way at the end of ctx
// is finished.
func (l Load) Send(ctx context.Context) *Report {
	transport := &http.Transport{MaxIdleConnsPerHost: l.Conns, MaxConnsPerHost: l.Conns}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	total := &Report{Status: map[int]int{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for c := range l.Conns {
		all.Go(func() {
			own := l.one(ctx, client, c)
			mu.Lock()
			defer mu.Unlock()
			total.add(own)
		})
	}
	all.Wait()
	total.Took = time.Since(began)
	slices.Sort(total.Latencies)
	return total
}

func (l Load) one(ctx context.Context, client *http.Client, seed int) *Report {
	own := &Report{Status: map[int]int{}}
	for k := seed; ctx.Err() == nil; k++ {
		i := k % len(l.Bodies)
		t0 := time.Now()
		status, answer, err := Ask(context.WithoutCancel(ctx), client, l.URL, l.Bodies[i])
		if err != nil {
			own.Broken++
			break
		}
		own.Latencies = append(own.Latencies, time.Since(t0))
		own.Answers++
		own.Status[status]++
		if status == http.StatusOK && l.Want != nil && !bytes.Equal(answer, l.Want[i]) {
			own.Different++
		}
	}
	return own
}

func (r *Report) add(o *Report) {
	r.Answers += o.Answers
	r.Different += o.Different
	r.Broken += o.Broken
	r.Latencies = append(r.Latencies, o.Latencies...)
	for code, n := range o.Status {
		r.Status[code] += n
	}
}
