package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"
)

const healthcheckTimeout = 3 * time.Second

type healthcheckCommand struct {
	Addr string `placeholder:"HOST:PORT" help:"Listen address of the portal. Default: PORTAL_ADDR."`
}

// Run returns an error unless the portal on the address is ready.
func (c healthcheckCommand) Run(ctx context.Context) error {
	s, err := readSettings("PORTAL_ADDR")
	if c.Addr != "" {
		if s.addr, err = address(c.Addr); err != nil {
			err = inputError("--addr: %s", err)
		}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	target := dialAddress(s.addr)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target+"/readyz", http.NoBody)
	if err != nil {
		return inputError("PORTAL_ADDR: invalid host; write host:port, such as 127.0.0.1:8080")
	}
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request) // without a proxy
	if err != nil {
		return fmt.Errorf("no portal answers at %s: %s; start it, or set PORTAL_ADDR or --addr to its listen address", target,
			cmp.Or(systemCause(err), "its response is not HTTP"))
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusServiceUnavailable:
		return fmt.Errorf("the portal at %s is not ready: it is stopping, or its database does not answer; its log says more", target)
	default:
		return fmt.Errorf("not ready: %s answers with %s, so it is probably no portal; set PORTAL_ADDR or --addr to its listen address", target, response.Status)
	}
}
