package exec

import "time"

// Clock is the time on the clock of profiles.
func Clock() uint64 { return uint64(time.Since(start)) }

// Carries says whether staged commands of the runner work on memory of their own.
func (r *Runner) Carries() bool { return r.carries() }
