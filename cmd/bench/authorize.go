package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"portal/models/modelstest/subprocess"
)

// authorize compares the endpoints for gateways with the token endpoint. It also compares nginx
// that calls one of them for each request with nginx alone.
func authorize(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "authorize", 1, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	token, err := f.token(ctx)
	if err != nil {
		return err
	}
	gateway, err := b.startNginx(ctx, f.server.address)
	if err != nil {
		return err
	}
	defer gateway.stop()
	key := f.tenant.keys[0]
	issue := f.load("POST /api/widget/token", f.tenant.keys[:1])
	loads := []*load{
		issue,
		f.fixedLoad("/api/authorize", f.server, "/api/authorize", key.secret),
		f.fixedLoad("/api/authorize with an agent", f.server, "/api/authorize?agentId="+key.agentID, key.secret),
		f.fixedLoad("/widget/authorize", f.server, "/widget/authorize", token),
		f.fixedLoad("nginx alone", gateway, "/open", key.secret),
		f.fixedLoad("nginx with auth_request", gateway, "/guarded", key.secret),
	}
	for _, l := range loads[1:] {
		if err := l.expect(ctx); err != nil {
			return err
		}
	}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	t := table{
		title: "Gateways",
		about: fmt.Sprintf("PostgreSQL, one key or one widget token, %d connections. nginx proxies to a server that returns a constant; "+
			"with auth_request it asks /api/authorize for each request first.", busy),
		header: []string{"", "requests/s", "vs. token", "p50", "p99", "CPU server", "CPU database"},
	}
	for i, l := range loads {
		t.addLoad([]string{l.name}, results[i], results[0])
	}
	b.print(t)
	rate, p99 := (*measurement).rate, (*measurement).p99
	b.atLeast("/api/authorize: requests/s vs. the token endpoint", results[1].ratio(results[0], rate), 1.5)
	b.atMost("/api/authorize: p99 vs. the token endpoint", results[1].ratio(results[0], p99), 1)
	b.atLeast("/widget/authorize: requests/s vs. the token endpoint", results[3].ratio(results[0], rate), 1)
	b.atMost("/widget/authorize: p99 vs. the token endpoint", results[3].ratio(results[0], p99), 1)
	_, _ = fmt.Fprintf(b.out, "nginx with auth_request has %s of the throughput of nginx alone.\n\n", ratio(results[5].ratio(results[4], rate)))
	return nil
}

// token returns a widget token.
func (f *fixture) token(ctx context.Context) (string, error) {
	c, err := dial(ctx, f.server.address, time.Now().Add(stopTimeout))
	if err != nil {
		return "", err
	}
	defer c.close()
	_, body, err := c.requestToken(f.tenant.keys[0])
	if err != nil {
		return "", err
	}
	var token tokenBody
	err = json.Unmarshal(body, &token)
	return token.AccessToken, err
}

// fixedLoad returns a load of GET requests with a bearer credential.
func (f *fixture) fixedLoad(name string, s *server, path, credential string) *load {
	l := f.load(name, nil)
	l.servers = []*server{s}
	l.fixed = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAuthorization: Bearer %s\r\n\r\n", path, host, credential)
	return l
}

// expect stores the response to the fixed request, which must be a 200.
func (l *load) expect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return l.servers[0].child.AwaitReady(ctx, func(ctx context.Context) error {
		c, err := dial(ctx, l.servers[0].address, time.Now().Add(stopTimeout))
		if err != nil {
			return err
		}
		defer c.close()
		got, body, err := c.send(l.fixed)
		if err == nil && got.status != http.StatusOK {
			err = fmt.Errorf("%s: status %d: %s", l.name, got.status, body)
		}
		l.want = got
		return err
	})
}

// nginxConfig has the addresses of the gateway, its upstream and the portal, and the directory of
// its temporary files. The upstream is nginx too, because it costs the least.
const nginxConfig = `daemon off; worker_processes 2; pid %[4]s/pid; error_log stderr; user root;
events { worker_connections 4096; }
http {
	access_log off; keepalive_requests 1000000000;
	client_body_temp_path %[4]s/body; proxy_temp_path %[4]s/proxy; fastcgi_temp_path %[4]s/fastcgi;
	uwsgi_temp_path %[4]s/uwsgi; scgi_temp_path %[4]s/scgi;
	upstream backend { server %[2]s; keepalive 64; keepalive_requests 1000000000; }
	upstream portal { server %[3]s; keepalive 64; keepalive_requests 1000000000; }
	proxy_http_version 1.1;
	proxy_set_header Connection "";
	server { listen %[2]s; location / { return 200 "constant"; } }
	server {
		listen %[1]s;
		location /open { proxy_pass http://backend; }
		location /guarded {
			auth_request /authorize;
			auth_request_set $account_id $upstream_http_x_account_id;
			proxy_set_header Connection "";
			proxy_set_header X-Account-Id $account_id;
			proxy_pass http://backend;
		}
		location = /authorize {
			internal;
			proxy_pass_request_headers off;
			proxy_pass_request_body off;
			proxy_set_header Content-Length "";
			proxy_set_header Connection "";
			proxy_set_header Authorization $http_authorization;
			proxy_pass http://portal/api/authorize;
		}
	}
}
`

// startNginx starts nginx in front of a portal.
func (b *bench) startNginx(ctx context.Context, portal string) (*server, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // not on every user's path
	}
	address, addressErr := subprocess.FreeAddress()
	backend, backendErr := subprocess.FreeAddress()
	if err := errors.Join(addressErr, backendErr); err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, nginxConfig, address, backend, portal, b.dir), 0o600); err != nil {
		return nil, err
	}
	return b.launch(ctx, "nginx", address, program, []string{"-p", b.dir, "-c", path, "-e", "stderr"})
}
