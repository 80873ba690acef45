package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

const (
	// leakSlots is how many reports use the database at the same time, public ones and those of
	// scanners. Together they are fewer than the connections that pages use too.
	leakSlots = 2
	// leakTimeout limits the work of a report and its wait for a slot. GitHub waits 30 seconds.
	leakTimeout = 20 * time.Second

	maxLeaksOfAddress = 60 // public reports in each leakWindow
	leakWindow        = time.Hour
)

// leakReports have the endpoints for reports of leaked keys.
type leakReports struct {
	*site

	limit *rateLimiter // of the public reports of each address
	// Public reports have slots and memory of their own, so that strangers do not keep scanners
	// out.
	publicSlots, slots   middleware.Slots
	publicBodies, bodies leakBodies

	scanners    []*scanner   // that sign their reports
	gitLabToken *sharedToken // nil: off
	counts      *prometheus.CounterVec
}

// leakRefused is the outcome of a report whose sender was refused.
const leakRefused = "refused"

func newLeakReports(s *site) *leakReports {
	l := &leakReports{
		site: s,
		limit: &rateLimiter{
			Limiter: middleware.NewWindowLimiter(maxLeaksOfAddress, leakWindow, s.Now),
			name:    "address", things: "from this address", policy: fmt.Sprintf(`"address";q=%d;w=%d`, maxLeaksOfAddress, int(leakWindow.Seconds())),
		},
		publicSlots: middleware.NewSlots(leakSlots), slots: middleware.NewSlots(leakSlots),
		publicBodies: leakBodies{ofAddress: maxLeakBodiesOfAddress}, bodies: leakBodies{ofAddress: maxScannerBodiesOfAddress},
		gitLabToken: newSharedToken(s.Scanners.GitLabToken),
		counts: promauto.With(s.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "portal_leak_reports_total",
			Help: "API keys reported as leaked, by source and outcome; inactive ones were revoked or had expired before; refused counts requests.",
		}, []string{"source", "outcome"}),
	}
	if s.Scanners.GitHubKeys != "" {
		l.scanners = append(l.scanners, newScanner(s, models.LeakGitHub, "Github", s.Scanners.GitHubKeys))
	}
	if s.Scanners.GitLabKeys != "" {
		l.scanners = append(l.scanners, newScanner(s, models.LeakGitLab, "Gitlab", s.Scanners.GitLabKeys))
	}
	for _, from := range []models.LeakSource{models.LeakPublic, models.LeakGitHub, models.LeakGitLab} {
		for _, outcome := range []models.LeakOutcome{models.LeakRevoked, models.LeakInactive, models.LeakUnknown, leakRefused} {
			l.counts.WithLabelValues(string(from), string(outcome))
		}
	}
	return l
}

// handle adapts a handler of reports and counts the requests that it refuses.
func (l *leakReports) handle(from models.LeakSource, h handler) gin.HandlerFunc {
	return handle(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		err := h(c)
		if err != nil && problem.From(err).Status < http.StatusInternalServerError {
			l.counts.WithLabelValues(string(from), leakRefused).Inc()
		}
		return err
	})
}

// report reports texts in a slot and counts the outcomes, even if the client disconnects. A scanner
// waits for its slot, because it might not repeat a refused report.
func (l *leakReports) report(
	c *gin.Context, texts []models.LeakedText, from models.LeakSource, address string,
) (outcomes []models.LeakOutcome, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), leakTimeout)
	defer cancel()
	report := func() (err error) {
		outcomes, err = l.Store.Keys.ReportLeaked(ctx, texts, from, address)
		return err
	}
	if from == models.LeakPublic {
		err = l.publicSlots.Run(report)
	} else {
		err = l.slots.RunWhenFree(ctx, report)
	}
	for _, outcome := range outcomes {
		l.counts.WithLabelValues(string(from), string(outcome)).Inc()
	}
	return outcomes, err
}
