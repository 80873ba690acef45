package api

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/problem"
	"portal/models"
)

func newLeakPartner(source models.LeakSource, header, keysURL string, d deps.Deps) *leakPartner {
	return &leakPartner{source, header + "-Public-Key-", newProviderKeys(keysURL, d.Now, d.Logger)}
}

// leakFeedback is the response to one text.
type leakFeedback struct {
	TokenHash string `json:"token_hash"` // SHA-256 in hexadecimal
	TokenType string `json:"token_type"`
	Label     string `json:"label"`
}

// reportPartnerLeaks revokes the keys that a partner reports. It reads the body only if the partner
// has the public key that the request names, and parses it only if the signature is right.
func (a *API) reportPartnerLeaks(c *gin.Context, partner *leakPartner) error {
	id, err := partner.oneHeader(c, "Identifier")
	if err != nil {
		return err
	}
	encoded, err := partner.oneHeader(c, "Signature")
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return problem.InvalidRequest("The header " + partner.header + "Signature is not base64.")
	}
	key, err := partner.keys.find(c.Request.Context(), id)
	if err != nil {
		return err
	}
	body, release, err := readLeaks(c, &a.leaks.bodies)
	defer release()
	if err != nil {
		return err
	}
	if hash := sha256.Sum256(body); !ecdsa.VerifyASN1(key, hash[:], signature) {
		return problem.InvalidRequest("The signature does not match the request body.")
	}
	leaks, err := parseProviderLeaks(body, "url")
	if err != nil {
		return err
	}
	texts, kinds := distinct(leaks)
	release() // The report may wait for a slot.
	outcomes, err := a.reportLeaked(c, texts, partner.source, "")
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

// oneHeader returns the value of a header that must occur once, or a 400.
func (p *leakPartner) oneHeader(c *gin.Context, name string) (string, error) {
	values := c.Request.Header.Values(p.header + name)
	if len(values) != 1 || values[0] == "" {
		return "", problem.InvalidRequest("The header " + p.header + name + " must occur exactly once.")
	}
	return values[0], nil
}
