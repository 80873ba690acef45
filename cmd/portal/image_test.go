package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// runImage builds the image, writes image.json, and runs its program as the image's user on a
// read-only root with a volume at /data. Its arguments are a folder with the Containerfile and the
// files of its stage "build", and a listen address.
const runImage = `
cd "$1"
port=${2##*:} portal= root=
trap '[ -z "$portal" ] || { kill -9 $portal; wait $portal || true; }; [ -z "$root" ] || umount -R "$root"; rm -rf storage' EXIT
buildah() { command buildah --root "$PWD/storage" --runroot "$PWD/storage/run" --storage-driver vfs "$@"; }
buildah bud --isolation chroot --format docker --build-context build=build --iidfile id -f Containerfile empty >&2
image=$(cat id)
buildah inspect --type image "$image" > image.json
# No command of the stage runs, so that it needs no other processor.
buildah bud --isolation chroot --platform linux/arm64 --build-context build=build --iidfile other -f Containerfile empty >&2
buildah inspect --type image --format '{{println .OCIv1.Architecture}}' "$(cat other)"

root=$(buildah mount "$(buildah from "$image")")
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$root/data"
if touch "$root/data.db" 2>/dev/null; then echo 'the root is writable' >&2; exit 1; fi

export PORTAL_ADDR=$2 $(buildah inspect --type image --format '{{range .Docker.Config.Env}}{{.}}
{{end}}' "$image" | grep -v PORTAL_ADDR)
user=$(buildah inspect --type image --format '{{.Docker.Config.User}}' "$image")
chroot --groups= --userspec="$user" "$root" /portal &
portal=$!
# As in the image, where the portal listens on 0.0.0.0.
healthy() { PORTAL_ADDR=0.0.0.0:$port chroot --groups= --userspec="$user" "$root" /portal healthcheck 2>/dev/null; }
for attempt in $(seq 100); do healthy && break; sleep 0.1; done
healthy
printf '%s' 'a long pass phrase' | chroot --groups= --userspec="$user" "$root" /portal account create --name Ada --email ada@example.com
stat -c '%u %n' "$root"/data/*
kill -TERM $portal
wait $portal
portal=
if healthy; then echo 'healthy after its end' >&2; exit 1; fi
`

// The stages before the last one need a registry. Their results come from this machine.
func TestTheImageRunsOnAReadOnlyRoot(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // images are for Linux
	}
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is missing: install it (Debian: apt-get install buildah)")
	}
	folder := t.TempDir()
	dockerfile := modelstest.Value(os.ReadFile("../../Dockerfile"))(t)
	_, last, found := strings.Cut(string(dockerfile), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile has no last stage from scratch")
	}
	for name, content := range map[string]string{
		"Containerfile": "FROM scratch\n" + last, "build/etc/ssl/certs/ca-certificates.crt": "certificates", "empty/.keep": "",
	} {
		writeFile(t, filepath.Join(folder, name), content)
	}
	modelstest.Must(t, os.MkdirAll(filepath.Join(folder, "build", "out", "root", "data"), 0o700))
	modelstest.Must(t, os.Link(buildPortal(t), filepath.Join(folder, "build", "out", "portal")))

	// Without root, buildah gives the script a user namespace in which it is root.
	isolate := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		isolate = []string{"buildah", "unshare"}
	}
	command := exec.Command(isolate[0], append(isolate[1:], "bash", "-euo", "pipefail", "-c", runImage, "runImage", folder, freeAddress(t))...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{"65532 ", "arm64\n", "/data/portal.db", "/data/portal.secret", `"msg":"stopped"`} {
		if !strings.Contains(string(output), want) {
			t.Errorf("want %q in %s", want, output)
		}
	}
	checkImageConfig(t, filepath.Join(folder, "image.json"))
}

// checkImageConfig checks what container engines read from the image.
func checkImageConfig(t *testing.T, file string) {
	t.Helper()
	var image struct {
		Docker struct {
			Config struct {
				User         string
				Env          []string
				Entrypoint   []string
				ExposedPorts map[string]struct{}
				Healthcheck  struct{ Test []string }
			}
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &image)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	config := image.Docker.Config
	if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/portal"}) ||
		!slices.Equal(config.Healthcheck.Test, []string{"CMD", "/portal", "healthcheck"}) ||
		!slices.Equal(slices.Collect(maps.Keys(config.ExposedPorts)), []string{"8080/tcp"}) {
		t.Errorf("the image has the configuration %+v", config)
	}
	// SQLite sorts large tables in a file, such as for a new index, and there is no /tmp.
	if !slices.Contains(config.Env, "SQLITE_TMPDIR=/data") {
		t.Errorf("the image has no folder for SQLite's temporary files: %q", config.Env)
	}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(content), 0o600)
	}
	modelstest.Must(t, err)
}
