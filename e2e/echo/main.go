// Command echo is a voice agent for tests. It joins every room of a LiveKit server and sends the
// audio back that it hears. It is a module of its own, so that LiveKit's SDK is not a dependency of
// the portal. Its tests compare the portal with that SDK.
//
// It reads LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET, and prints a JSON object on a line
// for each event.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/logger"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
)

const (
	identity = "echo"
	// pollInterval is the time between two looks for new rooms.
	pollInterval = 200 * time.Millisecond
	// reportEvery is the number of packets between two events. A packet has 20 ms of audio.
	reportEvery = 25
)

// event is a line of the output.
type event struct {
	Event   string            `json:"event"` // ready, joined, audio or left
	Room    string            `json:"room,omitempty"`
	Packets int               `json:"packets,omitempty"` // received and sent back
	From    map[string]string `json:"from,omitempty"`    // the attributes of the participant
	// The name in the metadata of the agent's dispatch.
	Visitor string `json:"visitor,omitempty"`
}

type agent struct {
	url, apiKey, apiSecret string

	rooms      *lksdk.RoomServiceClient
	dispatches *lksdk.AgentDispatchClient

	mu     sync.Mutex
	joined map[string]*lksdk.Room
	out    *json.Encoder
}

func main() {
	logger.InitFromConfig(&logger.Config{Level: "error"}, "echo")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &agent{
		url: os.Getenv("LIVEKIT_URL"), apiKey: os.Getenv("LIVEKIT_API_KEY"), apiSecret: os.Getenv("LIVEKIT_API_SECRET"),
		joined: map[string]*lksdk.Room{}, out: json.NewEncoder(os.Stdout),
	}
	if err := a.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

// run joins rooms until ctx ends.
func (a *agent) run(ctx context.Context) error {
	a.rooms = lksdk.NewRoomServiceClient(a.url, a.apiKey, a.apiSecret)
	a.dispatches = lksdk.NewAgentDispatchServiceClient(a.url, a.apiKey, a.apiSecret)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	a.print(event{Event: "ready"})
	for {
		select {
		case <-ctx.Done():
			a.leave()
			return nil
		case <-ticker.C:
		}
		list, err := a.rooms.ListRooms(ctx, &livekit.ListRoomsRequest{})
		if err != nil {
			continue // the server is away
		}
		for _, room := range list.GetRooms() {
			if err := a.join(ctx, room.GetName()); err != nil {
				fmt.Fprintln(os.Stderr, "echo: join:", err)
			}
		}
	}
}

func (a *agent) join(ctx context.Context, name string) error {
	a.mu.Lock()
	_, already := a.joined[name]
	a.mu.Unlock()
	if already {
		return nil
	}
	visitor, err := a.visitor(ctx, name)
	if err != nil {
		return err
	}
	callback := lksdk.NewRoomCallback()
	var room *lksdk.Room
	ready := make(chan struct{})
	callback.OnTrackSubscribed = func(track *webrtc.TrackRemote, _ *lksdk.RemoteTrackPublication, from *lksdk.RemoteParticipant) {
		<-ready
		if track.Kind() == webrtc.RTPCodecTypeAudio {
			go a.echo(room, name, track, from.Attributes())
		}
	}
	callback.OnDisconnected = func() {
		a.mu.Lock()
		delete(a.joined, name)
		a.mu.Unlock()
		a.print(event{Event: "left", Room: name})
	}
	room, err = lksdk.ConnectToRoom(a.url, lksdk.ConnectInfo{
		APIKey: a.apiKey, APISecret: a.apiSecret, RoomName: name, ParticipantIdentity: identity,
	}, callback)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.joined[name] = room
	a.mu.Unlock()
	close(ready)
	a.print(event{Event: "joined", Room: name, Visitor: visitor})
	return nil
}

// visitor returns the name of the visitor in the metadata of the room's dispatches, or "". The
// agent joins every room, also without a dispatch.
func (a *agent) visitor(ctx context.Context, room string) (string, error) {
	list, err := a.dispatches.ListDispatch(ctx, &livekit.ListAgentDispatchRequest{Room: room})
	if err != nil {
		return "", err
	}
	for _, dispatch := range list.GetAgentDispatches() {
		// LiveKit dispatches unnamed agents to every room, without metadata.
		var metadata struct{ User struct{ Name string } }
		if json.Unmarshal([]byte(dispatch.GetMetadata()), &metadata) == nil {
			return metadata.User.Name, nil
		}
	}
	return "", nil
}

func (a *agent) leave() {
	a.mu.Lock()
	rooms := slices.Collect(maps.Values(a.joined))
	a.mu.Unlock()
	for _, room := range rooms {
		room.Disconnect()
	}
}

// echo sends the packets of a track back until the track ends.
func (a *agent) echo(room *lksdk.Room, name string, heard *webrtc.TrackRemote, from map[string]string) {
	said, err := webrtc.NewTrackLocalStaticRTP(heard.Codec().RTPCodecCapability, "echo", "echo")
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo: track:", err)
		return
	}
	if _, err := room.LocalParticipant.PublishTrack(said, &lksdk.TrackPublicationOptions{
		Name: "echo", Source: livekit.TrackSource_MICROPHONE,
	}); err != nil {
		fmt.Fprintln(os.Stderr, "echo: publish:", err)
		return
	}
	for packets := 1; ; packets++ {
		packet, _, err := heard.ReadRTP()
		if err != nil {
			return
		}
		if err := said.WriteRTP(packet); err != nil {
			return
		}
		if packets%reportEvery == 0 {
			a.print(event{Event: "audio", Room: name, Packets: packets, From: from})
		}
	}
}

func (a *agent) print(e event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.out.Encode(e)
}
