package subprocess_test

import (
	"fmt"
	"net"
	"testing"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// With ports that are free only when they are chosen, two of these would be the same.
func TestFreePortsAreReserved(t *testing.T) {
	reserved := map[int]bool{}
	for range 400 {
		port := modelstest.Value(subprocess.FreePort())(t)
		if reserved[port] {
			t.Fatalf("port %d is free twice", port)
		}
		reserved[port] = true
	}
	listen := func(address string) int {
		listener := modelstest.Value(net.Listen("tcp", address))(t)
		modelstest.Must(t, listener.Close())
		return listener.Addr().(*net.TCPAddr).Port
	}
	for range 400 {
		if port := listen("127.0.0.1:0"); reserved[port] {
			t.Fatalf("a listener without a port gets the reserved port %d", port)
		}
	}
	for port := range reserved {
		// A server that has its port from a test does this.
		listen(fmt.Sprintf("127.0.0.1:%d", port))
	}
}
