{{/* Volumes and mounts of the learner. */}}

{{- define "kubebeast.learner.volumeMounts" -}}
- name: runs
  mountPath: /runs
- name: config
  mountPath: /etc/kubebeast/config
  readOnly: true
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
- name: config
  configMap:
    name: {{ include "kubebeast.learner.fullname" .root | quote }}
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
{{- if not (include "kubebeast.learner.makesClaim" .) }}
- name: runs
  {{- if and .isFirst .root.Values.learner.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .root.Values.learner.persistence.existingClaim | quote }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- end -}}

{{/* "true" if the StatefulSet creates a claim for its pod, otherwise empty. Arguments as for volumes. */}}
{{- define "kubebeast.learner.makesClaim" -}}
{{- with .root.Values.learner.persistence -}}
{{- if and $.isFirst .enabled (not .existingClaim) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* The claim that contains the run. The claims of a StatefulSet are immutable: no label here may change with a version. */}}
{{- define "kubebeast.learner.claimTemplate" -}}
{{- with .Values.learner.persistence -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: runs
    labels:
      {{- include "kubebeast.selectorLabels" (dict "root" $ "component" "learner") | nindent 6 }}
    {{- with .annotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    accessModes:
      {{- toYaml .accessModes | nindent 6 }}
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
