package portal

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
)

const (
	// maxWait is how long an answer is held at the most: so that whoever asks
	// again and again, each time when answered, does so four times a minute.
	maxWait = 15 * time.Second
	// lookEvery is how long what has happened may go unnoticed meanwhile.
	lookEvery = time.Second
	// maxWaiting is how many answers are held at once; beyond them, whoever asks
	// is answered at once and asks again later.
	maxWaiting = 256
)

// await looks until look reports that there is something to tell, and returns
// that; or false when the request prefers to wait no longer (RFC 7240, section
// 4.3), the caller has left or the portal is stopping. A request that states no
// preference is answered by one look. Each look has the time that the database
// may take, and the request as a whole none: see [Portal.inTime].
func (p *Portal) await(c *gin.Context, look func(context.Context) (bool, error)) (bool, error) {
	found, err := lookOnce(c, look)
	wait := waitPreferred(c)
	if found || err != nil || wait == 0 {
		return found, err
	}
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return false, nil
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-enough.C:
			return false, nil
		case <-c.Request.Context().Done():
			return false, nil
		case <-p.stopping:
			return false, nil
		}
		if found, err := lookOnce(c, look); found || err != nil {
			return found, err
		}
	}
}

func lookOnce(c *gin.Context, look func(context.Context) (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), models.Timeout)
	defer cancel()
	return look(ctx)
}

func waitPreferred(c *gin.Context) time.Duration {
	for preference := range strings.SplitSeq(c.GetHeader("Prefer"), ",") {
		text, ok := strings.CutPrefix(strings.TrimSpace(preference), "wait=")
		if seconds, err := strconv.Atoi(text); ok && err == nil && seconds > 0 {
			return min(time.Duration(min(seconds, 60))*time.Second, maxWait)
		}
	}
	return 0
}
