package deployment

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	security "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const manifests = "../../cmd/portal/operations/kubernetes"

// decode decodes YAML documents. An unknown kind or field is an error, and so is a duplicate one.
func decode(t *testing.T, text []byte) (objects []runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		core.AddToScheme, apps.AddToScheme, batch.AddToScheme, networking.AddToScheme, disruption.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return objects
}

// only returns the single object of a type.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) (found T) {
	t.Helper()
	count := 0
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found = typed
			count++
		}
	}
	if count != 1 {
		t.Fatalf("%d objects of type %T", count, found)
	}
	return found
}

func render(t *testing.T) []runtime.Object {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), manifests)
	if err != nil {
		t.Fatal(err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func TestTheManifestsReferToEachOther(t *testing.T) {
	objects := render(t)
	pods := only[*apps.Deployment](t, objects).Spec.Template
	container := pods.Spec.Containers[0]
	selects := func(what string, selector *meta.LabelSelector) {
		if parsed, err := meta.LabelSelectorAsSelector(selector); err != nil || !parsed.Matches(labels.Set(pods.Labels)) {
			t.Errorf("%s does not select the portals: %v", what, err)
		}
	}
	hasPort := func(what string, port intstr.IntOrString) {
		if !slices.ContainsFunc(container.Ports, func(p core.ContainerPort) bool { return p.Name == port.StrVal }) {
			t.Errorf("%s: the portal has no port %q", what, port.StrVal)
		}
	}
	service := only[*core.Service](t, objects)
	selects("the service", &meta.LabelSelector{MatchLabels: service.Spec.Selector})
	for _, port := range service.Spec.Ports {
		hasPort("the service", port.TargetPort)
	}
	selects("the disruption budget", only[*disruption.PodDisruptionBudget](t, objects).Spec.Selector)
	selects("the topology spread", pods.Spec.TopologySpreadConstraints[0].LabelSelector)
	network := only[*networking.NetworkPolicy](t, objects)
	selects("the network policy", &network.Spec.PodSelector)
	for _, rule := range network.Spec.Ingress {
		hasPort("the network policy", *rule.Ports[0].Port)
	}
	for _, probe := range []*core.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		hasPort("a probe", probe.HTTPGet.Port)
	}
	if got, want := container.EnvFrom[0].ConfigMapRef.Name, only[*core.ConfigMap](t, objects).Name; got != want {
		t.Errorf("the portals read the ConfigMap %s, want %s", got, want)
	}
	if job := only[*batch.Job](t, objects).Spec.Template.Spec.Containers[0]; job.Image != container.Image {
		t.Errorf("the job runs %s, the portals run %s", job.Image, container.Image)
	}
	backup := only[*batch.CronJob](t, objects).Spec.JobTemplate.Spec.Template.Spec
	if got, want := backup.Volumes[0].PersistentVolumeClaim.ClaimName, only[*core.PersistentVolumeClaim](t, objects).Name; got != want {
		t.Errorf("the backup uses the claim %s, want %s", got, want)
	}
	mount := backup.Containers[0].VolumeMounts[0]
	if mount.Name != backup.Volumes[0].Name || !slices.Contains(backup.Containers[0].Args, mount.MountPath) {
		t.Errorf("the backup writes to %q, and its volume is at %v", backup.Containers[0].Args, mount)
	}
	if image := backup.Containers[0].Image; image != strings.Replace(container.Image, "/portal:", "/portal-backup:", 1) || image == container.Image {
		t.Errorf("the backup runs %s, the portals run %s", image, container.Image)
	}
}

// The namespace demands the level "restricted" of Kubernetes' pod security standards.
func TestThePodsAreRestricted(t *testing.T) {
	objects := render(t)
	level := only[*core.Namespace](t, objects).Labels[security.EnforceLevelLabel]
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []core.PodTemplateSpec{
		only[*apps.Deployment](t, objects).Spec.Template, only[*batch.Job](t, objects).Spec.Template,
		only[*batch.CronJob](t, objects).Spec.JobTemplate.Spec.Template,
	} {
		restricted := security.LevelVersion{Level: security.Level(level), Version: security.LatestVersion()}
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
		if level != string(security.LevelRestricted) || !result.Allowed {
			t.Errorf("%s: %s", level, result.ForbiddenDetail())
		}
		if context := pod.Spec.Containers[0].SecurityContext; !*context.ReadOnlyRootFilesystem {
			t.Error("the root is writable")
		}
	}
}

// The command is in kubernetes.md.
func TestTheRulesAreAppendedToTheMonitoring(t *testing.T) {
	guide, err := os.ReadFile(manifests + ".md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, found := bytes.Cut(guide, []byte("```sh\n{ cat "))
	command, _, closed := bytes.Cut(command, []byte(" | kubectl"))
	if !found || !closed {
		t.Fatal("the guide has no such command")
	}
	bash := exec.Command("bash", "-euc", "{ cat "+string(command))
	bash.Dir = manifests
	text, err := bash.Output()
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, text)
	rendered := render(t)
	monitor := only[*monitoring.ServiceMonitor](t, objects)
	service := only[*core.Service](t, rendered)
	selector, err := meta.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(service.Labels)) || monitor.Namespace != service.Namespace {
		t.Errorf("the monitor does not select the service: %v", err)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p core.ServicePort) bool { return p.Name == monitor.Spec.Endpoints[0].Port }) {
		t.Error("the service has no such port")
	}
	if rules := only[*monitoring.PrometheusRule](t, objects).Spec.Groups; len(rules) != 1 || len(rules[0].Rules) < 5 {
		t.Errorf("got the rules %v", rules)
	}
}
