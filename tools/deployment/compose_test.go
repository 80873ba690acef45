package deployment

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// Compose's own loader checks the schema, the references between services, and interpolation.
func TestComposeLoadsTheFile(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../../compose.yaml"},
		cli.WithEnv([]string{"PORTAL_SECRET=secret", "POSTGRES_PASSWORD=password"}), cli.WithName("portal"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, service := range project.Services {
		if service.HealthCheck == nil {
			t.Errorf("%s has no health check", name)
		}
	}
	if len(project.Services) != 4 {
		t.Errorf("got the services %q", project.ServiceNames())
	}
}
