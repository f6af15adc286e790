{{/* Groups of env-servers. */}}

{{/*
The groups as a JSON array, each an entry of `envservers` merged over `envserverDefaults`, with its object's name as
"fullname": range include "kubebeast.envservers" . | fromJsonArray. An entry's false and 0 win over the defaults.
*/}}
{{- define "kubebeast.envservers" -}}
{{- $groups := list -}}
{{- $names := list -}}
{{- $fullnames := list -}}
{{- range .Values.envservers -}}
{{- $group := mergeOverwrite (deepCopy $.Values.envserverDefaults) (deepCopy .) -}}
{{- $fullname := .fullnameOverride | default (printf "%s-%s" (include "kubebeast.fullname" $) .name) -}}
{{- if has .name $names -}}
{{- fail (printf "envservers: the name %q is there twice" .name) -}}
{{- end -}}
{{- if has $fullname $fullnames -}}
{{- fail (printf "envservers: two groups would have the Deployment %q" $fullname) -}}
{{- end -}}
{{- if gt (len $fullname) 63 -}}
{{- fail (printf "envservers: %q has more than 63 characters: set fullnameOverride of the group %q" $fullname .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- $fullnames = append $fullnames $fullname -}}
{{- $groups = append $groups (set $group "fullname" $fullname) -}}
{{- end -}}
{{- $groups | toJson -}}
{{- end -}}

{{/* Whether an autoscaler decides on the replicas of a group: "true" or nothing. */}}
{{- define "kubebeast.envserver.isAutoscaled" -}}
{{- if or .autoscaling.hpa.enabled .autoscaling.keda.enabled -}}true{{- end -}}
{{- end -}}

{{/*
Replicas of a group: dict "root" . "group" GROUP. An upgrade keeps what `kubectl scale` has set since the last one, unless the
value has changed: the annotation kubebeast/replicas tells which value the Deployment was made with. Without a cluster to
ask, as in `helm template`, it is the value.
*/}}
{{- define "kubebeast.envserver.replicas" -}}
{{- $live := lookup "apps/v1" "Deployment" .root.Release.Namespace .group.fullname -}}
{{- $made := dig "metadata" "annotations" "kubebeast/replicas" "" $live -}}
{{- if eq $made (.group.replicas | int | toString) -}}
{{- $live.spec.replicas | int -}}
{{- else -}}
{{- .group.replicas | int -}}
{{- end -}}
{{- end -}}

{{/* Name of the ServiceAccount of a group: dict "root" . "group" GROUP. */}}
{{- define "kubebeast.envserver.serviceAccountName" -}}
{{- $own := printf "%s-envserver" (include "kubebeast.fullname" .root) -}}
{{- .group.serviceAccount.name | default (ternary $own "default" .group.serviceAccount.create) -}}
{{- end -}}
