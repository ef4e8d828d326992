package features_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
)

// cluster is the folder with the manifests.
var cluster = filepath.Join("..", "deploy", "kubernetes")

// manifest reads the object of this kind and name from the manifests.
func manifest[T any](kind, name string) (object T) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(cluster, "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var document yaml.Node
			if err := documents.Decode(&document); errors.Is(err, io.EOF) {
				break
			}
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			Expect(document.Decode(&head)).To(Succeed(), file)
			if head.Kind == kind && head.Metadata.Name == name {
				found++
				Expect(document.Decode(&object)).To(Succeed(), file)
			}
		}
	}
	Expect(found).To(Equal(1), kind+" "+name)
	return object
}

type labels map[string]string

type selector struct {
	MatchLabels labels `yaml:"matchLabels"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

type container struct {
	Args  []string
	Env   []struct{ Name, Value string }
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	SecurityContext map[string]any `yaml:"securityContext"`
	VolumeMounts    []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		SubPath   string `yaml:"subPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

// port is the number of a named port.
func (c container) port(name string) int {
	for _, port := range c.Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

type volume struct {
	Name      string
	ConfigMap struct{ Name string } `yaml:"configMap"`
	Secret    struct {
		SecretName  string `yaml:"secretName"`
		DefaultMode string `yaml:"defaultMode"`
	}
}

type pod struct {
	Metadata struct{ Labels, Annotations labels }
	Spec     struct {
		Automount       bool           `yaml:"automountServiceAccountToken"`
		Grace           int            `yaml:"terminationGracePeriodSeconds"`
		SecurityContext map[string]any `yaml:"securityContext"`
		Affinity        struct {
			PodAntiAffinity struct {
				Preferred []struct {
					Term struct {
						LabelSelector selector `yaml:"labelSelector"`
					} `yaml:"podAffinityTerm"`
				} `yaml:"preferredDuringSchedulingIgnoredDuringExecution"`
			} `yaml:"podAntiAffinity"`
		}
		Spread []struct {
			LabelSelector selector `yaml:"labelSelector"`
		} `yaml:"topologySpreadConstraints"`
		Containers []container
		Volumes    []volume
	}
}

type deployment struct {
	Spec struct {
		Replicas int
		Selector selector
		Template pod
		Strategy struct {
			RollingUpdate struct{ MaxUnavailable, MaxSurge int }
		}
	}
}

// gatewayPod returns the pod template of the deployment.
func gatewayPod() (pod, container) {
	GinkgoHelper()
	template := manifest[deployment]("Deployment", "pasteport").Spec.Template
	Expect(template.Spec.Containers).To(HaveLen(1))
	return template, template.Spec.Containers[0]
}

// imageVariables returns the environment variables that the image sets.
func imageVariables() map[string]string {
	GinkgoHelper()
	line := regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(deployed("Dockerfile"))
	Expect(line).To(HaveLen(2))
	set := map[string]string{}
	for _, pair := range strings.Fields(line[1]) {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return set
}

// seconds returns a constant of the program's source that is not a setting.
func seconds(file, constant string) int {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", file))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(constant + `\s+= (\d+) \* time\.Second`).FindSubmatch(text)
	Expect(found).To(HaveLen(2), constant)
	number, err := strconv.Atoi(string(found[1]))
	Expect(err).NotTo(HaveOccurred())
	return number
}
