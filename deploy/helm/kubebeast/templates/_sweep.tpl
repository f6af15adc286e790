{{/*
A sweep: in place of one learner, a Job creates those of many runs, and a broker shares the env-servers among them. The pods of runs
are those of a learner. `kubebeast.learner.job` is the Job of the sweep: its name contains a hash, so that a change creates another
one, which goes on with the trials.
*/}}

{{/* "true" if the release is a sweep, otherwise empty. */}}
{{- define "kubebeast.isSweep" -}}
{{- if .Values.sweep.file }}true{{ end -}}
{{- end -}}

{{- define "kubebeast.sweep.fullname" -}}
{{- printf "%s-sweep" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{- define "kubebeast.broker.fullname" -}}
{{- printf "%s-broker" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* Name of the broker in the cluster, also in its certificate. */}}
{{- define "kubebeast.broker.host" -}}
{{- printf "%s.%s.svc" (include "kubebeast.broker.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "kubebeast.broker.address" -}}
{{- printf "%s:4432" (include "kubebeast.broker.host" .) -}}
{{- end -}}

{{/*
The content of sweep.yaml: a text unchanged; or a map, whose settings override those of the learner. Values are written as JSON, as
in learner.yaml.
*/}}
{{- define "kubebeast.sweep.file" -}}
{{- if kindIs "string" .Values.sweep.file -}}
{{- .Values.sweep.file -}}
{{- else -}}
{{- $file := deepCopy .Values.sweep.file -}}
{{- $config := deepCopy .Values.learner.config -}}
{{- range $name, $_ := $file.parameters }}{{ $_ := unset $config $name }}{{ end -}}
{{- $settings := merge ($file.settings | default dict) $config -}}
{{- with include "kubebeast.learner.env" . }}{{ $settings = merge $settings (dict "env" .) }}{{ end -}}
{{- $own := dict "command" "learner" "recipe" (include "kubebeast.learner.recipe" .) "settings" $settings -}}
{{- range $name, $value := merge $own $file }}
{{ $name }}: {{ toJson $value }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Settings of the learners that the chart itself sets, as variables: the sweep gives each run the others. Argument: the root context.
The result is JSON for `kubebeast.settingVariables`.
*/}}
{{- define "kubebeast.sweep.learnerSettings" -}}
{{- $settings := dict "address" "[::]:4431" "http_address" "[::]:9090" -}}
{{- $_ := include "kubebeast.access.settings" (dict "root" . "side" "learner") | fromYaml | merge $settings -}}
{{- if .Values.tls.enabled }}{{ $_ := set $settings "broker_tls_ca" (printf "%s/ca.crt" (include "kubebeast.access.folder" .)) }}{{ end -}}
{{- if .Values.learner.gpu.count }}{{ $_ := set $settings "device" (.Values.learner.config.device | default "cuda") }}{{ end -}}
{{- with .Values.learner.nodeNotice }}{{ $_ := set $settings "node_notice" . }}{{ end -}}
{{- include "kubebeast.texts" $settings -}}
{{- end -}}

{{/* The Job of which those of the runs are copies, as YAML. */}}
{{- define "kubebeast.sweep.runJob" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "kubebeast.fullname" . }}
  labels:
    {{- $labels := include "kubebeast.queueLabels" .Values.learner | fromYaml }}
    {{- include "kubebeast.podLabels" (dict "root" . "component" "learner" "labels" $labels) | nindent 4 }}
  {{- with .Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if not (kindIs "invalid" .Values.learner.job.ttlSecondsAfterFinished) }}
  ttlSecondsAfterFinished: {{ .Values.learner.job.ttlSecondsAfterFinished | int }}
  {{- end }}
  {{- include "kubebeast.learner.jobSpec" . | nindent 2 }}
{{- end -}}

{{/*
Values of a learner's pod, as YAML. The runs and the sweep share a claim: if only one node can use it, their pods are on the node of
those that are there.
*/}}
{{- define "kubebeast.sweep.pod" -}}
{{- $pod := deepCopy .Values.learner -}}
{{- if include "kubebeast.evaluator.sharesNode" . -}}
{{- $selector := dict "matchLabels" (include "kubebeast.memberLabels" (dict "root" .) | fromYaml) "matchExpressions" (list (dict "key" "app.kubernetes.io/component" "operator" "In" "values" (list "learner" "sweep"))) -}}
{{- $field := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $terms := append (dig "affinity" "podAffinity" $field list $pod) (dict "labelSelector" $selector "topologyKey" "kubernetes.io/hostname") -}}
{{- $_ := set $pod "affinity" (mergeOverwrite ($pod.affinity | default dict) (dict "podAffinity" (dict $field $terms))) -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end -}}

{{/*
The parts of the Job's spec that cannot change, as YAML. Exit status 2 is a wrong setting, and 1 is trial after trial that fails. A
signal ends the pod with 143, and its runs go on.
*/}}
{{- define "kubebeast.sweep.jobSpec" -}}
{{- $labels := dict "root" . "component" "sweep" -}}
{{- $name := include "kubebeast.sweep.fullname" . -}}
{{- $pod := merge (dict "terminationGracePeriodSeconds" 60 "initContainers" list) (include "kubebeast.sweep.pod" . | fromYaml) -}}
{{- $container := dict "image" (include "kubebeast.learner.image" . | fromYaml) "securityContext" .Values.learner.securityContext -}}
backoffLimit: {{ .Values.learner.job.backoffLimit | int }}
{{- if semverCompare ">=1.26.0-0" .Capabilities.KubeVersion.Version }}
podFailurePolicy:
  rules:
    - action: Ignore
      onPodConditions:
        - type: DisruptionTarget
          status: "True"
    - action: Ignore
      onPodConditions: []
      onExitCodes:
        containerName: sweep
        operator: In
        values: [143]
    - action: FailJob
      onPodConditions: []
      onExitCodes:
        containerName: sweep
        operator: In
        values: [1, 2]
{{- end }}
template:
  metadata:
    labels:
      {{- include "kubebeast.podLabels" $labels | nindent 6 }}
    annotations:
      checksum/config: {{ list (include "kubebeast.sweep.file" .) (include "kubebeast.sweep.runJob" .) | toJson | sha256sum }}
  spec:
    restartPolicy: Never
    {{- include "kubebeast.podSpec" (dict "root" . "pod" $pod "serviceAccountName" $name "selector" (include "kubebeast.memberLabels" $labels)) | nindent 4 }}
    containers:
      - name: sweep
        {{- include "kubebeast.container" (dict "root" . "container" $container) | nindent 8 }}
        args:
          - sweep
          - /etc/kubebeast/config/sweep.yaml
          - --name={{ include "kubebeast.learner.xpid" . | include "kubebeast.literal" }}
          - --savedir=/runs
          - --broker={{ include "kubebeast.broker.address" . }}
          - --parallel={{ .Values.sweep.parallel | int }}
          - --job-template=/etc/kubebeast/config/job.yaml
          - --job-owner=$(JOB_NAME)/$(JOB_UID)
          - --stop-status=143
          - --progress=json
        env:
          - name: JOB_NAME
            valueFrom:
              fieldRef:
                fieldPath: metadata.labels['job-name']
          - name: JOB_UID
            valueFrom:
              fieldRef:
                fieldPath: metadata.labels['controller-uid']
        resources:
          {{- toYaml .Values.sweep.resources | nindent 10 }}
        volumeMounts:
          - name: runs
            mountPath: /runs
          - name: config
            mountPath: /etc/kubebeast/config
            readOnly: true
          - name: account
            mountPath: /var/run/secrets/kubernetes.io/serviceaccount
            readOnly: true
          - name: tmp
            mountPath: /tmp
    volumes:
      - name: runs
        persistentVolumeClaim:
          claimName: {{ include "kubebeast.learner.claimName" . | quote }}
      - name: config
        configMap:
          name: {{ $name | quote }}
      - name: account
        {{- include "kubebeast.account" . | nindent 8 }}
      - name: tmp
        emptyDir: {}
{{- end -}}

{{/* Fails if the values contradict a sweep; renders nothing. */}}
{{- define "kubebeast.sweep.check" -}}
{{- if include "kubebeast.isSweep" . -}}
{{- $learner := .Values.learner -}}
{{- $wrong := list -}}
{{- if not $learner.enabled }}{{ $wrong = append $wrong "learner.enabled is false: the runs are learners of this release" }}{{ end -}}
{{- if gt (int $learner.replicas) 1 }}{{ $wrong = append $wrong (printf "learner.replicas is %v: a run has one learner" $learner.replicas) }}{{ end -}}
{{- if $learner.command }}{{ $wrong = append $wrong "learner.command is set: the runs are those of `kubebeast learner`" }}{{ end -}}
{{- if $learner.extraArgs }}{{ $wrong = append $wrong "learner.extraArgs is set: give the settings in learner.config, or in sweep.file.settings" }}{{ end -}}
{{- if $learner.storage.url }}{{ $wrong = append $wrong "learner.storage.url is set: a sweep needs a claim, not a bucket" }}{{ end -}}
{{- if not $learner.persistence.enabled }}{{ $wrong = append $wrong "learner.persistence.enabled is false: the sweep and its runs share a claim" }}{{ end -}}
{{- if has "ReadWriteOncePod" $learner.persistence.accessModes }}{{ $wrong = append $wrong "learner.persistence.accessModes contains ReadWriteOncePod: the sweep and its runs share the claim" }}{{ end -}}
{{- if $learner.externalService.enabled }}{{ $wrong = append $wrong "learner.externalService.enabled: env-servers of other networks cannot reach the pods of the runs" }}{{ end -}}
{{- if include "kubebeast.evaluators" . | fromJsonArray }}{{ $wrong = append $wrong "an evaluator is enabled: it plays one run" }}{{ end -}}
{{- if .Values.demo.enabled }}{{ $wrong = append $wrong "demo.enabled is true" }}{{ end -}}
{{- with $wrong }}{{ fail (printf "sweep.file is set, but %s" (join "; " .)) }}{{ end -}}
{{- end -}}
{{- end -}}
