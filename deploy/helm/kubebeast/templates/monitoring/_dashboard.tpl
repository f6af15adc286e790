{{/*
The Grafana dashboard as JSON, with this release chosen. Its uid is the release's own, as Grafana takes one dashboard for a uid.
*/}}
{{- define "kubebeast.dashboard" -}}
{{- $release := printf "%s-%s" .Release.Namespace (include "kubebeast.fullname" .) -}}
{{- $model := .Files.Get "dashboards/kubebeast.json" | fromJson -}}
{{- $_ := set $model "uid" (printf "kubebeast-%s" (sha1sum $release | trunc 12)) -}}
{{- $_ := set $model "title" (printf "KubeBeast %s/%s" .Release.Namespace .Release.Name) -}}
{{- range $variable := $model.templating.list -}}
{{- with get (dict "namespace" $.Release.Namespace "job" $.Release.Name) $variable.name -}}
{{- $_ := set $variable "current" (dict "text" (list .) "value" (list .)) -}}
{{- end -}}
{{- end -}}
{{- toPrettyJson $model -}}
{{- end -}}
