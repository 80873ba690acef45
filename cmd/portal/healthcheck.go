package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
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
	addr := c.Addr
	if strings.HasPrefix(addr, ":") { // on all addresses, as 0.0.0.0, which Dial replaces itself
		addr = "localhost" + addr
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}
