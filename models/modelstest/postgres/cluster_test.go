package postgres_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
)

// startAndWait is the environment variable that makes the test program start a cluster, print its
// address and directory, and wait.
const startAndWait = "TEST_START_CLUSTER_AND_WAIT"

func TestMain(m *testing.M) {
	if os.Getenv(startAndWait) == "" {
		modelstest.Main(m)
	}
	cluster, err := postgres.Start("")
	if err != nil {
		panic(err)
	}
	server, err := url.Parse(cluster.URL("postgres"))
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, server.Host, filepath.Dir(cluster.LogFile()))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestKilledProcessLeavesNoServer(t *testing.T) {
	command := exec.Command(modelstest.Value(os.Executable())(t))
	command.Env, command.Stderr = append(os.Environ(), startAndWait+"=1"), os.Stderr
	modelstest.Value(command.StdinPipe())(t) // open until the process is killed
	output := modelstest.Value(command.StdoutPipe())(t)
	modelstest.Must(t, command.Start())
	var address, dir string
	_, err := fmt.Fscanln(output, &address, &dir)
	if err == nil {
		err = dial(address)
	}
	modelstest.Must(t, command.Process.Kill())
	_ = command.Wait() // reports the signal
	modelstest.Must(t, err)

	modelstest.Eventually(t, "the server is gone", func() bool { return dial(address) != nil })
	modelstest.Eventually(t, "the server's files are deleted", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

func dial(address string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}
