package rlx

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// maxThreads is beyond what any backend takes, and fits its integers.
const maxThreads = 1 << 16

// threadCount is how many threads a run may use, and why that number is illegal.
type threadCount struct {
	n   int
	err error
}

// fromEnv reads RLX_NUM_THREADS, or looks at what the process may use where that is not given.
func (t *threadCount) fromEnv() {
	text := os.Getenv("RLX_NUM_THREADS")
	if text == "" {
		t.n = usableThreads(os.DirFS("/"), runtime.GOMAXPROCS(0), affinity())
		return
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		t.err = &OptionError{"RLX_NUM_THREADS", text, "a number of threads from 1 on"}
		return
	}
	t.n = int(min(n, maxThreads))
}

// set is the option: it overrides the environment, but a malformed environment stays an error.
func (t *threadCount) set(n int) {
	if t.n = min(n, maxThreads); n < 1 && t.err == nil {
		t.err = &OptionError{"Threads", fmt.Sprint(n), "a number of threads from 1 on"}
	}
}

// usableThreads is the least of GOMAXPROCS, the processors of the affinity mask, and the whole processors of the CPU quota: a quota of 7.65
// gives 7, since an eighth thread would be stopped for a third of each period, and the others wait for it.
func usableThreads(root fs.FS, procs, affinity int) int {
	return max(1, int(min(float64(procs), float64(affinity), math.Floor(cpuQuota(root)))))
}

// cpuQuota is the least CPU quota, in processors, of the control groups that this process is in, up to the root; +Inf without one. What is
// missing or malformed limits nothing. root is the file system of the machine.
func cpuQuota(root fs.FS) float64 {
	quota := math.Inf(1)
	mounts := cgroupMounts(root)
	for _, line := range lines(root, "proc/self/cgroup") {
		f := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(f) != 3 {
			continue
		}
		v2 := f[0] == "0" && f[1] == ""
		if !v2 && !slices.Contains(strings.Split(f[1], ","), "cpu") {
			continue
		}
		read := quotaV1
		if v2 {
			read = quotaV2
		}
		for _, m := range mounts {
			if m.v2 == v2 {
				quota = min(quota, m.least(root, f[2], read))
			}
		}
	}
	return quota
}

// cgroupMount is where the hierarchy of the CPU controller is mounted, and which group of it stands there.
type cgroupMount struct {
	v2        bool
	at, group string
}

// least is the least quota of a group and those around it, as far as the mount shows them.
func (m cgroupMount) least(root fs.FS, group string, read func(fs.FS, string) float64) float64 {
	below := ""
	if group = path.Clean("/" + group); m.group == "/" || group == m.group || strings.HasPrefix(group, m.group+"/") {
		below = strings.TrimPrefix(group, strings.TrimSuffix(m.group, "/"))
	} // else the group's path is that of another namespace: what the mount shows is the container's own
	quota := math.Inf(1)
	for dir := path.Clean("/" + below); ; dir = path.Dir(dir) {
		quota = min(quota, read(root, path.Join(m.at, dir)))
		if dir == "/" {
			return quota
		}
	}
}

// cgroupMounts lists the mounts of the CPU controller; without a readable list, the usual ones.
func cgroupMounts(root fs.FS) []cgroupMount {
	list := lines(root, "proc/self/mountinfo")
	if len(list) == 0 {
		return []cgroupMount{{true, "sys/fs/cgroup", "/"}, {true, "sys/fs/cgroup/unified", "/"}, {false, "sys/fs/cgroup/cpu", "/"}, {false, "sys/fs/cgroup/cpu,cpuacct", "/"}}
	}
	var mounts []cgroupMount
	for _, line := range list {
		// ID parent major:minor group mountpoint options tags... - type source options
		left, right, _ := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 5 || len(r) < 3 {
			continue
		}
		v2 := r[0] == "cgroup2"
		if v2 || r[0] == "cgroup" && slices.Contains(strings.Split(r[2], ","), "cpu") {
			mounts = append(mounts, cgroupMount{v2, strings.TrimPrefix(path.Clean(unescape.Replace(l[4])), "/"), path.Clean(unescape.Replace(l[3]))})
		}
	}
	return mounts
}

// unescape undoes what the kernel does to the paths of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// quotaV2 reads cpu.max: "QUOTA PERIOD" or "max PERIOD".
func quotaV2(root fs.FS, dir string) float64 {
	f := strings.Fields(strings.Join(lines(root, path.Join(dir, "cpu.max")), " "))
	if len(f) != 2 {
		return math.Inf(1)
	}
	return ratio(f[0], f[1])
}

// quotaV1 reads cpu.cfs_quota_us, -1 for none, and cpu.cfs_period_us.
func quotaV1(root fs.FS, dir string) float64 {
	q, p := lines(root, path.Join(dir, "cpu.cfs_quota_us")), lines(root, path.Join(dir, "cpu.cfs_period_us"))
	if len(q) != 1 || len(p) != 1 {
		return math.Inf(1)
	}
	return ratio(q[0], p[0])
}

func ratio(quota, period string) float64 {
	q, err1 := strconv.ParseInt(quota, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return math.Inf(1)
	}
	return float64(q) / float64(p)
}

// lines is the lines of a small file without the empty ones; none if it cannot be read.
func lines(root fs.FS, name string) []string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool {
		return strings.TrimSpace(l) == ""
	})
}
