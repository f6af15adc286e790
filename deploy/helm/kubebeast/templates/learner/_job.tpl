{{/*
A learner that ends: a Job, or a JobSet for several. The pods of both are immutable, so the name contains a hash of them: a change
creates another one, which resumes the run when Helm has deleted the predecessor.
*/}}

{{/* "true" if the learner is a Job or a JobSet, or the Jobs of a sweep, otherwise empty. */}}
{{- define "kubebeast.learner.isJob" -}}
{{- if and .Values.learner.enabled (or (eq .Values.learner.workload "job") (include "kubebeast.isSweep" .)) }}true{{ end -}}
{{- end -}}

{{/* "true" if the learners are a JobSet, otherwise empty. */}}
{{- define "kubebeast.learner.isJobSet" -}}
{{- if and (include "kubebeast.learner.isJob" .) (gt (int .Values.learner.replicas) 1) }}true{{ end -}}
{{- end -}}

{{/*
API version, kind, plural and name of the Job or JobSet, or of the Job of a sweep, as YAML. A pod of a JobSet adds 18 characters to
the name.
*/}}
{{- define "kubebeast.learner.job" -}}
{{- if include "kubebeast.isSweep" . -}}
apiVersion: batch/v1
kind: Job
plural: jobs
name: {{ include "kubebeast.sweep.fullname" . }}-{{ include "kubebeast.sweep.jobSpec" . | sha256sum | trunc 8 }}
{{- else if include "kubebeast.learner.isJobSet" . -}}
{{- $hash := include "kubebeast.learner.replicatedJobs" . | sha256sum | trunc 8 -}}
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
plural: jobsets
name: {{ include "kubebeast.shortened" (dict "name" (include "kubebeast.fullname" .) "max" 36) }}-{{ $hash }}
{{- else -}}
apiVersion: batch/v1
kind: Job
plural: jobs
name: {{ include "kubebeast.learner.fullname" . }}-{{ include "kubebeast.learner.jobSpec" . | sha256sum | trunc 8 }}
{{- end -}}
{{- end -}}

{{/*
"true" if the Job is in the release. Kueue starts a suspended Job again: a pause deletes one that is in a queue. It also deletes that
of a sweep, and with it those of the runs.
*/}}
{{- define "kubebeast.learner.hasJob" -}}
{{- if and (include "kubebeast.learner.isJob" .) (not (and .Values.paused (or .Values.learner.queueName (include "kubebeast.isSweep" .)))) }}true{{ end -}}
{{- end -}}

{{/* The parts of a Job's spec that cannot change, as YAML. A failed pod stays for its log, and another one replaces it. */}}
{{- define "kubebeast.learner.jobSpec" -}}
backoffLimit: {{ .Values.learner.job.backoffLimit | int }}
{{- if semverCompare ">=1.26.0-0" .Capabilities.KubeVersion.Version }}
podFailurePolicy:
  rules:
    {{- include "kubebeast.learner.failureRules" . | nindent 4 }}
{{- end }}
template:
  {{- include "kubebeast.learner.podTemplate" (dict "root" . "isFirst" true) | nindent 2 }}
{{- end -}}

{{/*
Rules for pods that fail, as YAML. A preempted or drained pod, and one that SIGTERM has stopped, do not count as failures. Of the
learner, exit status 2 is a wrong setting, which no other attempt cures. The schemas of Kubernetes 1.26 to 1.28, by which Helm 3
validates, require onPodConditions.
*/}}
{{- define "kubebeast.learner.failureRules" -}}
- action: Ignore
  onPodConditions:
    - type: DisruptionTarget
      status: "True"
- action: Ignore
  onPodConditions: []
  onExitCodes:
    containerName: learner
    operator: In
    values: [143]
{{- if not .Values.learner.command }}
- action: FailJob
  onPodConditions: []
  onExitCodes:
    containerName: learner
    operator: In
    values: [2]
{{- end }}
{{- end -}}

{{/*
The Jobs of a JobSet as YAML. Peers restart in their pods without a limit, because each of them fails whenever the first learner
does. If that one is complete, so is the JobSet, which then deletes its other pods.
*/}}
{{- define "kubebeast.learner.replicatedJobs" -}}
- name: learner
  template:
    metadata:
      labels:
        {{- include "kubebeast.podLabels" (dict "root" . "component" "learner") | nindent 8 }}
    spec:
      parallelism: 1
      completions: 1
      {{- include "kubebeast.learner.jobSpec" . | nindent 6 }}
- name: peers
  template:
    metadata:
      labels:
        {{- include "kubebeast.podLabels" (dict "root" . "component" "learner" "group" "peers") | nindent 8 }}
    spec:
      parallelism: {{ sub (int .Values.learner.replicas) 1 }}
      completions: {{ sub (int .Values.learner.replicas) 1 }}
      backoffLimit: 2147483647
      template:
        {{- include "kubebeast.learner.podTemplate" (dict "root" . "isFirst" false) | nindent 8 }}
{{- end -}}

{{/* Fails if the values contradict a Job; renders nothing. */}}
{{- define "kubebeast.learner.checkJob" -}}
{{- if include "kubebeast.learner.isJob" . -}}
{{- if and (include "kubebeast.learner.isJobSet" .) (not (.Capabilities.APIVersions.Has "jobset.x-k8s.io/v1alpha2")) -}}
{{- fail (printf "learner.workload is job and learner.replicas is %v: several learners are a JobSet, and this cluster has no jobset.x-k8s.io/v1alpha2. Install it (https://jobset.sigs.k8s.io), or set learner.workload=statefulset. `helm template` takes --api-versions jobset.x-k8s.io/v1alpha2" .Values.learner.replicas) -}}
{{- end -}}
{{- $budget := .Values.learner.podDisruptionBudget -}}
{{- if and $budget.enabled (or (not (kindIs "invalid" $budget.maxUnavailable)) (kindIs "string" $budget.minAvailable)) -}}
{{- fail "learner.workload is job: learner.podDisruptionBudget takes only minAvailable with a number, because the pods of a Job have no scale (https://kubernetes.io/docs/tasks/run-application/configure-pdb/)" -}}
{{- end -}}
{{- range include "kubebeast.envservers" . | fromJsonArray -}}
{{- if .autoscaling.keda.enabled -}}
{{- fail (printf "learner.workload is job, but KEDA would start the group %q again after the end: use autoscaling.hpa" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
