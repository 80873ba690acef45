package main

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"portal/models/modelstest"
)

// composeFile has the parts of compose.yaml that the tests read.
type composeFile struct {
	Services map[string]struct {
		Environment map[string]string
		Healthcheck struct{ Test []string }
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
	}
	Configs map[string]struct{ Content string }
}

// composeSecrets are the variables that compose.yaml requires.
var composeSecrets = map[string]string{"PORTAL_SECRET": goodSecret, "POSTGRES_PASSWORD": "of-this-test"}

// readCompose parses compose.yaml with these environment variables, as Compose does.
func readCompose(t *testing.T, environment map[string]string) composeFile {
	t.Helper()
	content := modelstest.Value(os.ReadFile("../../compose.yaml"))(t)
	reference := regexp.MustCompile(`\$\{(\w+)(?::([?-])([^}]*))?\}`)
	text := reference.ReplaceAllStringFunc(string(content), func(found string) string {
		part := reference.FindStringSubmatch(found)
		switch value := environment[part[1]]; {
		case value != "":
			return value
		case part[2] == "?":
			t.Fatalf("compose.yaml needs %s: %s", part[1], part[3])
		}
		return part[3]
	})
	var file composeFile
	modelstest.Must(t, yaml.Unmarshal([]byte(text), &file))
	return file
}

// startComposed runs the portals of compose.yaml as plain processes with the file's environment,
// except for the address and the database, which the container network would provide.
func startComposed(t *testing.T) map[string]*instance {
	t.Helper()
	file, database := readCompose(t, composeSecrets), modelstest.EmptyPostgresURL(t)
	portals := map[string]*instance{}
	for name, service := range file.Services {
		if !strings.HasPrefix(name, "portal-") {
			continue
		}
		var env []string
		for variable, value := range service.Environment {
			switch variable {
			case "PORTAL_ADDR":
				value = strings.Replace(value, "0.0.0.0:8080", "127.0.0.1:0", 1)
			case "DATABASE_URL":
				value = database
			}
			env = append(env, variable+"="+value)
		}
		portals[name] = launch(t, env)
	}
	for _, i := range portals {
		i.awaitReady(t)
	}
	return portals
}

func TestComposedPortalsAgreeOnTheNextRequest(t *testing.T) {
	t.Parallel()
	portals := startComposed(t)
	if len(portals) != 2 {
		t.Fatalf("want two portals in compose.yaml, got %d", len(portals))
	}
	one, two := portals["portal-1"], portals["portal-2"]
	mustPortal(t, one.Env, testPassword, "account", "create", "--name", "Ada", "--email", testEmail)
	v := one.signedIn(t) // the session is valid on both portals
	for _, direction := range []struct{ from, to *instance }{{one, two}, {two, one}} {
		key := v.At(direction.from.URL).Generate("prod")
		direction.to.accepts(t, key)
		direction.from.accepts(t, key)
		revokeOnly(v.At(direction.to.URL))
		direction.from.answers(t, key, http.StatusUnauthorized)
		direction.to.answers(t, key, http.StatusUnauthorized)
	}
	v.Post("/logout", nil).Is(http.StatusSeeOther)
	v.At(two.URL).Get("/api-keys").Is(http.StatusSeeOther)
}

// They use the composed database, get every variable of the operator, and an intruder can write
// nothing, run no other program and has no privileges.
func TestComposedPortalsAreConfigured(t *testing.T) {
	t.Parallel()
	set := map[string]string{"POSTGRES_PASSWORD": "of-this-test"}
	for _, row := range settingRows() {
		// compose.yaml decides these three.
		if row.group != forTests && !slices.Contains([]string{"PORTAL_ADDR", "PORTAL_TRUSTED_PROXIES", "DATABASE_URL"}, row.name) {
			set[row.name] = "the value of " + row.name
		}
	}
	file := readCompose(t, set)
	database := file.Services["postgres"].Environment
	for _, name := range []string{"portal-1", "portal-2"} {
		service := file.Services[name]
		for variable, value := range set {
			if got := service.Environment[variable]; strings.HasPrefix(variable, "PORTAL_") && got != value {
				t.Errorf("%s has %q as %s, want %q", name, got, variable, value)
			}
		}
		address := modelstest.Value(url.Parse(service.Environment["DATABASE_URL"]))(t)
		if user := url.UserPassword(database["POSTGRES_USER"], database["POSTGRES_PASSWORD"]); address.Hostname() != "postgres" ||
			address.User.String() != user.String() || address.Path != "/"+database["POSTGRES_DB"] {
			t.Errorf("%s connects to %s, but the database is %v", name, address, database)
		}
		if !service.ReadOnly || !slices.Equal(service.CapDrop, []string{"ALL"}) || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: read-only %v, drops %q, %q", name, service.ReadOnly, service.CapDrop, service.SecurityOpt)
		}
		if !slices.Equal(service.Healthcheck.Test, []string{"CMD", "/portal", "healthcheck"}) {
			t.Errorf("%s: the health check is %q", name, service.Healthcheck.Test)
		}
	}
}

func TestTheImageIsBuiltWithTheModulesGoVersion(t *testing.T) {
	t.Parallel()
	module := modelstest.Value(os.ReadFile("../../go.mod"))(t)
	dockerfile := modelstest.Value(os.ReadFile("../../Dockerfile"))(t)
	version := regexp.MustCompile(`(?m)^go \d+\.\d+`).FindString(string(module))
	if want := " golang:" + strings.TrimPrefix(version, "go ") + " "; !strings.Contains(string(dockerfile), want) {
		t.Errorf("go.mod says %q, and the Dockerfile has no %q", version, want)
	}
}

// The product is made of these.
func TestModuleRequiresItsSixPackages(t *testing.T) {
	t.Parallel()
	module := modelstest.Value(os.ReadFile("../../go.mod"))(t)
	for _, name := range []string{
		"github.com/gin-gonic/gin", "github.com/uptrace/bun", "github.com/uptrace/bun/dialect/pgdialect", "github.com/gorilla/sessions",
		"github.com/golang-jwt/jwt/v5", "github.com/playwright-community/playwright-go",
	} {
		if !regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(name) + ` v\S+$`).Match(module) {
			t.Errorf("go.mod does not require %s, or an indirect one", name)
		}
	}
}
