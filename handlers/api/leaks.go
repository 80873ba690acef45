package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

const (
	// leakSlots is how many reports use the database at once, public ones and those of
	// providers. Together they are fewer than the connections that pages use too.
	leakSlots = 2
	// leakTimeout limits the work of a report and its wait for a slot. GitHub waits 30 seconds.
	leakTimeout = 20 * time.Second

	maxLeaksOfAddress = 60 // public reports in each leakWindow
	leakWindow        = time.Hour
)

// leakDoors are the doors for reports of leaked keys.
type leakDoors struct {
	limit *rateLimiter // of each address at the public door
	// The public door has slots and memory of its own, so that strangers do not keep providers
	// out.
	publicSlots, slots   middleware.Slots
	publicBodies, bodies leakBodies

	partners    []*leakPartner
	gitLabToken *sharedToken // nil: off
	reports     *prometheus.CounterVec
}

// leakRefused is the outcome of a report whose sender was refused.
const leakRefused = "refused"

func newLeakDoors(d deps.Deps) *leakDoors {
	doors := &leakDoors{
		limit: &rateLimiter{
			Limiter: middleware.NewWindowLimiter(maxLeaksOfAddress, leakWindow, d.Now),
			name:    "address", things: "from this address", policy: fmt.Sprintf(`"address";q=%d;w=%d`, maxLeaksOfAddress, int(leakWindow.Seconds())),
		},
		publicSlots: middleware.NewSlots(leakSlots), slots: middleware.NewSlots(leakSlots),
		publicBodies: leakBodies{ofAddress: maxLeakBodiesOfAddress}, bodies: leakBodies{ofAddress: maxProviderBodiesOfAddress},
		gitLabToken: newSharedToken(d.Scanners.GitLabToken),
		reports: promauto.With(d.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "portal_leak_reports_total",
			Help: "API keys reported as leaked, by source and outcome; inactive ones were revoked or had expired before; refused counts requests.",
		}, []string{"source", "outcome"}),
	}
	if d.Scanners.GitHubKeys != "" {
		doors.partners = append(doors.partners, newLeakPartner(models.LeakGitHub, "Github", d.Scanners.GitHubKeys, d))
	}
	if d.Scanners.GitLabKeys != "" {
		doors.partners = append(doors.partners, newLeakPartner(models.LeakGitLab, "Gitlab", d.Scanners.GitLabKeys, d))
	}
	for _, source := range []models.LeakSource{models.LeakPublic, models.LeakGitHub, models.LeakGitLab} {
		for _, outcome := range []models.LeakOutcome{models.LeakRevoked, models.LeakInactive, models.LeakUnknown, leakRefused} {
			doors.reports.WithLabelValues(string(source), string(outcome))
		}
	}
	return doors
}

// leak adapts the handler of a door and counts the requests that it refuses.
func (a *API) leak(source models.LeakSource, h handler) gin.HandlerFunc {
	return a.public(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		err := h(c)
		if err != nil && problem.From(err).Status < http.StatusInternalServerError {
			a.leaks.reports.WithLabelValues(string(source), leakRefused).Inc()
		}
		return err
	})
}

// reportLeaked reports texts in a slot and counts the outcomes, even if the client disconnects. A
// provider waits for its slot, because it might not repeat a refused report.
func (a *API) reportLeaked(
	c *gin.Context, texts []models.LeakedText, source models.LeakSource, address string,
) (outcomes []models.LeakOutcome, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), leakTimeout)
	defer cancel()
	report := func() (err error) {
		outcomes, err = a.store.Keys.ReportLeaked(ctx, texts, source, address)
		return err
	}
	if source == models.LeakPublic {
		err = a.leaks.publicSlots.Run(report)
	} else {
		err = a.leaks.slots.RunWhenFree(ctx, report)
	}
	for _, outcome := range outcomes {
		a.leaks.reports.WithLabelValues(string(source), string(outcome)).Inc()
	}
	return outcomes, err
}

// leakPartner is a provider that signs its reports.
type leakPartner struct {
	source models.LeakSource
	header string // the beginning of the names of its headers
	keys   *providerKeys
}
