package templates

import (
	"fmt"
	"strings"

	"portal/models/workload"
)

// WorkloadGuide says how the workloads of a provider use a key without a secret.
type WorkloadGuide struct {
	workload.Platform

	Notes    Prose
	Snippets []Snippet
}

// ID returns the id of the guide's section.
func (g WorkloadGuide) ID() string { return "workload-" + string(g.Provider) }

// NewWorkloadGuides returns the guides of all providers in the order of forms, for the portal at
// baseURL.
func NewWorkloadGuides(baseURL string) (guides []WorkloadGuide) {
	baseURL = strings.TrimSuffix(baseURL, "/")
	for _, platform := range workload.Platforms() {
		guides = append(guides, WorkloadGuide{
			Platform: platform, Notes: NewProse(workloadExamples[platform.Provider].notes),
			Snippets: WorkloadSnippets(platform.Provider, "KEY_ID", baseURL, baseURL+"/oauth/token"),
		})
	}
	return guides
}

// WorkloadSnippets returns what a workload of a provider needs to use a key, ready to paste.
func WorkloadSnippets(provider workload.Provider, keyID, audience, tokenURL string) (snippets []Snippet) {
	example, found := workloadExamples[provider]
	if !found {
		example = workloadExamples[workload.Other]
	}
	// The audience is in single quotes, where YAML and a shell have different escapes.
	inShell := func(text string) string { return strings.ReplaceAll(text, "'", `'\''`) }
	fill := strings.NewReplacer(
		"YAML_AUDIENCE", strings.ReplaceAll(audience, "'", "''"), "JSON_AUDIENCES", inShell(fmt.Sprintf("[%q]", audience)), "AUDIENCE", inShell(audience),
		"TOKEN_URL", tokenURL, "KEY_ID", keyID,
	)
	for _, file := range example.files {
		id := fmt.Sprintf("workload-%s-%s", provider, file.language)
		snippets = append(snippets, NewSnippet(id, file.name, file.language, file.text, fill))
	}
	return snippets
}

const exchangeCommand = `curl -sS --fail-with-body TOKEN_URL \
  --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:token-exchange \
  --data-urlencode subject_token_type=urn:ietf:params:oauth:token-type:jwt \
  --data-urlencode client_id=KEY_ID \
  --data-urlencode "subject_token=$TOKEN"`

type workloadFile struct{ name, language, text string }

// workloadExamples has no facts that the forms have.
var workloadExamples = map[workload.Provider]struct {
	notes string
	files []workloadFile
}{
	workload.GitHub: {
		"The job needs the permission `id-token: write`. A token works once, so each job requests one of its own.\n\n" +
			"Name an environment with required reviewers, or a ref. With the repository alone, everyone who can push a branch can use the key. " +
			"For GitHub Enterprise Server, the issuer is `https://HOST/_services/token`. Paste its public keys.",
		[]workloadFile{{"GitHub Actions", "yaml", `permissions:
  id-token: write
  contents: read
steps:
  - name: Get an access token
    run: |
      TOKEN=$(curl -sS --fail -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
        --get --data-urlencode audience='AUDIENCE' "$ACTIONS_ID_TOKEN_REQUEST_URL" | jq -er .value)
      echo "::add-mask::$TOKEN"
` + indented(exchangeCommand, 6) + ` | jq -er .access_token > access-token
      echo "::add-mask::$(cat access-token)"
`}},
	},
	workload.GitLab: {
		"A token works once, so exchange it once in a job.\n\n" +
			"Set the protected ref to `true` if only protected branches and tags shall use the key. " +
			"For a GitLab of your own, the issuer is its URL. Paste the public keys of its `/oauth/discovery/keys`.",
		[]workloadFile{{"GitLab CI", "yaml", `deploy:
  id_tokens:
    TOKEN:
      aud: 'YAML_AUDIENCE'
  script:
    - |
` + indented(exchangeCommand, 6) + ` | jq -er .access_token > access-token
`}},
	},
	workload.Google: {
		"The metadata server of a virtual machine, Cloud Run and GKE issues the token. All customers of Google have the same issuer.\n\n" +
			"Prefer the ID to the email, because an email can be given to another account after its first one was deleted. " +
			"`gcloud iam service-accounts describe EMAIL --format='value(uniqueId)'` prints the ID.",
		[]workloadFile{{"Google Cloud", "bash", `TOKEN=$(curl -sS --fail -H "Metadata-Flavor: Google" --get \
  --data-urlencode audience='AUDIENCE' --data-urlencode format=full \
  http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity)
` + exchangeCommand + "\n"}},
	},
	workload.AWS: {
		"Turn on outbound identity federation of your account with `aws iam enable-outbound-web-identity-federation`, which prints the issuer. " +
			"The role needs the permission `sts:GetWebIdentityToken`.\n\n" +
			"A token works once. The command needs a regional endpoint of STS, so set `AWS_REGION`.",
		[]workloadFile{{"AWS", "bash", `TOKEN=$(aws sts get-web-identity-token --audience 'JSON_AUDIENCES' --signing-algorithm RS256 \
  --query WebIdentityToken --output text)
` + exchangeCommand + "\n"}},
	},
	workload.Azure: {
		"The token of a managed identity is for an app registration. Set its `requestedAccessTokenVersion` to 2, and enter the ID of the application as the audience of the rule.\n\n" +
			"The object ID is that of the managed identity, under Enterprise applications.",
		[]workloadFile{{"Azure", "bash", `TOKEN=$(curl -sS --fail -H "Metadata: true" --get --data-urlencode resource='AUDIENCE' \
  "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01" | jq -er .access_token)
` + exchangeCommand + "\n"}},
	},
	workload.Kubernetes: {
		"The kubelet writes a token to a file of the pod and renews it. Read the file again for each exchange.\n\n" +
			"`kubectl get --raw /.well-known/openid-configuration` prints the issuer. Unless it is EKS, paste the output of `kubectl get --raw /openid/v1/jwks` as the public keys, and again when the cluster has new ones.",
		[]workloadFile{{"Kubernetes", "yaml", `# In the specification of the pod.
containers:
  - name: backend
    volumeMounts:
      - name: portal
        mountPath: /var/run/secrets/portal
        readOnly: true
volumes:
  - name: portal
    projected:
      sources:
        - serviceAccountToken:
            audience: 'YAML_AUDIENCE'
            expirationSeconds: 3600
            path: token
`}, {"Pod", "bash", `TOKEN=$(cat /var/run/secrets/portal/token)
` + exchangeCommand + "\n"}},
	},
	workload.Vercel: {
		"Choose Team as the issuer mode of the project. The first token of a deployment, in the header `x-vercel-oidc-token` or the variable `VERCEL_OIDC_TOKEN`, " +
			"has the audience `https://vercel.com/TEAM`, which it shows to every service. Request one for an audience of its own.",
		[]workloadFile{{"Vercel", "bash", `# TOKEN is the deployment's token for the audience AUDIENCE.
` + exchangeCommand + "\n"}},
	},
	workload.Other: {
		"Any issuer of JWTs will do, if its tokens have `iss`, `aud`, `iat`, `exp` and a key ID (`kid`), and live for at most 24 hours. " +
			"Paste its public keys as a JWKS, and again when it has new ones. The portal does not fetch them.\n\n" +
			"Enter claims that nobody else at the issuer can have, one `name=value` a line.",
		[]workloadFile{{"Shell", "bash", `# TOKEN is the token of your platform for the audience AUDIENCE.
` + exchangeCommand + "\n"}},
	},
}

func indented(text string, spaces int) string {
	return strings.ReplaceAll(fmt.Sprintf("%*s%s", spaces, "", text), "\n", fmt.Sprintf("\n%*s", spaces, ""))
}
