package api

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
)

// leakFeedback is the response to one text.
type leakFeedback struct {
	TokenHash string `json:"token_hash"` // SHA-256 in hexadecimal
	TokenType string `json:"token_type"`
	Label     string `json:"label"`
}

// createSigned revokes the keys that a scanner reports. It reads the body only if the scanner has
// the public key that the request names, and parses it only if the signature is right.
func (l *leakReports) createSigned(c *gin.Context, from *scanner) error {
	id, err := from.oneHeader(c, "Identifier")
	if err != nil {
		return err
	}
	encoded, err := from.oneHeader(c, "Signature")
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return problem.InvalidRequest("The header " + from.header + "Signature is not base64.")
	}
	key, err := from.keys.find(c.Request.Context(), id)
	if err != nil {
		return err
	}
	body, release, err := readLeaks(c, &l.bodies)
	defer release()
	if err != nil {
		return err
	}
	if hash := sha256.Sum256(body); !ecdsa.VerifyASN1(key, hash[:], signature) {
		return problem.InvalidRequest("The signature does not match the request body.")
	}
	leaks, err := parseScannerReport(body, "url")
	if err != nil {
		return err
	}
	texts, kinds := distinct(leaks)
	release() // The report may wait for a slot.
	outcomes, err := l.report(c, texts, from.name, "")
	if err != nil {
		return err
	}
	feedback := make([]leakFeedback, 0, len(texts))
	for i, text := range texts {
		label := "true_positive"
		if outcomes[i] == models.LeakUnknown {
			label = "false_positive"
		}
		hash := text.Hash()
		feedback = append(feedback, leakFeedback{hex.EncodeToString(hash[:]), kinds[i], label})
	}
	c.PureJSON(http.StatusOK, feedback)
	return nil
}
