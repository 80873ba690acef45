// The program calls a portal with the client that oapi-codegen generates with its defaults. Its
// arguments are the URL of the portal, an API key and the id of an agent.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"client/portal" // generated
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := call(ctx, os.Args[1], os.Args[2], uuid.MustParse(os.Args[3])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func call(ctx context.Context, server, key string, agent uuid.UUID) error {
	sending := func(key string) (*portal.ClientWithResponses, error) {
		return portal.NewClientWithResponses(server, portal.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
	}
	client, err := sending(key)
	if err != nil {
		return err
	}
	agents, err := client.ListAgentsWithResponse(ctx, &portal.ListAgentsParams{})
	if err != nil || agents.JSON200 == nil || len(agents.JSON200.Agents) == 0 {
		return fmt.Errorf("list agents: %w %s", err, agents.Body)
	}
	token, err := client.CreateWidgetTokenWithResponse(ctx, portal.WidgetTokenRequest{AgentId: agent})
	if err != nil || token.JSON200 == nil || token.JSON200.AccessToken == "" {
		return fmt.Errorf("create a widget token: %w %s", err, token.Body)
	}
	said, err := client.IntrospectWidgetTokenWithFormdataBodyWithResponse(ctx, portal.IntrospectWidgetTokenFormdataRequestBody{Token: token.JSON200.AccessToken})
	if err != nil || said.JSON200 == nil {
		return fmt.Errorf("introspect the token: %w %s", err, said.Body)
	}
	stranger, err := sending("nas_x")
	if err != nil {
		return err
	}
	refused, err := stranger.ShowKeyWithResponse(ctx)
	if err != nil || refused.JSON401 == nil || refused.JSON401.Code != portal.UnauthorizedCodeUNAUTHORIZED {
		return fmt.Errorf("a wrong key: %w %s", err, refused.Body)
	}
	return nil
}
