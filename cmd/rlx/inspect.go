package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func inspectCommand() *cobra.Command {
	var text bool
	c := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Show inputs, outputs, symbolic dims, op histogram, placement per backend, and all that is unsupported",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			model, err := rlx.Open(args[0])
			var unsupported *rlx.ModelError
			if errors.As(err, &unsupported) {
				for _, u := range unsupported.Items {
					fmt.Fprintf(c.OutOrStdout(), "unsupported: %s (node %s)\n", u, u.Node)
				}
				return fmt.Errorf("%s: %d operators or attributes are unsupported", args[0], len(unsupported.Items))
			}
			if err != nil {
				return err
			}
			g := model.Graph()
			if text {
				_, err := fmt.Fprint(c.OutOrStdout(), g)
				return err
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			describe(w, g)
			w.Flush()
			for _, name := range backend.Names() {
				if err := placement(c, model, name); err != nil {
					fmt.Fprintf(c.OutOrStdout(), "%s: %v\n", name, err)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&text, "text", false, "print the graph as text instead")
	return c
}

func describe(w *tabwriter.Writer, g *ir.Graph) {
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		fmt.Fprintf(w, "input\t%s\t%s\n", name, n.Types[0])
	}
	for _, o := range g.Outputs {
		fmt.Fprintf(w, "output\t%s\t%s\n", o.Name, o.Value.Type())
	}
	fmt.Fprintf(w, "symbols\t%s\n", strings.Join(g.Symbols(), " "))
	count := map[string]int{}
	params, bytes := 0, int64(0)
	for _, n := range g.Nodes {
		if name, ok := n.ParamName(); ok {
			params++
			if t := g.ParamData(name); t != nil {
				bytes += int64(len(t.Bytes()))
			}
		}
		count[n.Row.Name]++
	}
	fmt.Fprintf(w, "weights\t%d tensors\t%.1f MB\n", params, float64(bytes)/1e6)
	kinds := make([]string, 0, len(count))
	for k := range count {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	for _, k := range kinds {
		fmt.Fprintf(w, "op\t%s\t%d\n", k, count[k])
	}
}

// placement prints how many nodes each place has on a backend, names those that are staged on the host, and counts what crosses for them.
func placement(c *cobra.Command, model *rlx.Model, name string) error {
	prog, err := model.Compile(c.Context(), rlx.On(name))
	if err != nil {
		return err
	}
	defer prog.Close()
	placed, err := prog.Placement()
	if err != nil {
		return err
	}
	count := map[string]int{}
	var host []string
	transfers, bytes := 0, int64(0)
	for _, p := range placed {
		count[p.Place]++
		transfers, bytes = transfers+p.Transfers, bytes+p.TransferBytes
		if p.Place == "host" {
			host = append(host, fmt.Sprintf("%s (%s) on %s", p.Node, p.Op, p.Backend))
		}
	}
	segments, err := prog.Segments()
	if err != nil {
		return err
	}
	stretches := 0
	for _, s := range segments {
		if s.Place == "host" {
			stretches++
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "placement on %s: %d native, %d composed, %d host in %d segments, %d transfers of %d bytes\n",
		name, count["native"], count["composed"], count["host"], stretches, transfers, bytes)
	for _, h := range host {
		fmt.Fprintf(c.OutOrStdout(), "  host: %s\n", h)
	}
	return nil
}
