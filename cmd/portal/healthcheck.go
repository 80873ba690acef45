package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const healthcheckTimeout = 3 * time.Second

type healthcheckCommand struct {
	Addr string `env:"PORTAL_ADDR" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Listen address of the portal."`
}

// Run returns an error unless the portal on the address is ready.
func (c healthcheckCommand) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+dialAddress(c.Addr)+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request) // without a proxy
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}

// dialAddress returns the address at which clients on the same host reach a portal that listens on
// addr.
func dialAddress(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip == netip.IPv4Unspecified():
		host = "127.0.0.1" // works without an entry for localhost
	case host == "" || err == nil && ip.IsUnspecified():
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
