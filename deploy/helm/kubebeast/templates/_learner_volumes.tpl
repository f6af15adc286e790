{{/* Volumes and mounts of the learner. */}}

{{- define "kubebeast.learner.volumeMounts" -}}
{{- if not .Values.learner.storage.url }}
- name: runs
  mountPath: /runs
{{- end }}
{{- if not (include "kubebeast.isSweep" .) }}
- name: config
  mountPath: /etc/kubebeast/config
  readOnly: true
{{- end }}
{{- with include "kubebeast.access.mount" . }}
{{ . }}
{{- end }}
- name: tmp
  mountPath: /tmp
- name: shm
  mountPath: /dev/shm
{{- end -}}

{{/* Volumes of a pod as YAML, without the claim that its StatefulSet creates: dict "root" . "isFirst" BOOL. */}}
{{- define "kubebeast.learner.volumes" -}}
{{- if not (include "kubebeast.isSweep" .root) }}
- name: config
  configMap:
    name: {{ include "kubebeast.learner.fullname" .root | quote }}
{{- end }}
{{- with include "kubebeast.access.volume" (dict "root" .root "side" "learner") }}
{{ . }}
{{- end }}
- name: tmp
  emptyDir:
    sizeLimit: {{ include "kubebeast.text" .root.Values.learner.tmp.sizeLimit | quote }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ include "kubebeast.text" .root.Values.learner.sharedMemory.sizeLimit | quote }}
{{- if not (or .root.Values.learner.storage.url (include "kubebeast.learner.makesClaim" .)) }}
- name: runs
  {{- if and .isFirst .root.Values.learner.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ include "kubebeast.learner.claimName" .root | quote }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- end -}}

{{/* "true" if the StatefulSet creates a claim for its pod, otherwise empty. Arguments as for volumes. */}}
{{- define "kubebeast.learner.makesClaim" -}}
{{- if and .isFirst (include "kubebeast.learner.needsClaim" .root) (not (include "kubebeast.learner.isJob" .root)) }}true{{ end -}}
{{- end -}}

{{/* "true" if the run is on a claim that is not the user's, otherwise empty. */}}
{{- define "kubebeast.learner.needsClaim" -}}
{{- with .Values.learner.persistence -}}
{{- if and .enabled (not .existingClaim) (not $.Values.learner.storage.url) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* Name of the claim of the run; for a Job, too, that of the StatefulSet, so that the run stays if the workload changes. */}}
{{- define "kubebeast.learner.claimName" -}}
{{- .Values.learner.persistence.existingClaim | default (printf "runs-%s-0" (include "kubebeast.learner.fullname" .)) -}}
{{- end -}}

{{/* Place of the runs, for the learner and the evaluator. */}}
{{- define "kubebeast.learner.savedir" -}}
{{- .Values.learner.storage.url | default "/runs" -}}
{{- end -}}

{{/* Sources of the variables of the learner and the evaluator: the Secret of the bucket, and those of `container`. */}}
{{- define "kubebeast.learner.envFrom" -}}
{{- $sources := list -}}
{{- with .root.Values.learner.storage.existingSecret -}}
{{- $sources = list (dict "secretRef" (dict "name" (include "kubebeast.text" .))) -}}
{{- end -}}
{{- concat $sources (.container.extraEnvFrom | default list) | toJson -}}
{{- end -}}

{{/* The claim that contains the run. The claims of a StatefulSet are immutable: no label here may change with a version. */}}
{{- define "kubebeast.learner.claimTemplate" -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: runs
    labels:
      {{- include "kubebeast.selectorLabels" (dict "root" $ "component" "learner") | nindent 6 }}
    {{- with .Values.learner.persistence.annotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    {{- include "kubebeast.learner.claimSpec" . | nindent 4 }}
{{- end -}}

{{- define "kubebeast.learner.claimSpec" -}}
{{- with .Values.learner.persistence -}}
accessModes:
  {{- toYaml .accessModes | nindent 2 }}
{{- if eq "-" (.storageClassName | default "") }}
storageClassName: ""
{{- else if .storageClassName }}
storageClassName: {{ .storageClassName | quote }}
{{- end }}
resources:
  requests:
    storage: {{ include "kubebeast.text" .size | quote }}
{{- end -}}
{{- end -}}
