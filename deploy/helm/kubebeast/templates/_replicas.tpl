{{/*
The number of pods of a group. If Helm has set a field and then omits it, Kubernetes resets it to its default, one pod. So a
Deployment that was created with `replicas` always keeps the field, and a Deployment that was created without it never gets it
as long as others scale it.
*/}}

{{/* "true" if an autoscaler or others control the replicas of a group, not the values; otherwise empty. */}}
{{- define "kubebeast.envserver.isScaledByOthers" -}}
{{- if or .scaledByOthers .autoscaling.hpa.enabled .autoscaling.keda.enabled -}}true{{- end -}}
{{- end -}}

{{/* The group's Deployment in the cluster, as JSON; {} if there is none, or no cluster, as in `helm template`. */}}
{{- define "kubebeast.envserver.live" -}}
{{- lookup "apps/v1" "Deployment" .root.Release.Namespace .group.fullname | toJson -}}
{{- end -}}

{{/*
"true" if the group has no pods and this upgrade begins a training, with a Job that the cluster does not have: the end of the last
one has scaled the group to zero. Otherwise empty. Arguments as for live, and "live" the Deployment.
*/}}
{{- define "kubebeast.envserver.beginsAgain" -}}
{{- if and .live (include "kubebeast.learner.hasJob" .root) (not (dig "spec" "replicas" 1 .live)) -}}
{{- $job := include "kubebeast.learner.job" .root | fromYaml -}}
{{- if not (lookup $job.apiVersion $job.kind .root.Release.Namespace $job.name) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/*
`spec.replicas` of a group, or empty: dict "root" . "group" GROUP. An upgrade keeps the current number of pods, unless the value
has changed since the last upgrade. After a pause, and for a training after the end of another one, it is the value again, or the
minimum of the autoscaler: 0 would switch the autoscaler off.
*/}}
{{- define "kubebeast.envserver.replicas" -}}
{{- $live := include "kubebeast.envserver.live" . | fromJson -}}
{{- $annotations := dig "metadata" "annotations" dict $live -}}
{{- $made := get $annotations "kubebeast/replicas" -}}
{{- $value := .group.replicas | int | toString -}}
{{- $isOthers := include "kubebeast.envserver.isScaledByOthers" .group -}}
{{- $isAgain := or (eq "paused" ($made | default "")) (include "kubebeast.envserver.beginsAgain" (merge (dict "live" $live) .)) -}}
{{- if .group.paused -}}
0
{{- else if and $isOthers (or (not $live) (and (not $isAgain) (get $annotations "kubebeast/scaled-by-others"))) -}}
{{- else if and $live (not $isAgain) (or $isOthers (eq $made $value)) -}}
{{- $live.spec.replicas | int -}}
{{- else if and $isOthers (not .group.scaledByOthers) -}}
{{- .group.autoscaling.minReplicas | int -}}
{{- else -}}
{{- $value -}}
{{- end -}}
{{- end -}}

{{/* Annotations that the next upgrade reads, as YAML. Arguments as for replicas. */}}
{{- define "kubebeast.envserver.replicasAnnotations" -}}
kubebeast/replicas: {{ .group.paused | ternary "paused" (.group.replicas | int | toString) | quote }}
{{- if not (include "kubebeast.envserver.replicas" .) }}
kubebeast/scaled-by-others: "true"
{{- end }}
{{- end -}}
