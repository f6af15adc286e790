{{/*
How many pods a group has. A field that Helm has set and then leaves out falls back to Kubernetes' default, one pod: a
Deployment that was made with `replicas` keeps the field for life, one that was made without never gets it while somebody
else scales it.
*/}}

{{/* Whether somebody else than the values decides on the replicas of a group: "true" or nothing. */}}
{{- define "kubebeast.envserver.isScaledByOthers" -}}
{{- if or .scaledByOthers .autoscaling.hpa.enabled .autoscaling.keda.enabled -}}true{{- end -}}
{{- end -}}

{{/* The group's Deployment on the cluster, as JSON; {} where there is none, or no cluster to ask, as in `helm template`. */}}
{{- define "kubebeast.envserver.live" -}}
{{- lookup "apps/v1" "Deployment" .root.Release.Namespace .group.fullname | toJson -}}
{{- end -}}

{{/*
`spec.replicas` of a group, or nothing: dict "root" . "group" GROUP. An upgrade keeps the number that the cluster has, unless
the value has changed since the last one. After a pause it is the value again, or the fewest that an autoscaler may have:
none would switch the autoscaler off.
*/}}
{{- define "kubebeast.envserver.replicas" -}}
{{- $live := include "kubebeast.envserver.live" . | fromJson -}}
{{- $annotations := dig "metadata" "annotations" dict $live -}}
{{- $made := get $annotations "kubebeast/replicas" -}}
{{- $value := .group.replicas | int | toString -}}
{{- $isOthers := include "kubebeast.envserver.isScaledByOthers" .group -}}
{{- if .group.paused -}}
0
{{- else if and $isOthers (or (not $live) (get $annotations "kubebeast/scaled-by-others")) -}}
{{- else if and $live (ne $made "paused") (or $isOthers (eq $made $value)) -}}
{{- $live.spec.replicas | int -}}
{{- else if and $isOthers (not .group.scaledByOthers) -}}
{{- .group.autoscaling.minReplicas | int -}}
{{- else -}}
{{- $value -}}
{{- end -}}
{{- end -}}

{{/* What the next upgrade needs to know, as YAML of annotations. Arguments as of replicas. */}}
{{- define "kubebeast.envserver.replicasAnnotations" -}}
kubebeast/replicas: {{ .group.paused | ternary "paused" (.group.replicas | int | toString) | quote }}
{{- if not (include "kubebeast.envserver.replicas" .) }}
kubebeast/scaled-by-others: "true"
{{- end }}
{{- end -}}
