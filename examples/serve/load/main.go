// Command load sends digits to a running serve, checks that the answers under load are those of quiet times, and prints latencies.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/rlx-ml/rlx-go/examples/serve/loadgen"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address of the service")
	conns := flag.Int("conns", 64, "connections")
	seconds := flag.Float64("seconds", 10, "how long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := load(ctx, "http://"+*addr, *conns, time.Duration(*seconds*float64(time.Second))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func load(ctx context.Context, url string, conns int, length time.Duration) error {
	_, bodies, err := loadgen.Digits(64)
	if err != nil {
		return err
	}
	l := loadgen.Load{URL: url + "/v1/run", Conns: conns, Bodies: bodies}
	for _, b := range bodies { // one by one: batches of one
		status, answer, err := loadgen.Ask(ctx, http.DefaultClient, l.URL, b)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("status %d: %s", status, answer)
		}
		l.Want = append(l.Want, answer)
	}
	before, err := loadgen.Metrics(ctx, url)
	if err != nil {
		return err
	}
	during, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	r := l.Send(during)
	fmt.Println(r)
	after, err := loadgen.Metrics(ctx, url)
	if err != nil {
		return err
	}
	for _, name := range []string{"process_resident_memory_bytes", `rlx_native_bytes{backend="cpu"}`, "go_memstats_heap_alloc_bytes", "go_goroutines"} {
		fmt.Printf("%s: %.0f before, %.0f after\n", name, before[name], after[name])
	}
	if n := after["rlx_batch_batches_total"] - before["rlx_batch_batches_total"]; n > 0 {
		fmt.Printf("mean batch: %.1f rows\n", (after["rlx_batch_rows_total"]-before["rlx_batch_rows_total"])/n)
	}
	if r.Different > 0 {
		return fmt.Errorf("%d answers differ from those of quiet times", r.Different)
	}
	return nil
}
