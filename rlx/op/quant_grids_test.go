package op

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// The published checksums of the code books.
func TestCodeBooks(t *testing.T) {
	for _, b := range CodeBooks() {
		var entries []byte
		for r := range b.Codes {
			for e := range b.Dim {
				entries = append(entries, byte(b.At(r, e)))
			}
		}
		if sum := sha256.Sum256(entries); hex.EncodeToString(sum[:]) != b.SHA256 {
			t.Errorf("%s: %d rows with another checksum", b.Name, len(b.Codes))
		}
	}
}
