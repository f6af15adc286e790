{{/* Common parts of the Services. */}}

{{/*
IP families of a Service, as YAML of its fields. By default both, if the cluster has two. Before Kubernetes 1.23, where dual
stack depends on feature gates, the default is empty.
*/}}
{{- define "kubebeast.ipFamilies" -}}
{{- $both := semverCompare ">=1.23.0-0" .Capabilities.KubeVersion.Version | ternary "PreferDualStack" "" -}}
{{- $fields := dict -}}
{{- with .Values.ipFamilyPolicy | default $both }}{{ $_ := set $fields "ipFamilyPolicy" . }}{{ end -}}
{{- with .Values.ipFamilies }}{{ $_ := set $fields "ipFamilies" . }}{{ end -}}
{{- with $fields }}{{ toYaml . }}{{ end -}}
{{- end -}}
