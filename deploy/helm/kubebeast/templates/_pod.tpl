{{/* What the pods of learner, env-servers and test have in common. */}}

{{/*
Fields of a pod spec: dict "root" . "pod" the values of the pod, "serviceAccountName" NAME, "selector" its labels as YAML.
Without service links: a Service named kubebeast would set KUBEBEAST_PORT, and such variables are settings.
*/}}
{{- define "kubebeast.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ .serviceAccountName }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ .pod.terminationGracePeriodSeconds | int }}
securityContext:
  {{- toYaml .pod.podSecurityContext | nindent 2 }}
{{- with .pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "kubebeast.topologySpreadConstraints" . }}
topologySpreadConstraints:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Constraints without a selector count the pods of their own kind. Arguments as of podSpec. */}}
{{- define "kubebeast.topologySpreadConstraints" -}}
{{- $constraints := list -}}
{{- range .pod.topologySpreadConstraints -}}
{{- $constraint := deepCopy . -}}
{{- if not (hasKey $constraint "labelSelector") -}}
{{- $_ := set $constraint "labelSelector" (dict "matchLabels" (fromYaml $.selector)) -}}
{{- end -}}
{{- $constraints = append $constraints $constraint -}}
{{- end -}}
{{- with $constraints }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Fields of a container: dict "root" . "container" its values. */}}
{{- define "kubebeast.container" -}}
image: {{ include "kubebeast.image" (dict "root" .root "image" .container.image) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .container.securityContext | nindent 2 }}
{{- with .container.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The probes of a container, those that are not null. */}}
{{- define "kubebeast.probes" -}}
{{- $probes := dict -}}
{{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" -}}
{{- with get $ $name }}{{ $_ := set $probes $name . }}{{ end -}}
{{- end -}}
{{- with $probes }}{{ toYaml . }}{{ end -}}
{{- end -}}
