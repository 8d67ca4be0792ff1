package gen

import "testing"

// TestDrift: the generated files on disk are what the tables say.
func TestDrift(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Stale(root, files) {
		t.Errorf("%s is not up to date: run make generate", f.Path)
	}
}

// TestDeterministic: two runs give the same bytes.
func TestDeterministic(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	a, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Files(root)
	for i := range a {
		if string(a[i].Data) != string(b[i].Data) {
			t.Errorf("%s differs between two runs", a[i].Path)
		}
	}
}
