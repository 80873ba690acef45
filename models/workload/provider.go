package workload

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Provider is a platform that gives its workloads tokens.
type Provider string

// The providers. Other is any issuer whose public keys are pasted, or that the operator has added.
const (
	GitHub     Provider = "github"
	GitLab     Provider = "gitlab"
	Google     Provider = "google"
	AWS        Provider = "aws"
	Azure      Provider = "azure"
	Kubernetes Provider = "kubernetes"
	Vercel     Provider = "vercel"
	Other      Provider = "other"
)

// Platform is what the portal knows about a provider.
type Platform struct {
	Provider Provider
	Name     string
	Issuer   string  // of all its customers; empty: each has another
	Example  string  // of an issuer
	Claims   []Claim // those that a form asks for, the identifying ones first

	workloads string         // who uses the key, in a sentence
	hosts     *regexp.Regexp // of its issuers; nil: none is known
	paths     *regexp.Regexp // of its issuers; nil: they have none
	keyHosts  []string       // where its public keys may be beside the issuer's host
	pins      []string       // claims that are pinned at the first exchange
	singleUse bool           // it issues a token for each job, with a jti
}

// Claim is a claim of a token that a form asks for.
type Claim struct {
	Name, Title, Example string

	Identifying bool // it names one customer of the provider: a rule must have one of these

	words string // the claim in a sentence; %s is the value
}

var platforms = []Platform{
	{
		Provider: GitHub, Name: "GitHub Actions", Issuer: "https://token.actions.githubusercontent.com", workloads: "Jobs",
		Claims: []Claim{
			{Name: "repository", Title: "Repository", Example: "acme/site", Identifying: true, words: "of %s"},
			{Name: "ref", Title: "Ref", Example: "refs/heads/main", words: "on %s"},
			{Name: "environment", Title: "Environment", Example: "production", words: "in environment %s"},
			{Name: "job_workflow_ref", Title: "Workflow", Example: "acme/site/.github/workflows/deploy.yml@refs/heads/main", words: "of workflow %s"},
			{Name: "event_name", Title: "Event", Example: "push", words: "for event %s"},
		},
		hosts: regexp.MustCompile(`^token\.actions\.githubusercontent\.com$`),
		// An enterprise may have an issuer of its own.
		paths: regexp.MustCompile(`^(/[A-Za-z0-9_-]+)?$`),
		pins:  []string{"repository_id", "repository_owner_id"}, singleUse: true,
	},
	{
		Provider: GitLab, Name: "GitLab", Issuer: "https://gitlab.com", workloads: "Jobs",
		Claims: []Claim{
			{Name: "project_path", Title: "Project path", Example: "acme/site", Identifying: true, words: "of %s"},
			{Name: "ref", Title: "Ref", Example: "main", words: "on %s"},
			{Name: "ref_type", Title: "Ref type", Example: "branch", words: "for ref type %s"},
			{Name: "ref_protected", Title: "Protected ref", Example: "true", words: "with protected ref %s"},
			{Name: "environment", Title: "Environment", Example: "production", words: "in environment %s"},
		},
		hosts: regexp.MustCompile(`^gitlab\.com$`),
		pins:  []string{"project_id", "namespace_id"}, singleUse: true,
	},
	{
		Provider: Google, Name: "Google Cloud", Issuer: "https://accounts.google.com", workloads: "Workloads",
		Claims: []Claim{
			{Name: "sub", Title: "Service account ID", Example: "112233445566778899000", Identifying: true, words: "of service account %s"},
			{Name: "email", Title: "Service account email", Example: "deploy@acme-prod.iam.gserviceaccount.com", Identifying: true, words: "of service account %s"},
		},
		hosts: regexp.MustCompile(`^accounts\.google\.com$`), keyHosts: []string{"www.googleapis.com"},
	},
	{
		Provider: AWS, Name: "AWS", Example: "https://0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.tokens.sts.global.api.aws", workloads: "Workloads",
		Claims: []Claim{
			{Name: "sub", Title: "Role ARN", Example: "arn:aws:iam::123456789012:role/deploy", Identifying: true, words: "of role %s"},
		},
		hosts: regexp.MustCompile(`^[0-9a-f-]{36}\.tokens\.sts\.global\.api\.aws$`), singleUse: true,
	},
	{
		Provider: Azure, Name: "Azure (Entra)", Example: "https://login.microsoftonline.com/0198c2f4-7a31-7c6e-9d52-3f8be6a1c004/v2.0", workloads: "Workloads",
		Claims: []Claim{
			{Name: "oid", Title: "Object ID", Example: "0198c2f4-7a31-7c6e-9d52-3f8be6a1c005", Identifying: true, words: "of principal %s"},
		},
		hosts: regexp.MustCompile(`^login\.microsoftonline\.com$`),
		paths: regexp.MustCompile(`^/[A-Za-z0-9][A-Za-z0-9.-]*/v2\.0$`),
	},
	{
		Provider: Kubernetes, Name: "Kubernetes", Example: "https://oidc.eks.eu-central-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF", workloads: "Pods",
		Claims: []Claim{
			{Name: "sub", Title: "Service account", Example: "system:serviceaccount:shop:backend", Identifying: true, words: "of %s"},
		},
		hosts: regexp.MustCompile(`^oidc\.eks\.[a-z0-9-]+\.amazonaws\.com$`),
		paths: regexp.MustCompile(`^/id/[A-Za-z0-9]+$`),
	},
	{
		Provider: Vercel, Name: "Vercel", Example: "https://oidc.vercel.com/acme", workloads: "Functions and builds",
		Claims: []Claim{
			{Name: "project_id", Title: "Project ID", Example: "prj_9WaRw1bFsQAzqnZRVc6qnUrYgMUf", Identifying: true, words: "of project %s"},
			{Name: "environment", Title: "Environment", Example: "production", words: "in environment %s"},
		},
		hosts: regexp.MustCompile(`^oidc\.vercel\.com$`),
		paths: regexp.MustCompile(`^(/[A-Za-z0-9_-]+)?$`), pins: []string{"owner_id"},
	},
	{Provider: Other, Name: "Other", Example: "https://issuer.example.com", workloads: "Workloads"},
}

// Platforms returns all providers in the order of forms.
func Platforms() []Platform { return slices.Clone(platforms) }

// Platform returns what is known about the provider, and whether it exists.
func (p Provider) Platform() (Platform, bool) {
	i := slices.IndexFunc(platforms, func(platform Platform) bool { return platform.Provider == p })
	if i < 0 {
		return Platform{}, false
	}
	return platforms[i], true
}

// identifying returns the claims that identify a workload: a rule must have one of them.
func (p Platform) identifying() (names []string) {
	for _, claim := range p.Claims {
		if claim.Identifying {
			names = append(names, claim.Name)
		}
	}
	return names
}

// platformOf returns the provider that has the host of an issuer.
func platformOf(issuer *url.URL) (Platform, bool) {
	host := strings.TrimSuffix(strings.ToLower(issuer.Hostname()), ".")
	i := slices.IndexFunc(platforms, func(p Platform) bool { return p.hosts != nil && p.hosts.MatchString(host) })
	if i < 0 {
		return Platform{}, false
	}
	return platforms[i], true
}

// Issuers are the issuers whose public keys the portal fetches.
type Issuers struct {
	Off bool     // keys cannot be used without a secret
	Own []string // the operator's, besides those of the providers
}

// Fetched reports whether the portal fetches the public keys of an issuer.
func (i Issuers) Fetched(issuer string) bool {
	if slices.Contains(i.Own, issuer) {
		return true
	}
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" {
		return false
	}
	platform, known := platformOf(u)
	return known && platform.hosts.MatchString(u.Host) && platform.hasPath(u.EscapedPath())
}

// hasPath reports whether an issuer of the platform may have this path. Others are refused, because
// some of these hosts also serve files of their users.
func (p Platform) hasPath(path string) bool {
	if p.paths == nil {
		return path == ""
	}
	return p.paths.MatchString(path)
}

// AllowsKeys reports whether the public keys of an issuer may be at this URL: on the issuer's host,
// or on another of the closed list.
func (i Issuers) AllowsKeys(issuer, keys string) bool {
	from, err := url.Parse(issuer)
	if err != nil {
		return false
	}
	at, err := url.Parse(keys)
	if err != nil || at.User != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != from.Scheme {
		return false
	}
	if at.Host == from.Host {
		return true
	}
	if at.Scheme != "https" || at.Port() != "" {
		return false
	}
	if _, known := platformOf(at); known {
		return true
	}
	host := strings.ToLower(at.Hostname())
	return slices.ContainsFunc(platforms, func(p Platform) bool { return slices.Contains(p.keyHosts, host) })
}

// CheckIssuer reports whether the text is the URL of an issuer: https, or http for a loopback
// address if loopback is set.
func CheckIssuer(text string, loopback bool) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" || len(text) > maxIssuer {
		return false
	}
	if strings.ContainsAny(text, "# ") {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && loopback && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// Metadata is the part of a discovery document (OpenID Connect Discovery) with which the public
// keys of an issuer are found.
type Metadata struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
}
