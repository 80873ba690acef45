package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Names of metrics without labels.
const (
	residentMemory = "process_resident_memory_bytes"
	openFiles      = "process_open_fds"
	goroutines     = "go_goroutines"
	pendingKeys    = "portal_usage_pending_keys"
	flushLag       = "portal_usage_flush_lag_seconds"
	writtenKeys    = "portal_usage_written_keys_total"
)

// scrape returns the metrics of a portal that have no labels.
func (s *server) scrape(ctx context.Context) (values map[string]float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+s.metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: status %s", response.Status)
	}
	return parseMetrics(response.Body)
}

// parseMetrics reads the text format of Prometheus. It skips metrics with labels.
func parseMetrics(from io.Reader) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if !found || name == "#" || strings.Contains(name, "{") {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		values[name] = number
	}
	return values, lines.Err()
}

// watch passes the metrics to each at intervals until ctx ends.
func (s *server) watch(ctx context.Context, interval time.Duration, each func(map[string]float64)) error {
	for ctx.Err() == nil {
		values, err := s.scrape(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			each(values)
		}
		sleep(ctx, interval)
	}
	return nil
}
