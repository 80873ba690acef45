package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// revocableType is the type of our keys at a GitLab server: the rule in
// templates/documentation/snippets/gitleaks.toml has this id.
const revocableType = "gitleaks_rule_id_nas-api-key"

// listRevocableTypes returns the types of tokens that a GitLab server should report.
func (l *leakReports) listRevocableTypes(c *gin.Context) error {
	return send(c, http.StatusOK, map[string][]string{"types": {revocableType}}, l.checkGitLab(c))
}

// createGitLab revokes the keys that a GitLab server reports.
func (l *leakReports) createGitLab(c *gin.Context) error {
	if err := l.checkGitLab(c); err != nil {
		return err
	}
	body, release, err := readLeaks(c, &l.bodies)
	defer release()
	if err != nil {
		return err
	}
	leaks, err := parseScannerReport(body, "location")
	if err != nil {
		return err
	}
	texts, _ := distinct(leaks)
	release() // The report may wait for a slot.
	if _, err := l.report(c, texts, models.LeakGitLab, ""); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// checkGitLab returns a 401 unless the Authorization header is the token, alone or after Bearer.
func (l *leakReports) checkGitLab(c *gin.Context) error {
	const toSend = "Send the value of PORTAL_LEAKS_TOKEN in the Authorization header."
	return l.gitLabToken.check(c, true, "The request has no token. "+toSend, "The token is wrong. "+toSend)
}
