//go:build vulkan && cgo && !windows

package vulkan_test

import (
	"os"
	"strings"
	"testing"

	_ "github.com/rlx-ml/rlx-go/cgo/vulkan"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

func TestZZRows(t *testing.T) {
	conform.Run(conform.Wrap(t), "vulkan", conform.Rows(strings.Split(os.Getenv("ZZ_ROWS"), ",")...))
}
