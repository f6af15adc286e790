{{/* The evaluator: a pod that mounts the learner's volume and plays every new checkpoint. */}}

{{- define "kubebeast.evaluator.fullname" -}}
{{- printf "%s-evaluator" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* "true" if the volume can be used on one node only, which is then the learner's node. */}}
{{- define "kubebeast.evaluator.sharesNode" -}}
{{- if not (has "ReadWriteMany" .Values.learner.persistence.accessModes) }}true{{ end -}}
{{- end -}}

{{/*
Values of the pod: those of the evaluator, and the user and groups of the learner, because it reads the learner's files. If it
has to share the learner's node, also the affinity and the tolerations for this node.
*/}}
{{- define "kubebeast.evaluator.pod" -}}
{{- $learner := .Values.learner -}}
{{- $pod := merge (dict "podSecurityContext" $learner.podSecurityContext "lostNodeSeconds" $learner.lostNodeSeconds) .Values.evaluator -}}
{{- if include "kubebeast.evaluator.sharesNode" . -}}
{{- $labels := include "kubebeast.memberLabels" (dict "root" . "component" "learner") | fromYaml -}}
{{- if include "kubebeast.learner.isSeveral" . -}}
{{- $_ := set $labels "statefulset.kubernetes.io/pod-name" (printf "%s-0" (include "kubebeast.learner.fullname" .)) -}}
{{- end -}}
{{- $selector := dict "matchLabels" $labels -}}
{{- $term := dict "labelSelector" $selector "topologyKey" "kubernetes.io/hostname" -}}
{{- $_ := set $pod "affinity" (dict "podAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term))) -}}
{{- $_ := set $pod "tolerations" (concat $learner.tolerations .Values.evaluator.tolerations | uniq) -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end -}}

{{/* The claim that holds the run. */}}
{{- define "kubebeast.evaluator.claim" -}}
{{- .Values.learner.persistence.existingClaim | default (printf "runs-%s-0" (include "kubebeast.learner.fullname" .)) -}}
{{- end -}}

{{/* Fails if the values give the evaluator no checkpoints or no image; renders nothing. */}}
{{- define "kubebeast.evaluator.check" -}}
{{- if .Values.evaluator.enabled -}}
{{- $persistence := .Values.learner.persistence -}}
{{- if not .Values.learner.enabled -}}
{{- fail "evaluator.enabled requires learner.enabled: the evaluator plays the checkpoints of this release's learner" -}}
{{- end -}}
{{- if not $persistence.enabled -}}
{{- fail "evaluator.enabled requires learner.persistence.enabled: without a claim, no other pod can read the checkpoints" -}}
{{- end -}}
{{- if and (has "ReadWriteOncePod" $persistence.accessModes) (not $persistence.existingClaim) -}}
{{- fail "evaluator.enabled: learner.persistence.accessModes contains ReadWriteOncePod, so no second pod can read the checkpoints" -}}
{{- end -}}
{{- if not .Values.evaluator.image.repository -}}
{{- fail "evaluator.enabled requires evaluator.image.repository: an image with the learner and the environments, e.g. from docker/learner.Dockerfile with --build-arg LEARNER_EXTRAS=envs,atari. The learner's own image has no environments" -}}
{{- end -}}
{{- range include "kubebeast.envservers" . | fromJsonArray -}}
{{- if eq .fullname (include "kubebeast.evaluator.fullname" $) -}}
{{- fail (printf "evaluator.enabled: the group %q of env-servers has the same name as the evaluator's Deployment, %s" .name .fullname) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
