package modelstest

import (
	"context"
	"sync"
	"testing"

	"portal/models/modelstest/livekitserver"
)

// liveKit is the LiveKit server that all tests of this process share.
var liveKit struct {
	once   sync.Once
	server *livekitserver.Server
	err    error
}

// LiveKit returns a LiveKit server that other tests use too. The first call starts it.
func LiveKit(t testing.TB) *livekitserver.Server {
	t.Helper()
	liveKit.once.Do(func() { liveKit.server, liveKit.err = livekitserver.Start(context.Background()) })
	Must(t, liveKit.err)
	return liveKit.server
}

func stopLiveKit() {
	if liveKit.server != nil {
		liveKit.server.Stop()
	}
}
