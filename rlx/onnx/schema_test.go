package onnx

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// schemaRow is a line of testdata/schemas.json.
type schemaRow struct {
	op          string
	since       int64
	least, most int
	attrs       map[string][3]any
}

func (r *schemaRow) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&r.op, &r.since, &r.least, &r.most, &r.attrs})
}

// leftOut are attributes that exist and are reported as unsupported because no row declares them.
var leftOut = map[string][]string{
	"Constant": {"sparse_value", "value_string", "value_strings"},
}

// extra are operators that ONNX Runtime's optimizer writes into the default domain, where no schema has them.
var extra = []string{"SimplifiedLayerNormalization"}

// TestSchemas holds every row against ONNX's own schemas: kinds, defaults and required attributes, and the number of inputs. A row
// that stands for several versions may allow what the oldest of them did not.
func TestSchemas(t *testing.T) {
	data, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Newest int64
		Rows   []schemaRow
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if file.Newest != newestOpset {
		t.Errorf("schemas are of operator set %d, the rows know %d", file.Newest, newestOpset)
	}
	known := map[string]bool{}
	for _, s := range file.Rows {
		known[s.op] = true
		r, _ := find("", s.op, s.since)
		if r == nil {
			continue
		}
		at := fmt.Sprintf("%s %d", s.op, s.since)
		if r.in.least > s.least || r.in.most < s.most {
			t.Errorf("%s: takes %d to %d inputs, the schema %d to %d", at, r.in.least, r.in.most, s.least, s.most)
		}
		for name, a := range s.attrs {
			if slices.Contains(leftOut[s.op], name) {
				continue
			}
			k := slices.IndexFunc(r.attrs, func(d attrDecl) bool { return d.name == name })
			if k < 0 {
				t.Errorf("%s: attribute %s is not declared", at, name)
				continue
			}
			d := r.attrs[k]
			if want := AttributeType(a[0].(float64)); d.kind != want {
				t.Errorf("%s: attribute %s has kind %d, the schema %d", at, name, d.kind, want)
			}
			if d.required && !a[1].(bool) {
				t.Errorf("%s: attribute %s required: %t, the schema %t", at, name, d.required, a[1])
			}
			if !sameDefault(d.def, a[2]) {
				t.Errorf("%s: attribute %s is %v by default, the schema %v", at, name, d.def, a[2])
			}
		}
	}
	for k := range table {
		if k.domain == "" && !known[k.op] && !slices.Contains(extra, k.op) {
			t.Errorf("%s is no operator of the default domain", k.op)
		}
	}
}

// sameDefault compares a declared default with one of the schemas. A list has no default in a row: nil says that it is absent.
func sameDefault(def, want any) bool {
	switch want := want.(type) {
	case nil:
		return def == nil
	case float64:
		switch d := def.(type) {
		case int64:
			return float64(d) == want
		case float32:
			return d == float32(want)
		}
	case string:
		return def == want
	case []any:
		return def == nil
	}
	return false
}
