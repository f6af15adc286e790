{{/*
The Grafana dashboard as JSON, with this release selected. Each release has its own uid, because Grafana accepts only one
dashboard per uid.
*/}}
{{- define "kubebeast.dashboard" -}}
{{- $release := printf "%s-%s" .Release.Namespace (include "kubebeast.fullname" .) -}}
{{- $model := .Files.Get "dashboards/kubebeast.json" | fromJson -}}
{{- $_ := set $model "uid" (printf "kubebeast-%s" (sha1sum $release | trunc 12)) -}}
{{- $_ := set $model "title" (printf "KubeBeast %s/%s" .Release.Namespace (include "kubebeast.fullname" .)) -}}
{{- range $variable := $model.templating.list -}}
{{- with get (dict "namespace" $.Release.Namespace "job" (include "kubebeast.fullname" $)) $variable.name -}}
{{- $_ := set $variable "current" (dict "text" (list .) "value" (list .)) -}}
{{- end -}}
{{- end -}}
{{- toPrettyJson $model -}}
{{- end -}}
