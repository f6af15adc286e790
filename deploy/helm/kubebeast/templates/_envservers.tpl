{{/* Groups of env-servers. */}}

{{/*
The enabled groups as a JSON array. Each is an entry of `envservers` merged over `envserverDefaults`, with the name of its
objects as "fullname": range include "kubebeast.envservers" . | fromJsonArray. While the release is paused, each group is
"paused" and has no autoscaler.
*/}}
{{- define "kubebeast.envservers" -}}
{{- $groups := list -}}
{{- $names := list -}}
{{- $fullnames := list (include "kubebeast.learner.fullname" .) (include "kubebeast.peers.fullname" .) -}}
{{- $entries := list -}}
{{- if kindIs "slice" .Values.envservers }}{{ $entries = .Values.envservers }}{{ else -}}
{{- range $name, $entry := .Values.envservers | default (include "kubebeast.envservers.default" . | fromJson) -}}
{{- if not (kindIs "invalid" $entry) }}{{ $entries = append $entries (merge (dict "name" $name) $entry) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $entries -}}
{{- $group := include "kubebeast.envserver.merged" (dict "defaults" $.Values.envserverDefaults "entry" .) | fromJson -}}
{{- $long := printf "%s-%s" (include "kubebeast.fullname" $) .name -}}
{{- $fullname := .fullnameOverride | default (include "kubebeast.shortened" (dict "name" $long "max" 63)) -}}
{{- if has .name $names -}}
{{- fail (printf "envservers: the name %q is used twice" .name) -}}
{{- end -}}
{{- if has $fullname $fullnames -}}
{{- fail (printf "envservers: the Deployment of the group %q would be %q, which is taken" .name $fullname) -}}
{{- end -}}
{{- if not (or .env (not $group.enabled)) -}}
{{- fail (printf "envservers.%s.env is required, for example PongNoFrameskip-v4" .name) -}}
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

{{/* The only group if the values contain none, as JSON of a map by name. */}}
{{- define "kubebeast.envservers.default" -}}
{{- $pong := dict "env" "PongNoFrameskip-v4" -}}
{{- dict "envserver" (ternary .Values.demo.envserver $pong (not (empty .Values.demo.enabled))) | toJson -}}
{{- end -}}

{{/*
A group as JSON: dict "defaults" DEFAULTS "entry" ENTRY. The values false, 0 and null of an entry override the defaults. If keys
exclude each other in Kubernetes, those of the entry replace those of the defaults. The settings that the env-server reads are
strings in the result.
*/}}
{{- define "kubebeast.envserver.merged" -}}
{{- $entry := .entry -}}
{{- $defaults := include "kubebeast.withoutExcluded" . | fromJson -}}
{{- if eq "Recreate" (dig "strategy" "type" "" $entry) }}{{ $_ := unset $defaults.strategy "rollingUpdate" }}{{ end -}}
{{- if dig "strategy" "rollingUpdate" "" $entry }}{{ $_ := set $defaults.strategy "type" "RollingUpdate" }}{{ end -}}
{{- $group := mergeOverwrite $defaults (omit $entry "kwargs") -}}
{{- $kwargs := .defaults.kwargs | default dict -}}
{{- if hasKey $entry "kwargs" -}}
{{- if and (kindIs "map" $kwargs) (kindIs "map" $entry.kwargs) -}}
{{- $kwargs = mergeOverwrite (deepCopy $kwargs) $entry.kwargs -}}
{{- else -}}
{{- $kwargs = $entry.kwargs | default dict -}}
{{- end -}}
{{- end -}}
{{- if and (kindIs "string" $kwargs) (hasKey (fromJson $kwargs) "Error") -}}
{{- fail (printf "envservers.%s.kwargs is a string, but not a JSON object: %s" $entry.name (fromJson $kwargs).Error) -}}
{{- end -}}
{{- $_ := set $group "kwargs" (include "kubebeast.text" $kwargs) -}}
{{- $wrappers := $group.wrappers | default list -}}
{{- if kindIs "string" $wrappers -}}
{{- $parsed := fromJson (printf "{\"wrappers\": %s}" $wrappers) -}}
{{- if hasKey $parsed "Error" -}}
{{- fail (printf "envservers.%s.wrappers is a string, but not a JSON array: %s" $entry.name $parsed.Error) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $group "wrappers" (include "kubebeast.text" $wrappers) -}}
{{- $_ := set $group "config" (include "kubebeast.texts" ($group.config | default dict) | fromJson) -}}
{{- toJson $group -}}
{{- end -}}

{{/* Default values without keys that those of an entry exclude, as JSON: dict "defaults" DEFAULTS "entry" ENTRY. */}}
{{- define "kubebeast.withoutExcluded" -}}
{{- $defaults := deepCopy .defaults -}}
{{- $entry := .entry -}}
{{- range $field, $keys := include "kubebeast.exclusive" . | fromJson -}}
{{- range $given := $keys -}}
{{- if hasKey (get $entry $field | default dict) $given -}}
{{- range without $keys $given }}{{ $_ := unset (get $defaults $field | default dict) . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $defaults -}}
{{- end -}}

{{/* Fields of a group that may have only one of several keys, with these keys, as JSON. */}}
{{- define "kubebeast.exclusive" -}}
{{- $handlers := list "exec" "grpc" "httpGet" "tcpSocket" -}}
{{- dict "podDisruptionBudget" (list "maxUnavailable" "minAvailable")
  "startupProbe" $handlers "livenessProbe" $handlers "readinessProbe" $handlers | toJson -}}
{{- end -}}

{{/*
Strategy of a group (the argument) as YAML. By default it adds no pods: on a full cluster, additional pods would wait forever. A
quarter of one to three pods is rounded down to 0, and Kubernetes replaces 0 by 1 only if maxSurge is 0. All fields are set
explicitly: under server-side apply, only the manager that has set a field can remove it, and Recreate must have no
rollingUpdate.
*/}}
{{- define "kubebeast.envserver.strategy" -}}
{{- $strategy := deepCopy .strategy -}}
{{- if ne "Recreate" .strategy.type -}}
{{- $given := .strategy.rollingUpdate | default dict -}}
{{- $keepsAll := has (toString $given.maxUnavailable) (list "0" "0%") -}}
{{- $quarter := dict "maxUnavailable" "25%" "maxSurge" (ternary "25%" 0 $keepsAll) -}}
{{- $_ := set $strategy "rollingUpdate" (mergeOverwrite $quarter $given) -}}
{{- end -}}
{{- toYaml $strategy -}}
{{- end -}}

{{/* Name of the ServiceAccount of a group: dict "root" . "group" GROUP. */}}
{{- define "kubebeast.envserver.serviceAccountName" -}}
{{- $own := printf "%s-envserver" (include "kubebeast.fullname" .root) -}}
{{- .group.serviceAccount.name | default (ternary $own "default" (not (empty .group.serviceAccount.create))) -}}
{{- end -}}
