package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"portal/models/modelstest/postgres"
)

// cluster is the private PostgreSQL server of a run.
type cluster struct {
	*postgres.Cluster

	admin      *pgx.Conn // to the database "postgres"; for one goroutine at a time
	postmaster int       // process id
	version    string
}

// startCluster starts a server with the durability settings of production, and with enough memory
// for tables of millions of keys.
func startCluster(ctx context.Context) (*cluster, error) {
	settings := []string{
		"fsync=on", "synchronous_commit=on", "full_page_writes=on",
		"shared_buffers=512MB", "maintenance_work_mem=512MB", "max_wal_size=4GB",
	}
	started, err := postgres.Start(settings...) //nolint:contextcheck // it has its own time limit
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: started}
	if err := c.connect(ctx); err != nil {
		return nil, errors.Join(err, c.stop(ctx))
	}
	return c, nil
}

func (c *cluster) connect(ctx context.Context) (err error) {
	if c.admin, err = pgx.Connect(ctx, c.URL("postgres")); err != nil {
		return err
	}
	var pidFile string
	err = c.admin.QueryRow(ctx, "SELECT current_setting('server_version'), pg_read_file('postmaster.pid')").Scan(&c.version, &pidFile)
	if err != nil {
		return err
	}
	pid, _, _ := strings.Cut(pidFile, "\n")
	c.postmaster, err = strconv.Atoi(pid)
	return err
}

// stop stops the server and deletes its files.
func (c *cluster) stop(ctx context.Context) error {
	if c.admin != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.admin.Close(ctx) // the server ends it anyway
	}
	return c.Stop() //nolint:contextcheck // it has its own time limit
}

// create creates an empty database and returns its URL.
func (c *cluster) create(ctx context.Context, name string) (string, error) {
	if _, err := c.admin.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return c.URL(name), nil
}

// drop drops a database and ends its connections.
func (c *cluster) drop(ctx context.Context, name string) error {
	_, err := c.admin.Exec(ctx, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	return err
}

// usage returns the CPU time that all processes of the server have used since its start, and the
// bytes that they have written.
func (c *cluster) usage() (cpu time.Duration, written int64, err error) {
	return processTree(c.postmaster)
}

// transactions returns the number of committed transactions in all databases. A statement outside a
// transaction counts as one. PostgreSQL updates the number once a second.
func (c *cluster) transactions(ctx context.Context) (n int64, err error) {
	err = c.admin.QueryRow(ctx, "SELECT sum(xact_commit)::bigint FROM pg_stat_database").Scan(&n)
	return n, err
}
