{{/*
The end of the env-servers of a Job: a pod waits until the Job has ended, and scales their Deployments to zero. Until then everybody
can scale them.
*/}}

{{- define "kubebeast.fleetEnd.fullname" -}}
{{- printf "%s-fleet-end" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* Names of the Deployments as a JSON array; empty if there is nothing to scale. */}}
{{- define "kubebeast.fleetEnd.deployments" -}}
{{- $names := list -}}
{{- if and (include "kubebeast.learner.hasJob" .) .Values.learner.job.fleetEnd.enabled (not .Values.paused) -}}
{{- range include "kubebeast.envservers" . | fromJsonArray }}{{ $names = append $names .fullname }}{{ end -}}
{{- end -}}
{{- with $names }}{{ toJson . }}{{ end -}}
{{- end -}}

{{/* Values of the pod: those of all env-servers that select its nodes, because these nodes have the image. */}}
{{- define "kubebeast.fleetEnd.pod" -}}
{{- $end := .Values.learner.job.fleetEnd -}}
{{- $fields := list "podSecurityContext" "securityContext" "nodeSelector" "tolerations" "affinity" "avoidNodesWith" "schedulerName" -}}
{{- $pod := dict "terminationGracePeriodSeconds" 10 "resources" $end.resources "lostNodeSeconds" .Values.envserverDefaults.lostNodeSeconds -}}
{{- range $fields }}{{ $_ := set $pod . (get $.Values.envserverDefaults .) }}{{ end -}}
{{- $image := .Values.envserverDefaults.image -}}
{{- $own := dict "repository" ($end.image.repository | default $image.repository) "tag" ($end.image.tag | default $image.tag) -}}
{{- set $pod "image" $own | toYaml -}}
{{- end -}}

{{/* Spec of the Job that waits, as YAML. Its pods may be drained any number of times. */}}
{{- define "kubebeast.fleetEnd.jobSpec" -}}
{{- $name := include "kubebeast.fleetEnd.fullname" . -}}
{{- $job := include "kubebeast.learner.job" . | fromYaml -}}
{{- $pod := include "kubebeast.fleetEnd.pod" . | fromYaml -}}
{{- $labels := dict "root" . "component" "fleet-end" -}}
backoffLimit: 2147483647
template:
  metadata:
    labels:
      {{- include "kubebeast.podLabels" $labels | nindent 6 }}
  spec:
    restartPolicy: OnFailure
    {{- include "kubebeast.podSpec" (dict "root" . "pod" $pod "serviceAccountName" $name "selector" (include "kubebeast.memberLabels" $labels)) | nindent 4 }}
    containers:
      - name: fleet-end
        {{- include "kubebeast.container" (dict "root" . "container" $pod) | nindent 8 }}
        command:
          - python
          - /etc/kubebeast/end_fleet.py
          - --workload=/apis/{{ $job.apiVersion }}/namespaces/{{ .Release.Namespace }}/{{ $job.plural }}/{{ $job.name }}
          - --deployments=/apis/apps/v1/namespaces/{{ .Release.Namespace }}/deployments
          {{- include "kubebeast.fleetEnd.deployments" . | fromJsonArray | toYaml | nindent 10 }}
        resources:
          {{- toYaml $pod.resources | nindent 10 }}
        volumeMounts:
          - name: program
            mountPath: /etc/kubebeast
            readOnly: true
          - name: account
            mountPath: /var/run/secrets/kubernetes.io/serviceaccount
            readOnly: true
          - name: tmp
            mountPath: /tmp
    volumes:
      - name: program
        configMap:
          name: {{ $name | quote }}
      - name: account
        {{- include "kubebeast.account" . | nindent 8 }}
      - name: tmp
        emptyDir: {}
{{- end -}}
