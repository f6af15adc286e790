{{/* The pod of a learner and its StatefulSets. */}}

{{/* Pod template of the first learner, or of its peers, as YAML: dict "root" . "isFirst" BOOL. */}}
{{- define "kubebeast.learner.podTemplate" -}}
{{- $ := .root -}}
{{- $isFirst := .isFirst -}}
{{- $isJob := include "kubebeast.learner.isJob" $ -}}
{{- $labels := include "kubebeast.learner.labels" . | fromYaml | merge (dict "root" $) -}}
{{- with $.Values.learner -}}
metadata:
  labels:
    {{- include "kubebeast.podLabels" (set (deepCopy $labels) "labels" .podLabels) | nindent 4 }}
  annotations:
    {{- $checksums := dict }}
    {{- if not (include "kubebeast.isSweep" $) }}{{ $_ := set $checksums "checksum/config" (include "kubebeast.learner.settings" $ | sha256sum) }}{{ end }}
    {{- with include "kubebeast.access.checksum" $ }}{{ $_ := set $checksums "checksum/access" . }}{{ end }}
    {{- merge $checksums (.podAnnotations | default dict) | toYaml | nindent 4 }}
spec:
  {{- if $isJob }}
  restartPolicy: {{ ternary "Never" "OnFailure" $isFirst }}
  {{- end }}
  {{- $account := include "kubebeast.learner.serviceAccountName" $ }}
  {{- $pod := include "kubebeast.isSweep" $ | empty | ternary . (include "kubebeast.sweep.pod" $ | fromYaml) }}
  {{- include "kubebeast.podSpec" (dict "root" $ "pod" $pod "serviceAccountName" $account "selector" (include "kubebeast.memberLabels" $labels)) | nindent 2 }}
  {{- with .gpu.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  containers:
    {{- $sources := include "kubebeast.learner.envFrom" (dict "root" $ "container" .) | fromJsonArray }}
    {{- $container := merge (dict "image" (include "kubebeast.learner.image" $ | fromYaml) "extraEnvFrom" $sources) . }}
    - name: learner
      {{- include "kubebeast.container" (dict "root" $ "container" $container) | nindent 6 }}
      {{- with include "kubebeast.learner.command" $ | fromJsonArray }}
      command:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "kubebeast.learner.args" (dict "root" $ "isFirst" $isFirst) | fromJsonArray }}
      args:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- $variables := include "kubebeast.learner.variables" $ | fromJsonArray }}
      {{- with include "kubebeast.extended" (dict "own" $variables "added" .extraEnv "key" "name") }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      ports:
        {{- range include "kubebeast.learner.ports" $ | fromJsonArray }}
        - name: {{ .name }}
          containerPort: {{ .number }}
          protocol: TCP
        {{- end }}
      {{- with include "kubebeast.learner.probes" $ }}
      {{- . | nindent 6 }}
      {{- end }}
      resources:
        {{- include "kubebeast.learner.resources" $ | nindent 8 }}
      volumeMounts:
        {{- $mounts := include "kubebeast.learner.volumeMounts" $ | fromYamlArray }}
        {{- include "kubebeast.extended" (dict "own" $mounts "added" .extraVolumeMounts "key" "mountPath") | nindent 8 }}
    {{- with .extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- $volumes := include "kubebeast.learner.volumes" (dict "root" $ "isFirst" $isFirst) | fromYamlArray }}
    {{- include "kubebeast.extended" (dict "own" $volumes "added" .extraVolumes "key" "name") | nindent 4 }}
{{- end }}
{{- end -}}

{{/* Component and group of the first learner, or of its peers, as YAML: arguments as for podTemplate. */}}
{{- define "kubebeast.learner.labels" -}}
component: learner
{{- if not .isFirst }}
group: peers
{{- end }}
{{- end -}}

{{/*
The StatefulSet of the first learner, or of its peers: dict "root" . "isFirst" BOOL. There are two, because only the first rank
has files to keep, and a StatefulSet creates claims for all of its pods or for none.
*/}}
{{- define "kubebeast.learner.statefulset" -}}
{{- $ := .root -}}
{{- $isFirst := .isFirst -}}
{{- $name := include (ternary "kubebeast.learner.fullname" "kubebeast.peers.fullname" $isFirst) $ -}}
{{- $labels := include "kubebeast.learner.labels" . | fromYaml | merge (dict "root" $) -}}
{{- with $.Values.learner -}}
{{- $makesClaim := include "kubebeast.learner.makesClaim" (dict "root" $ "isFirst" $isFirst) -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- $own := include "kubebeast.queueLabels" . | fromYaml }}
  {{- include "kubebeast.metadata" (dict "root" $ "name" $name "component" "learner" "labels" $own) | nindent 2 }}
spec:
  replicas: {{ empty $.Values.paused | ternary (ternary 1 (sub (int .replicas) 1) $isFirst) 0 }}
  serviceName: {{ include "kubebeast.learner.headlessName" $ }}
  podManagementPolicy: Parallel
  updateStrategy:
    {{- toYaml .updateStrategy | nindent 4 }}
  selector:
    matchLabels:
      {{- include "kubebeast.selectorLabels" $labels | nindent 6 }}
  {{- if and $makesClaim (semverCompare ">=1.27.0-0" $.Capabilities.KubeVersion.Version) }}
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: {{ .persistence.retention.whenDeleted }}
    whenScaled: {{ .persistence.retention.whenScaled }}
  {{- end }}
  template:
    {{- include "kubebeast.learner.podTemplate" (dict "root" $ "isFirst" $isFirst) | nindent 4 }}
  {{- if $makesClaim }}
  volumeClaimTemplates:
    {{- include "kubebeast.learner.claimTemplate" $ | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
