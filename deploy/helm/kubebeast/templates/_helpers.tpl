{{/* Names, labels, metadata and images: what every template needs. Arguments are the root context, or a dict of it. */}}

{{/* Base of all names. 40 characters: the revision label of a StatefulSet, "<fullname>-learner-<hash>", has 63 at most. */}}
{{- define "kubebeast.fullname" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name -}}
{{- if and .Values.nameOverride (not .Values.fullnameOverride) -}}
{{- $name = printf "%s-%s" .Release.Name .Values.nameOverride -}}
{{- end -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "a Service's name begins with a letter and has lower-case letters, digits and hyphens only, unlike %q: set fullnameOverride" $name) -}}
{{- end -}}
{{- include "kubebeast.shortened" (dict "name" $name "max" 40) -}}
{{- end -}}

{{/*
A name of at most "max" characters: dict "name" NAME "max" NUMBER. A longer one ends in a hash of all of it: two that differ
only where they are cut stay different.
*/}}
{{- define "kubebeast.shortened" -}}
{{- if le (len .name) .max -}}
{{- .name -}}
{{- else -}}
{{- printf "%s-%s" (.name | trunc (int (sub .max 9)) | trimSuffix "-") (.name | sha256sum | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* Name of the learner's StatefulSet, Service, ConfigMap. */}}
{{- define "kubebeast.learner.fullname" -}}
{{- printf "%s-learner" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/*
What a selector selects by: dict "root" . "component" "learner", for a group of env-servers also "group" its name.
Selectors are immutable: nothing here may change with a version.
*/}}
{{- define "kubebeast.selectorLabels" -}}
app.kubernetes.io/name: kubebeast
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .group }}
kubebeast/group: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Labels of an object: arguments as for selectorLabels, and "labels" with further ones. The chart's own win. */}}
{{- define "kubebeast.labels" -}}
{{- $own := include "kubebeast.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "kubebeast" -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $own (.labels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* Labels of a pod: as labels, without those that change with the chart and would restart it for nothing. */}}
{{- define "kubebeast.podLabels" -}}
{{- $own := include "kubebeast.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "kubebeast" -}}
{{- merge $own (.labels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/*
The fields of an object's metadata: dict "root" . "name" NAME and, all optional, "component", "group", "labels",
"annotations", "namespace".
*/}}
{{- define "kubebeast.metadata" -}}
name: {{ .name | quote }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- include "kubebeast.labels" . | nindent 2 }}
{{- with merge dict (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Image reference: dict "root" . "image" a dict of repository and tag. */}}
{{- define "kubebeast.image" -}}
{{- $registry := .root.Values.image.registry | default (.root.Values.global | default dict).imageRegistry -}}
{{- $namesItsRegistry := regexMatch "^([^/]*[.:][^/]*|localhost)/" .image.repository -}}
{{- if not (or $registry $namesItsRegistry) }}{{ include "kubebeast.image.refuse" .root }}{{ end -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{/*
Fails, and says which registry may be meant. None is taken for granted: the container runtime would look in Docker Hub,
where anybody may take the images' names.
*/}}
{{- define "kubebeast.image.refuse" -}}
{{- $images := printf "localhost/kubebeast/learner:%s localhost/kubebeast/envserver:%s" .Chart.AppVersion .Chart.AppVersion -}}
{{- $lines := list
  "image.registry is empty: where are the images? A released chart, helm install NAME oci://REGISTRY/charts/kubebeast, has the registry of its release; this one is from a source tree."
  "  built here by scripts/images:       --set image.registry=localhost"
  (printf "                                      and on kind first: kind load docker-image %s" $images)
  "  pushed by scripts/release/images:   --set image.registry=registry.example.com/team, the REGISTRY that they were pushed to" -}}
{{- fail (join "\n" $lines) -}}
{{- end -}}
