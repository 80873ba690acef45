package portal

import (
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// maxWait limits how long a response is held, so a polling client sends four requests a
	// minute.
	maxWait = 15 * time.Second
	// checkInterval is the time between two checks for news.
	checkInterval = time.Second
	// maxWaiting limits how many responses are held at once. Others are sent without waiting.
	maxWaiting = 256
)

// await calls check every second until it reports news, and returns whether it did. It waits for as
// long as the request prefers (RFC 7240, section 4.3), by default not at all. It stops early when
// the client leaves or the server stops. The deadline applies to each check, not to the wait.
func (p *Portal) await(c *gin.Context, check func() (bool, error)) (bool, error) {
	news, err := p.checkOnce(c, check)
	wait := preferredWait(c)
	if news || err != nil || wait == 0 {
		return news, err
	}
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return false, nil
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-timeout.C:
			return false, nil
		case <-c.Request.Context().Done():
			return false, nil
		case <-p.stopping:
			return false, nil
		}
		if news, err := p.checkOnce(c, check); news || err != nil {
			return news, err
		}
	}
}

func (p *Portal) checkOnce(c *gin.Context, check func() (bool, error)) (news bool, err error) {
	p.withDeadline(c, func() { news, err = check() })
	return news, err
}

// preferredWait returns the wait of the Prefer header, at most maxWait.
func preferredWait(c *gin.Context) time.Duration {
	for preference := range strings.SplitSeq(c.GetHeader("Prefer"), ",") {
		text, ok := strings.CutPrefix(strings.TrimSpace(preference), "wait=")
		if seconds, err := strconv.Atoi(text); ok && err == nil && seconds > 0 {
			return min(time.Duration(min(seconds, 60))*time.Second, maxWait)
		}
	}
	return 0
}
