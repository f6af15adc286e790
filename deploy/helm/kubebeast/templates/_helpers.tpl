{{/* Names, labels, metadata and images for all templates. Arguments are the root context, or a dict that contains it. */}}

{{/* Base of all names. 40 characters: the revision label of a StatefulSet, "<fullname>-learner-<hash>", has at most 63. */}}
{{- define "kubebeast.fullname" -}}
{{- $suffix := .Values.nameOverride | default (include "kubebeast.alias" .) -}}
{{- $name := .Values.fullnameOverride | default (printf "%s-%s" .Release.Name $suffix | trimSuffix "-") -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "the name of a Service starts with a letter and contains only lower-case letters, digits and hyphens, unlike %q: set fullnameOverride" $name) -}}
{{- end -}}
{{- include "kubebeast.shortened" (dict "name" $name "max" 40) -}}
{{- end -}}

{{/*
A name of at most "max" characters: dict "name" NAME "max" NUMBER. A longer name is truncated and ends in a hash of the whole
name, so two names stay different if they differ only in the truncated part.
*/}}
{{- define "kubebeast.shortened" -}}
{{- if le (len .name) .max -}}
{{- .name -}}
{{- else -}}
{{- printf "%s-%s" (.name | trunc (int (sub .max 9)) | trimSuffix "-") (.name | sha256sum | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* Name of the learner's StatefulSet, Service and ConfigMap. */}}
{{- define "kubebeast.learner.fullname" -}}
{{- printf "%s-learner" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/*
Labels by which workloads select their pods: dict "root" . "component" "learner", for a group of env-servers also "group" its
name. They are immutable: nothing here may change with a version.
*/}}
{{- define "kubebeast.selectorLabels" -}}
app.kubernetes.io/name: kubebeast
app.kubernetes.io/instance: {{ include "kubebeast.instance" .root | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .group }}
kubebeast/group: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Labels by which all other objects select these pods, e.g. Services and policies. Arguments as for selectorLabels. */}}
{{- define "kubebeast.memberLabels" -}}
{{ include "kubebeast.selectorLabels" . }}
{{- if ne (include "kubebeast.instance" .root) (include "kubebeast.fullname" .root) }}
kubebeast/name: {{ include "kubebeast.fullname" .root | quote }}
{{- end }}
{{- end -}}

{{/* Labels of an object: arguments as for selectorLabels, and "labels" with additional ones. The chart's own labels win. */}}
{{- define "kubebeast.labels" -}}
{{- $own := include "kubebeast.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "kubebeast/name" (include "kubebeast.fullname" .root) -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "kubebeast" -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $own (.labels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* Labels of a pod: as labels, without those that change with the chart, which would restart the pod needlessly. */}}
{{- define "kubebeast.podLabels" -}}
{{- $own := include "kubebeast.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "kubebeast/name" (include "kubebeast.fullname" .root) -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "kubebeast" -}}
{{- merge $own (.labels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/*
The fields of an object's metadata: dict "root" . "name" NAME and optionally "component", "group", "labels", "annotations" and
"namespace".
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
Fails with a list of possible registries. There is no default: the container runtime would pull from Docker Hub, and images of
these names there could belong to anyone.
*/}}
{{- define "kubebeast.image.refuse" -}}
{{- $images := printf "localhost/kubebeast/learner:%s localhost/kubebeast/envserver:%s" .Chart.AppVersion .Chart.AppVersion -}}
{{- $lines := list
  "image.registry is empty: set the registry of the images. A released chart, helm install NAME oci://REGISTRY/charts/kubebeast, contains the registry of its release; this chart is from a source tree."
  "  built here by scripts/images:          --set image.registry=localhost"
  (printf "                                         on kind, first run: kind load docker-image %s" $images)
  "  pushed by scripts/release/images:      --set image.registry=registry.example.com/team, the REGISTRY of that command" -}}
{{- fail (join "\n" $lines) -}}
{{- end -}}
