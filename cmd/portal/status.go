package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"portal/models"
	"portal/models/database"
)

type statusCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// statusReport is what the command prints. The ages are in seconds, and null if nothing waits.
type statusReport struct {
	Version string `json:"version"`
	Schema  string `json:"schema"`
	Server  string `json:"server"`

	Database      string `json:"database"`
	DatabaseBytes int64  `json:"databaseBytes"`

	Accounts   int   `json:"accounts"`
	ActiveKeys int   `json:"activeKeys"`
	OpenCalls  int64 `json:"openCalls"`

	WaitingMails     int64  `json:"waitingMails"`
	OldestMailAge    *int64 `json:"oldestMailAge"`
	Deliveries       int64  `json:"waitingDeliveries"`
	OldestDelivery   *int64 `json:"oldestDeliveryAge"`
	FailingEndpoints int64  `json:"failingEndpoints"`
	LongestFailing   *int64 `json:"longestFailingAge"`

	LastBackup *time.Time `json:"lastBackup"`
}

// Run prints the state of the database. Unlike other commands, it updates no schema.
func (c statusCommand) Run(ctx context.Context, t terminal) error {
	d, err := existingDatabase(ctx)
	if err != nil {
		return err
	}
	facts, err := database.Inspect(ctx, d.url)
	if err != nil {
		return err
	}
	if facts.Pending > 0 {
		return fmt.Errorf("the schema of %s, version %s, is older than this portal, %s: update it with: portal migrate",
			database.Name(d.url), facts.Schema, version)
	}
	return withStore(ctx, func(store *models.Store) error {
		figures, err := store.Figures(ctx)
		if err != nil {
			return err
		}
		backlog, err := store.Backlog(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		s := statusReport{
			Version: version, Schema: facts.Schema, Server: facts.Server, Database: database.Name(d.url), DatabaseBytes: figures.DatabaseSize,
			Accounts: figures.Accounts, ActiveKeys: figures.ActiveKeys, OpenCalls: backlog.OpenCalls,
			WaitingMails: backlog.Mails.Count, OldestMailAge: age(backlog.Mails, now),
			Deliveries: backlog.Deliveries.Count, OldestDelivery: age(backlog.Deliveries, now),
			FailingEndpoints: backlog.Failing.Count, LongestFailing: age(backlog.Failing, now),
		}
		if !figures.LastBackup.IsZero() {
			s.LastBackup = &figures.LastBackup
		}
		if c.JSON {
			return writeJSON(t.out, s)
		}
		return s.write(t)
	})
}

// age returns the age of the oldest in seconds, or nil if there is none.
func age(w models.Waiting, now time.Time) *int64 {
	if w.Since.IsZero() {
		return nil
	}
	return new(int64(max(0, now.Sub(w.Since)) / time.Second))
}

func (s statusReport) write(t terminal) error {
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range []struct{ name, text string }{
		{"version", s.Version},
		{"schema", s.Schema},
		{"database", fmt.Sprintf("%s, %s, %.1f MiB", s.Server, s.Database, float64(s.DatabaseBytes)/(1<<20))},
		{"accounts", fmt.Sprint(s.Accounts)},
		{"active keys", fmt.Sprint(s.ActiveKeys)},
		{"open calls", fmt.Sprint(s.OpenCalls)},
		{"emails waiting", withAge(s.WaitingMails, s.OldestMailAge, "the oldest for")},
		{"deliveries waiting", withAge(s.Deliveries, s.OldestDelivery, "the oldest for")},
		{"endpoints failing", withAge(s.FailingEndpoints, s.LongestFailing, "the longest for")},
		{"last backup", moment(s.LastBackup)},
	} {
		_, _ = fmt.Fprintln(table, row.name+"\t"+row.text)
	}
	return table.Flush() // also returns the errors of the lines
}

func withAge(count int64, seconds *int64, which string) string {
	if seconds == nil {
		return fmt.Sprint(count)
	}
	return fmt.Sprintf("%d, %s %s", count, which, time.Duration(*seconds)*time.Second)
}
