package middleware

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// FuzzUsualLine compares each line that is written without package slog with the one of slog.
func FuzzUsualLine(f *testing.F) {
	at := time.Date(2026, time.March, 14, 15, 9, 26, 535897000, time.UTC)
	some := uuid.MustParse("0198c2f4-7a31-7c6e-9d52-3f8be6a1c004").String()
	add := func(method, route, requestID, client string) {
		f.Add(at.Unix(), int64(at.Nanosecond()), 3600, method, route, 200, int64(1234567), requestID, client, some, some, some)
	}
	add("POST", "/api/widget/token", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "192.0.2.1")
	for _, text := range []string{
		"", `"quoted"`, `\`, "\n\r\t\b\x00\x1b", "\x7f", "<a href='?a&b'>", "\xff\xc0\x80", "Zoë\u2028\u2029\ufffd😀", strings.Repeat("long", 200), strings.Repeat("\x01", 200),
	} {
		add(text, "/", "id", "::1")
		add("GET", text, "id", "::1")
		add("GET", "/", text, "::1")
		add("GET", "/", "id", text)
	}
	f.Add(int64(0), int64(0), 0, "GET", "/", 0, int64(0), "", "", "", "", "")
	f.Add(at.Unix(), int64(100), -43_200, "GET", "/", -1, int64(-1), "id", "::1", some, "", "")
	f.Add(at.Unix(), int64(999_999_999), 20_700, "GET", "/", 1_000_000, int64(1)<<62, "id", "::1", "", some, "")
	f.Add(int64(253_402_300_799), int64(0), 0, "GET", "/", 200, int64(1), "id", "::1", "", "", some)
	f.Fuzz(func(t *testing.T, seconds, nanoseconds int64, zone int, method, route string, status int, took int64, requestID, client, account, key, user string) {
		line := accessLine{
			at:     time.Unix(seconds, nanoseconds).In(time.FixedZone("", zone%86_400)),
			method: method, route: route, status: status, took: time.Duration(took), requestID: requestID, client: client,
			caller: Caller{Account: idOf(account), Key: idOf(key), User: idOf(user)},
		}
		if year := line.at.Year(); year < 1970 || year > 9999 {
			return // not the time of a request
		}
		var ours, theirs bytes.Buffer
		if !line.writeJSON(&ours) {
			if ours.Len() > 0 || !strings.ContainsFunc(method+route+requestID+client, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
				t.Errorf("refused to write the line, and wrote %q", ours.String())
			}
			return
		}
		record := slog.NewRecord(line.at, slog.LevelInfo, "request", 0)
		record.AddAttrs(line.attrs()...)
		if err := slog.NewJSONHandler(&theirs, nil).Handle(t.Context(), record); err != nil || ours.String() != theirs.String() {
			t.Errorf("wrote %q, slog %q, %v", ours.String(), theirs.String(), err)
		}
	})
}

// idOf returns the id in the text, or else the zero one.
func idOf(text string) uuid.UUID {
	id, _ := uuid.Parse(text)
	return id
}

// The two ways to write the usual line.
func BenchmarkUsualLine(b *testing.B) {
	line := accessLine{
		at: time.Now(), method: "POST", route: "/api/widget/token", status: 200, took: time.Millisecond,
		requestID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", client: "192.0.2.1", caller: Caller{Account: uuid.New(), Key: uuid.New()},
	}
	var written bytes.Buffer
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			written.Reset()
			line.writeJSON(&written)
		}
	})
	b.Run("slog", func(b *testing.B) {
		b.ReportAllocs()
		handler := slog.NewJSONHandler(&written, nil)
		for b.Loop() {
			written.Reset()
			record := slog.NewRecord(line.at, slog.LevelInfo, "request", 0)
			record.AddAttrs(line.attrs()...)
			_ = handler.Handle(b.Context(), record)
		}
	})
}
