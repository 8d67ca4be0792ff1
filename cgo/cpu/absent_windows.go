package cpu

import "github.com/rlx-ml/rlx-go/rlx/backend"

func init() { backend.RegisterAbsent("cpu", "native code builds on linux and darwin") }
