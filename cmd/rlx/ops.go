package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// opInfo is one line of `rlx ops --json`.
type opInfo struct {
	Name   string `json:"name"`
	Family string `json:"family"`
	Doc    string `json:"doc"`
	Place  string `json:"place,omitempty"`  // N native, C composed, V view, H host, - none
	DTypes string `json:"dtypes,omitempty"` // native dtypes of the first operand
}

func opsCommand() *cobra.Command {
	var name string
	var asJSON bool
	c := &cobra.Command{
		Use:   "ops [--backend B] [--json]",
		Short: "List the op table, and how a backend covers it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listOps(name)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(c.OutOrStdout())
				for _, o := range list {
					if err := enc.Encode(o); err != nil {
						return err
					}
				}
				return nil
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			for _, o := range list {
				line := []string{o.Name, o.Family, o.Place, o.Doc, o.DTypes}
				if name == "" {
					line = []string{o.Name, o.Family, o.Doc}
				} else if o.DTypes == "" {
					line = line[:4]
				}
				fmt.Fprintln(w, strings.Join(line, "\t"))
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&name, "backend", "", "show how this backend covers the table")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return c
}

// listOps is the op table, with the coverage of a device where name is not empty.
func listOps(name string) ([]opInfo, error) {
	caps := map[int]uint32{}
	host := func(*ir.Row) bool { return false }
	if name != "" {
		b, index, err := rlx.Lookup(name)
		if err != nil {
			return nil, err
		}
		list := b.Caps() // of the backend at best, where no device answers
		if d, err := b.Open(index, backend.Options{Threads: 1}); err == nil {
			list = d.Caps()
			defer d.Close()
		} else if index > 0 {
			return nil, err
		}
		for _, cap := range list {
			caps[cap.Op] |= cap.DTypes
		}
		if s, ok := b.(rlx.Stager); ok {
			host = s.StageOnHost
		}
	}
	var list []opInfo
	for _, r := range ir.Rows() {
		o := opInfo{Name: r.Name, Family: r.Family, Doc: r.Doc}
		if name != "" {
			if o.Place, o.DTypes = coverage(r, caps[r.Num()]); o.Place == "-" && host(r) {
				o.Place = "H"
			}
		}
		list = append(list, o)
	}
	return list, nil
}

// coverage is the letter of a row on a backend with the given native dtypes.
func coverage(r *ir.Row, native uint32) (place, dtypes string) {
	switch {
	case r.Has(ir.Leaf):
		return "V", ""
	case native != 0:
		if len(r.In) > 0 {
			native &= uint32(r.In[0].DTypes)
		}
		return "N", ir.DTypeSet(native).String()
	case r.Has(ir.View):
		return "V", ""
	case r.Composite():
		return "C", ""
	}
	return "-", ""
}

func backendsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backends",
		Short: "List what is compiled in, what devices answer, and what is absent and why",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			for _, b := range rlx.Backends() {
				var be *backend.Error
				switch {
				case errors.As(b.Err, &be) && be.Code == backend.NoDevice:
					fmt.Fprintf(w, "%s\tno device\t%v\n", b.Name, b.Err)
				case b.Err != nil:
					fmt.Fprintf(w, "%s\tabsent\t%v\n", b.Name, b.Err)
				case len(b.Devices) == 0:
					fmt.Fprintf(w, "%s\tno device\t%d ops native where one answers\n", b.Name, b.Ops)
				}
				for _, d := range b.Devices {
					fmt.Fprintf(w, "%s\t%s\t%s, %d threads, %d ops native\n", b.Name, d.Name, d.ISA, d.Threads, b.Ops)
				}
			}
			return w.Flush()
		},
	}
}
