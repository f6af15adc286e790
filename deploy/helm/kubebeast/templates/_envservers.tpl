{{/* Groups of env-servers. */}}

{{/*
The groups that are enabled, as a JSON array, each an entry of `envservers` merged over `envserverDefaults`, with its object's
name as "fullname": range include "kubebeast.envservers" . | fromJsonArray. While the release is paused each is "paused" and
has no autoscaler.
*/}}
{{- define "kubebeast.envservers" -}}
{{- $groups := list -}}
{{- $names := list -}}
{{- $fullnames := list (include "kubebeast.learner.fullname" .) (include "kubebeast.peers.fullname" .) -}}
{{- range include "kubebeast.envservers.entries" . | fromJsonArray -}}
{{- $group := include "kubebeast.envserver.merged" (dict "defaults" $.Values.envserverDefaults "entry" .) | fromJson -}}
{{- $long := printf "%s-%s" (include "kubebeast.fullname" $) .name -}}
{{- $fullname := .fullnameOverride | default (include "kubebeast.shortened" (dict "name" $long "max" 63)) -}}
{{- if has .name $names -}}
{{- fail (printf "envservers: the name %q is there twice" .name) -}}
{{- end -}}
{{- if has $fullname $fullnames -}}
{{- fail (printf "envservers: the Deployment of the group %q would be %q, which is taken" .name $fullname) -}}
{{- end -}}
{{- if not (or .env (not $group.enabled)) -}}
{{- fail (printf "envservers.%s.env: which environment? For example PongNoFrameskip-v4" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- $fullnames = append $fullnames $fullname -}}
{{- $_ := set $group "paused" (not (empty $.Values.paused)) -}}
{{- if $group.paused -}}
{{- $_ := mergeOverwrite $group (dict "autoscaling" (dict "hpa" (dict "enabled" false) "keda" (dict "enabled" false))) -}}
{{- end -}}
{{- if $group.enabled -}}
{{- $groups = append $groups (set $group "fullname" $fullname) -}}
{{- end -}}
{{- end -}}
{{- $groups | toJson -}}
{{- end -}}

{{/* What the values say of each group, as a JSON array of maps with a "name". Where they say nothing there is one group. */}}
{{- define "kubebeast.envservers.entries" -}}
{{- $entries := list -}}
{{- if kindIs "slice" .Values.envservers -}}
{{- $entries = .Values.envservers -}}
{{- else -}}
{{- $pong := dict "env" "PongNoFrameskip-v4" -}}
{{- $default := dict "envserver" (ternary .Values.demo.envserver $pong (not (empty .Values.demo.enabled))) -}}
{{- range $name, $entry := .Values.envservers | default $default -}}
{{- if not (kindIs "invalid" $entry) -}}
{{- $entries = append $entries (merge (dict "name" $name) $entry) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $entries -}}
{{- end -}}

{{/*
A group as JSON: dict "defaults" DEFAULTS "entry" ENTRY. An entry's false and 0 win over the defaults. Of keys that exclude
each other in Kubernetes, those of the entry drive out those of the defaults.
*/}}
{{- define "kubebeast.envserver.merged" -}}
{{- $defaults := deepCopy .defaults -}}
{{- $entry := .entry -}}
{{- range $field, $keys := include "kubebeast.exclusive" . | fromJson -}}
{{- range $given := $keys -}}
{{- if hasKey (get $entry $field | default dict) $given -}}
{{- range without $keys $given }}{{ $_ := unset (get $defaults $field | default dict) . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq "Recreate" (dig "strategy" "type" "" $entry) }}{{ $_ := unset $defaults.strategy "rollingUpdate" }}{{ end -}}
{{- if dig "strategy" "rollingUpdate" "" $entry }}{{ $_ := set $defaults.strategy "type" "RollingUpdate" }}{{ end -}}
{{- mergeOverwrite $defaults $entry | toJson -}}
{{- end -}}

{{/* Fields of a group that may have only one of several keys, with those keys, as JSON. */}}
{{- define "kubebeast.exclusive" -}}
{{- $handlers := list "exec" "grpc" "httpGet" "tcpSocket" -}}
{{- dict "podDisruptionBudget" (list "maxUnavailable" "minAvailable")
  "startupProbe" $handlers "livenessProbe" $handlers "readinessProbe" $handlers | toJson -}}
{{- end -}}

{{/*
Strategy of a group, the argument, as YAML. With Kubernetes' own defaults said: under server-side apply a field can only be
taken away by who has set it, and Recreate must have no rollingUpdate.
*/}}
{{- define "kubebeast.envserver.strategy" -}}
{{- $strategy := deepCopy .strategy -}}
{{- if ne "Recreate" .strategy.type -}}
{{- $quarter := dict "maxUnavailable" "25%" "maxSurge" "25%" -}}
{{- $_ := set $strategy "rollingUpdate" (mergeOverwrite $quarter (.strategy.rollingUpdate | default dict)) -}}
{{- end -}}
{{- toYaml $strategy -}}
{{- end -}}

{{/* Name of the ServiceAccount of a group: dict "root" . "group" GROUP. */}}
{{- define "kubebeast.envserver.serviceAccountName" -}}
{{- $own := printf "%s-envserver" (include "kubebeast.fullname" .root) -}}
{{- .group.serviceAccount.name | default (ternary $own "default" (not (empty .group.serviceAccount.create))) -}}
{{- end -}}
