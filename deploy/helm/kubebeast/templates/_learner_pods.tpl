{{/*
The StatefulSet of the first learner, or of its peers: dict "root" . "isFirst" BOOL. Two of them, as only the first rank has
files to keep, and a StatefulSet makes a claim for all of its pods or for none.
*/}}
{{- define "kubebeast.learner.statefulset" -}}
{{- $ := .root -}}
{{- $isFirst := .isFirst -}}
{{- $name := include (ternary "kubebeast.learner.fullname" "kubebeast.peers.fullname" $isFirst) $ -}}
{{- $labels := dict "root" $ "component" "learner" -}}
{{- if not $isFirst }}{{ $_ := set $labels "group" "peers" }}{{ end -}}
{{- $selector := include "kubebeast.selectorLabels" $labels -}}
{{- with $.Values.learner -}}
{{- $makesClaim := and $isFirst .persistence.enabled (not .persistence.existingClaim) -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "kubebeast.metadata" (dict "root" $ "name" $name "component" "learner" "labels" .labels) | nindent 2 }}
spec:
  replicas: {{ empty $.Values.paused | ternary (ternary 1 (sub (int .replicas) 1) $isFirst) 0 }}
  serviceName: {{ include "kubebeast.learner.headlessName" $ }}
  podManagementPolicy: Parallel
  updateStrategy:
    {{- toYaml .updateStrategy | nindent 4 }}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  {{- if and $makesClaim (semverCompare ">=1.27.0-0" $.Capabilities.KubeVersion.Version) }}
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: {{ .persistence.retention.whenDeleted }}
    whenScaled: {{ .persistence.retention.whenScaled }}
  {{- end }}
  template:
    metadata:
      labels:
        {{- include "kubebeast.podLabels" (set (deepCopy $labels) "labels" .podLabels) | nindent 8 }}
      annotations:
        checksum/config: {{ include "kubebeast.learner.settings" $ | sha256sum }}
        {{- with include "kubebeast.access.checksum" $ }}
        checksum/access: {{ . | quote }}
        {{- end }}
        {{- with .podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- $account := include "kubebeast.learner.serviceAccountName" $ }}
      {{- include "kubebeast.podSpec" (dict "root" $ "pod" . "serviceAccountName" $account "selector" $selector) | nindent 6 }}
      {{- with .gpu.runtimeClassName }}
      runtimeClassName: {{ . | quote }}
      {{- end }}
      containers:
        {{- $container := merge (dict "image" (include "kubebeast.learner.image" $ | fromYaml)) . }}
        - name: learner
          {{- include "kubebeast.container" (dict "root" $ "container" $container) | nindent 10 }}
          {{- with include "kubebeast.learner.command" $ | fromJsonArray }}
          command:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with concat (include "kubebeast.learner.args" (dict "root" $ "isFirst" $isFirst) | fromJsonArray) (.extraArgs | default list) }}
          args:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with concat (include "kubebeast.learner.variables" $ | fromJsonArray) (.extraEnv | default list) }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- range include "kubebeast.learner.ports" $ | fromJsonArray }}
            - name: {{ .name }}
              containerPort: {{ .number }}
              protocol: TCP
            {{- end }}
          {{- with include "kubebeast.learner.probes" $ }}
          {{- . | nindent 10 }}
          {{- end }}
          resources:
            {{- include "kubebeast.learner.resources" $ | nindent 12 }}
          volumeMounts:
            - name: runs
              mountPath: /runs
            - name: config
              mountPath: /etc/kubebeast/config
              readOnly: true
            {{- with include "kubebeast.access.mount" $ }}
            {{- . | nindent 12 }}
            {{- end }}
            - name: tmp
              mountPath: /tmp
            - name: shm
              mountPath: /dev/shm
            {{- with .extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
        {{- with .extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        - name: config
          configMap:
            name: {{ include "kubebeast.learner.fullname" $ | quote }}
        {{- with include "kubebeast.access.volume" (dict "root" $ "side" "learner") }}
        {{- . | nindent 8 }}
        {{- end }}
        - name: tmp
          emptyDir:
            sizeLimit: {{ .tmp.sizeLimit | quote }}
        - name: shm
          emptyDir:
            medium: Memory
            sizeLimit: {{ .sharedMemory.sizeLimit | quote }}
        {{- if not $makesClaim }}
        {{- include "kubebeast.learner.runsVolume" (ternary . (dict "persistence" dict) $isFirst) | nindent 8 }}
        {{- end }}
        {{- with .extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- if $makesClaim }}
  volumeClaimTemplates:
    {{- include "kubebeast.learner.claimTemplate" $ | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
