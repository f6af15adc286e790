{{/* The evaluator: a pod beside the learner, on its volume, that plays every new checkpoint. */}}

{{- define "kubebeast.evaluator.fullname" -}}
{{- printf "%s-evaluator" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* "true" where the volume can be used on one node only, which is then the learner's. */}}
{{- define "kubebeast.evaluator.sharesNode" -}}
{{- if not (has "ReadWriteMany" .Values.learner.persistence.accessModes) }}true{{ end -}}
{{- end -}}

{{/*
Values of the pod: those of the evaluator, user and groups of the learner, whose files it reads, and where it has to share
the learner's node what lets it go there.
*/}}
{{- define "kubebeast.evaluator.pod" -}}
{{- $learner := .Values.learner -}}
{{- $pod := merge (dict "podSecurityContext" $learner.podSecurityContext "lostNodeSeconds" $learner.lostNodeSeconds) .Values.evaluator -}}
{{- if include "kubebeast.evaluator.sharesNode" . -}}
{{- $labels := include "kubebeast.selectorLabels" (dict "root" . "component" "learner") | fromYaml -}}
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

{{/* Fails where the values give it nothing to play or nothing to play with; renders nothing. */}}
{{- define "kubebeast.evaluator.check" -}}
{{- if .Values.evaluator.enabled -}}
{{- $persistence := .Values.learner.persistence -}}
{{- if not .Values.learner.enabled -}}
{{- fail "evaluator.enabled needs learner.enabled: it plays the checkpoints of this release's learner" -}}
{{- end -}}
{{- if not $persistence.enabled -}}
{{- fail "evaluator.enabled needs learner.persistence.enabled: without a claim no other pod sees the checkpoints" -}}
{{- end -}}
{{- if and (has "ReadWriteOncePod" $persistence.accessModes) (not $persistence.existingClaim) -}}
{{- fail "evaluator.enabled: learner.persistence.accessModes has ReadWriteOncePod, with which no second pod sees the checkpoints" -}}
{{- end -}}
{{- if not .Values.evaluator.image.repository -}}
{{- fail "evaluator.enabled needs evaluator.image.repository: an image with learner and environments, such as docker/learner.Dockerfile builds with --build-arg LEARNER_EXTRAS=envs,atari; the learner's own has no environments" -}}
{{- end -}}
{{- range include "kubebeast.envservers" . | fromJsonArray -}}
{{- if eq .fullname (include "kubebeast.evaluator.fullname" $) -}}
{{- fail (printf "evaluator.enabled: the group %q of env-servers has the name of the evaluator's Deployment, %s" .name .fullname) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
