package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// The settings are those of the kustomization and of the Secret in the guide, except for addresses
// and the secret. The module tools/deployment checks the manifests with the types of Kubernetes.
func TestThePortalRunsWithTheSettingsOfTheManifests(t *testing.T) {
	t.Parallel()
	const folder = "operations/kubernetes/"
	database := databaseEnv(modelstest.EmptyPostgresURL(t))
	env := append([]string{anyPort, testSecret}, database...)
	text := readFile(t, folder+"kustomization.yaml") + readFile(t, "operations/kubernetes.md")
	for _, setting := range regexp.MustCompile(`(?:  - |--from-literal=)([A-Z_]+)=(\S+)`).FindAllStringSubmatch(text, -1) {
		switch name := setting[1]; name {
		case "PORTAL_SECRET", "DATABASE_URL":
		case "PORTAL_METRICS_ADDR":
			env = append(env, name+"=127.0.0.1:0")
		default:
			env = append(env, name+"="+setting[2])
		}
	}
	job := regexp.MustCompile(`args: \[(\w+)\]`).FindStringSubmatch(readFile(t, folder+"migrate.yaml"))
	mustPortal(t, database, "", job[1])
	i := start(t, env)
	probes := regexp.MustCompile(`path: (/\w+)`).FindAllStringSubmatch(readFile(t, folder+"deployment.yaml"), -1)
	for _, probe := range probes {
		if got := status(i.metrics + probe[1]); got != http.StatusOK {
			t.Errorf("%s returns %d", probe[1], got)
		}
	}
	if log := i.stderr.String(); len(env) < 5 || len(probes) != 3 || strings.Contains(log, "unknown variable") {
		t.Errorf("%q, %q: %s", env, probes, log)
	}
}
