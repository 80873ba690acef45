package mailertest

import (
	"context"
	_ "embed" // for the servers
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

//go:embed debian.sh
var debian string

// Debian is a mail server of Debian that runs until the end of the test. It has the mailbox
// ada@example.com and does not relay.
type Debian struct {
	Port string
	Log  *modelstest.LogBuffer
}

// StartDebian starts postfix or opensmtpd, which are on Linux alone. Postfix refuses clients that
// do not introduce themselves by a full name.
func StartDebian(t testing.TB, name string) *Debian {
	t.Helper()
	folder, err := subprocess.Above("bin/tools/" + name)
	if err != nil {
		t.Fatalf("bin/tools/%s is missing: run make bin/tools/%s", name, name)
	}
	address := modelstest.Value(subprocess.FreeAddress())(t)
	server := &Debian{Log: &modelstest.LogBuffer{}}
	_, server.Port, err = net.SplitHostPort(address)
	modelstest.Must(t, err)
	line := []string{
		"unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", debian, "sh",
		name, filepath.Join(folder, "bin", "tools", name), server.Port, t.TempDir(),
	}
	if os.Geteuid() != 0 {
		// It gives the script a user namespace in which it is root.
		line = append([]string{"buildah", "unshare"}, line...)
	}
	command := exec.Command(line[0], line[1:]...) //nolint:gosec,noctx // the script above; it ends with its input
	command.Stdout, command.Stderr = server.Log, server.Log
	input := modelstest.Value(command.StdinPipe())(t)
	child := modelstest.Value(subprocess.Start(command))(t)
	t.Cleanup(func() {
		_ = input.Close()
		_ = child.AwaitExit(10 * time.Second)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = child.AwaitReady(ctx, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	if err != nil {
		t.Fatalf("start %s: %v\n%s", name, err, server.Log)
	}
	return server
}
