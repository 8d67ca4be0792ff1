package rlx

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

const (
	mountV2      = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
	mountV1      = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	mountOfGroup = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
	mountSpace   = `31 23 0:28 / /my\040groups rw shared:4 - cgroup2 none rw` + "\n"
)

// The worker count on made-up machines of 16 processors: files of the kernel by name, and what of them a process may use.
func TestUsableThreads(t *testing.T) {
	for _, c := range []struct {
		name            string
		procs, affinity int
		want            int
		files           map[string]string
	}{
		{"no cgroups at all", 16, 16, 16, nil},
		{"affinity", 16, 3, 3, nil},
		{"GOMAXPROCS", 2, 16, 2, nil},
		{"v2", 16, 16, 7, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/cpu.max": "765000 100000\n"}},
		{"v2 affinity below quota", 16, 2, 2, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/cpu.max": "400000 100000\n"}},
		{"v2 below one", 16, 16, 1, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/cpu.max": "25000 100000\n"}},
		{"v2 max", 16, 16, 16, map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/a/cpu.max": "max 100000\n"}},
		{"v2 parent is tighter", 16, 16, 3, map[string]string{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/a/b/cpu.max": "800000 100000\n", "sys/fs/cgroup/a/cpu.max": "300000 100000\n"}},
		{"v2 parent is wider", 16, 16, 2, map[string]string{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/a/b/cpu.max": "100000 50000\n", "sys/fs/cgroup/a/cpu.max": "900000 100000\n"}},
		{"v2 group of nobody", 16, 16, 16, map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/b/cpu.max": "100000 100000\n"}},
		{"v2 without a list of mounts", 16, 16, 4, map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "450000 100000\n"}},
		{"v2 under a path with a space", 16, 16, 5, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountSpace, "my groups/cpu.max": "500000 100000\n"}},
		{"v2 above its namespace", 16, 16, 6, map[string]string{"proc/self/cgroup": "0::/../other\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/cpu.max": "600000 100000\n"}},
		{"v1", 16, 16, 7, map[string]string{"proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a\n0::/\n", "proc/self/mountinfo": mountV1,
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "765000\n", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"}},
		{"v1 no limit", 16, 16, 16, map[string]string{"proc/self/cgroup": "3:cpu,cpuacct:/\n", "proc/self/mountinfo": mountV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}},
		{"v1 cpuset is not cpu", 16, 16, 16, map[string]string{"proc/self/cgroup": "3:cpuset:/\n", "proc/self/mountinfo": mountV1,
			"sys/fs/cgroup/cpuset/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpuset/cpu.cfs_period_us": "100000\n"}},
		{"v1 without a period", 16, 16, 16, map[string]string{"proc/self/cgroup": "3:cpu:/\n", "proc/self/mountinfo": mountV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "100000\n"}},
		{"v1 a container sees its own group", 16, 16, 4, map[string]string{"proc/self/cgroup": "3:cpu:/docker/abc/x\n", "proc/self/mountinfo": mountOfGroup,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}},
		{"v1 the mount shows another group", 16, 16, 4, map[string]string{"proc/self/cgroup": "3:cpu:/kube/pod\n", "proc/self/mountinfo": mountOfGroup,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}},
		{"both", 16, 16, 2, map[string]string{"proc/self/cgroup": "3:cpu,cpuacct:/\n0::/\n", "proc/self/mountinfo": mountV1 + mountV2, "sys/fs/cgroup/cpu.max": "500000 100000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}},
		{"malformed", 16, 16, 16, map[string]string{"proc/self/cgroup": "\n0::\nx\n0::/a:b\n0::/a\n", "proc/self/mountinfo": "x\n - \n1 2 - cgroup2\n" + mountV2,
			"sys/fs/cgroup/cpu.max": "", "sys/fs/cgroup/a/cpu.max": "12 0\n", "sys/fs/cgroup/a:b/cpu.max": "a b c\n"}},
		{"negative and overflowing numbers", 16, 16, 16, map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/cpu.max": "-5 100000\n", "sys/fs/cgroup/a/cpu.max": "99999999999999999999 1\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := usableThreads(root, c.procs, c.affinity); got != c.want {
				t.Errorf("%d threads, expected %d", got, c.want)
			}
		})
	}
}

func negation(t testing.TB, opts ...Option) (*Program, error) {
	t.Helper()
	g := NewGraph("negation")
	g.Output("y", op.Neg(g.Input("x", F32, Shape(4))))
	p, err := Compile(t.Context(), g, opts...)
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

// The option wins over the environment, which wins over the machine.
func TestThreadsOptions(t *testing.T) {
	machine := min(runtime.GOMAXPROCS(0), affinity())
	for _, c := range []struct {
		env       string
		opts      []Option
		want, cap int // threads; or 1 to cap
	}{
		{"", nil, 0, machine},
		{"3", nil, 3, 0},
		{"", []Option{Threads(2)}, 2, 0},
		{"3", []Option{Threads(5)}, 5, 0},
		{"2000000000", []Option{Threads(1)}, 1, 0},
	} {
		t.Setenv("RLX_NUM_THREADS", c.env)
		cfg := newConfig(c.opts)
		if err := cfg.check(); err != nil {
			t.Errorf("RLX_NUM_THREADS=%q, %d options: %v", c.env, len(c.opts), err)
		}
		if n := cfg.threads.n; n != c.want && (c.cap == 0 || n < 1 || n > c.cap) {
			t.Errorf("RLX_NUM_THREADS=%q, %d options: %d threads, expected %d, or 1 to %d", c.env, len(c.opts), n, c.want, c.cap)
		}
		p, err := negation(t, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if p.Backend() == "cpu" && p.Device().Threads != cfg.threads.n {
			t.Errorf("the device has %d threads, expected %d", p.Device().Threads, cfg.threads.n)
		}
	}
}

// What is no number of threads is an error of Compile that names it.
func TestThreadsErrors(t *testing.T) {
	for _, c := range []struct {
		env       string
		opts      []Option
		name, got string
	}{
		{"abc", nil, "RLX_NUM_THREADS", "abc"},
		{"0", nil, "RLX_NUM_THREADS", "0"},
		{"-1", nil, "RLX_NUM_THREADS", "-1"},
		{"1.5", nil, "RLX_NUM_THREADS", "1.5"},
		{" 2", nil, "RLX_NUM_THREADS", " 2"},
		{"9999999999999999999999", nil, "RLX_NUM_THREADS", "9999999999999999999999"},
		{"abc", []Option{Threads(2)}, "RLX_NUM_THREADS", "abc"},
		{"", []Option{Threads(0)}, "Threads", "0"},
		{"2", []Option{Threads(-1)}, "Threads", "-1"},
	} {
		t.Setenv("RLX_NUM_THREADS", c.env)
		_, err := negation(t, c.opts...)
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Option != c.name || oe.Got != c.got || !strings.Contains(oe.Want, "from 1") {
			t.Errorf("RLX_NUM_THREADS=%q, %d options: error %v, expected an OptionError of %s with %q", c.env, len(c.opts), err, c.name, c.got)
		}
	}
}
