package templates

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/workload"
)

// TrustForm has the controls of a trust rule.
type TrustForm struct {
	Offered   bool // keys without a secret are on
	Workload  bool // "Workload identity" is chosen
	Platforms []workload.Platform
	Provider  workload.Provider // as submitted; empty: none is chosen

	Issuer, Audience TrustField
	Fields           []TrustField // of the claims
	Claims           TrustField   // other claims, one a line
	JWKS             TrustField
	ProviderProblem  string

	OwnIssuers bool   // the provider may have an issuer whose keys are pasted
	Sentence   string // who can use the key; empty while the rule is incomplete
	Preview    string // the address that shows the form anew and saves nothing
}

// TrustField is a text of the form.
type TrustField struct {
	ID, Name, Title, Value, Example, Problem string
}

// Chosen returns whether a provider is chosen, whose fields are shown.
func (f TrustForm) Chosen() bool {
	_, known := f.Provider.Platform()
	return known
}

// AnyClaims reports whether the provider has no fields of its own.
func (f TrustForm) AnyClaims() bool { return f.Provider == workload.Other }

// TrustPage is /api-keys/:id/trust.
type TrustPage struct {
	Key   models.Key
	Trust TrustForm

	Pins  []TrustPin
	Paste Snippet // what the provider needs
}

// TrustPin is a claim that the first exchange has pinned.
type TrustPin struct{ Name, Value string }

func (TrustPage) screen() screen {
	return screen{file: "api_keys/trust.html", section: SectionAPIKeys}
}

func (TrustPage) fragment() string { return "trust-form" }

// ExchangeRow is an exchange of a token for access with a key.
type ExchangeRow struct {
	At              Moment
	Result, Address string
}

// NewExchangeRows formats exchanges.
func NewExchangeRows(exchanges []models.Exchange, now time.Time) (rows []ExchangeRow) {
	for _, exchange := range exchanges {
		row := ExchangeRow{At: NewMoment(exchange.At, now), Result: "Accepted", Address: exchange.Address}
		if exchange.Reason != "" {
			row.Result = "Refused: " + exchange.Reason
		}
		rows = append(rows, row)
	}
	return rows
}

// WorkloadSnippet returns what a workload of a provider needs to use a key, ready to paste.
func WorkloadSnippet(provider workload.Provider, keyID uuid.UUID, audience, tokenURL string) Snippet {
	snippet, found := workloadSnippets[provider]
	if !found {
		snippet = workloadSnippets[workload.Other]
	}
	fill := strings.NewReplacer("$AUDIENCE", audience, "$TOKEN_URL", tokenURL, "$KEY_ID", keyID.String())
	return NewSnippet("workload-"+string(provider), snippet.name, snippet.language, snippet.text, fill)
}

// exchangeCommand exchanges the token in $TOKEN.
const exchangeCommand = `curl -sS --fail-with-body $TOKEN_URL \
  --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:token-exchange \
  --data-urlencode subject_token_type=urn:ietf:params:oauth:token-type:jwt \
  --data-urlencode client_id=$KEY_ID \
  --data-urlencode "subject_token=$TOKEN"`

var workloadSnippets = map[workload.Provider]struct{ name, language, text string }{
	workload.GitHub: {"GitHub Actions", "yaml", `permissions:
  id-token: write
  contents: read
steps:
  - name: Get an access token
    run: |
      TOKEN=$(curl -sS --fail -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
        --get --data-urlencode audience=$AUDIENCE "$ACTIONS_ID_TOKEN_REQUEST_URL" | jq -r .value)
` + indented(exchangeCommand, 6) + ` | jq -r .access_token > access-token
`},
	workload.GitLab: {"GitLab CI", "yaml", `deploy:
  id_tokens:
    TOKEN:
      aud: $AUDIENCE
  script:
    - |
` + indented(exchangeCommand, 6) + ` | jq -r .access_token > access-token
`},
	workload.Google: {"Google Cloud", "bash", `TOKEN=$(curl -sS --fail -H "Metadata-Flavor: Google" --get \
  --data-urlencode audience=$AUDIENCE --data-urlencode format=full \
  http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity)
` + exchangeCommand + "\n"},
	workload.AWS: {"AWS", "bash", `TOKEN=$(aws sts get-web-identity-token --audience $AUDIENCE --signing-algorithm RS256 \
  --query WebIdentityToken --output text)
` + exchangeCommand + "\n"},
	workload.Azure: {"Azure", "bash", `TOKEN=$(curl -sS --fail -H "Metadata: true" --get --data-urlencode resource=$AUDIENCE \
  "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01" | jq -r .access_token)
` + exchangeCommand + "\n"},
	workload.Kubernetes: {"Kubernetes", "yaml", `# In the pod. The token is in /var/run/secrets/portal/token, and the kubelet renews it.
# With TOKEN=$(cat /var/run/secrets/portal/token), exchange it before the access token expires.
volumes:
  - name: portal
    projected:
      sources:
        - serviceAccountToken:
            audience: $AUDIENCE
            expirationSeconds: 3600
            path: token
`},
	workload.Vercel: {"Vercel", "bash", `# TOKEN is the header x-vercel-oidc-token of the request, or VERCEL_OIDC_TOKEN of the build.
` + exchangeCommand + "\n"},
	workload.Other: {"Shell", "bash", `# TOKEN is the token of your platform, for the audience $AUDIENCE.
` + exchangeCommand + "\n"},
}

func indented(text string, spaces int) string {
	return strings.ReplaceAll(fmt.Sprintf("%*s%s", spaces, "", text), "\n", fmt.Sprintf("\n%*s", spaces, ""))
}
