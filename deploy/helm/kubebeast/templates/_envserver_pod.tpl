{{/* The pod of an env-server, for the Deployments and the test. Arguments: dict "root" . "group" GROUP. */}}

{{/* Settings of kubebeast-envserver by name, each as a string, as JSON. */}}
{{- define "kubebeast.envserver.settings" -}}
{{- $settings := deepCopy (.group.config | default dict) -}}
{{- $_ := set $settings "address" (include "kubebeast.learner.address" .root) -}}
{{- with include "kubebeast.envserver.run" .root }}{{ $_ := set $settings "run" . }}{{ end -}}
{{- $_ := set $settings "http_address" "[::]:9091" -}}
{{- $_ := set $settings "env" .group.env -}}
{{- $_ := set $settings "preset" .group.preset -}}
{{- $_ := set $settings "env_kwargs" .group.kwargs -}}
{{- $_ := set $settings "wrappers" .group.wrappers -}}
{{- $_ := set $settings "time_limit" (.group.timeLimit | default 0) -}}
{{- $_ := set $settings "num_streams" .group.numStreams -}}
{{- $_ := set $settings "envs_per_stream" .group.envsPerStream -}}
{{- if not (kindIs "invalid" .group.seed) }}{{ $_ := set $settings "seed" .group.seed }}{{ end -}}
{{- include "kubebeast.access.settings" (dict "root" .root "side" "envserver") | fromYaml | merge $settings | include "kubebeast.texts" -}}
{{- end -}}

{{/*
The run of the env-servers, so that the learner of another run refuses them. Empty means any run: for a learner outside the
release if the values do not contain its xpid, for another trainer, whose runs have no name, and in a sweep.
*/}}
{{- define "kubebeast.envserver.run" -}}
{{- if include "kubebeast.isSweep" . -}}
{{- else if .Values.learner.enabled -}}
{{- if not .Values.learner.command }}{{ include "kubebeast.learner.xpid" . }}{{ end -}}
{{- else -}}
{{- .Values.learner.xpid -}}
{{- end -}}
{{- end -}}

{{/* Variables of the container, as YAML: dict "group" GROUP "id" VARIABLE "settings" JSON of strings. */}}
{{- define "kubebeast.envserver.env" -}}
{{- $settings := include "kubebeast.settingVariables" .settings | fromYamlArray -}}
{{- include "kubebeast.extended" (dict "own" (prepend $settings .id) "added" .group.extraEnv "key" "name") -}}
{{- end -}}

{{- define "kubebeast.envserver.volumeMounts" -}}
{{- $own := list (dict "name" "tmp" "mountPath" "/tmp") -}}
{{- $own = include "kubebeast.access.mount" .root | fromYamlArray | concat $own -}}
{{- include "kubebeast.extended" (dict "own" $own "added" .group.extraVolumeMounts "key" "mountPath") -}}
{{- end -}}

{{- define "kubebeast.envserver.volumes" -}}
{{- $own := list (dict "name" "tmp" "emptyDir" (dict "sizeLimit" (include "kubebeast.text" .group.tmp.sizeLimit))) -}}
{{- $own = include "kubebeast.access.volume" (dict "root" .root "side" "envserver") | fromYamlArray | concat $own -}}
{{- include "kubebeast.extended" (dict "own" $own "added" .group.extraVolumes "key" "name") -}}
{{- end -}}
