{{/* Evaluators: pods that mount the learner's volume, or read its bucket, and play every new checkpoint. */}}

{{/*
The enabled evaluators as a JSON array: `evaluator`, and the entries of `evaluators` merged over it, in the order of their names.
Each has "name", which is empty for `evaluator`, "fullname", the name of its Deployment, and "component". The Deployments of
entries have another component, because the selector of one Deployment must not match the pods of another. The settings are
strings in the result.
*/}}
{{- define "kubebeast.evaluators" -}}
{{- $evaluators := list -}}
{{- $fullname := printf "%s-evaluator" (include "kubebeast.fullname" .) -}}
{{- if .Values.evaluator.enabled -}}
{{- $own := dict "name" "" "fullname" $fullname "component" "evaluator" -}}
{{- $evaluators = append $evaluators (mergeOverwrite (deepCopy .Values.evaluator) $own) -}}
{{- end -}}
{{- range $name, $entry := .Values.evaluators -}}
{{- $long := printf "%s-%s" $fullname $name -}}
{{- $shortened := include "kubebeast.shortened" (dict "name" $long "max" 63) -}}
{{- $own := dict "name" $name "fullname" $shortened "component" "named-evaluator" -}}
{{- $defaults := set (deepCopy $.Values.evaluator) "enabled" true -}}
{{- $merged := mergeOverwrite (include "kubebeast.withoutExcluded" (dict "defaults" $defaults "entry" ($entry | default dict)) | fromJson) ($entry | default dict | deepCopy) $own -}}
{{- if and (not (kindIs "invalid" $entry)) $merged.enabled }}{{ $evaluators = append $evaluators $merged }}{{ end -}}
{{- end -}}
{{- range $evaluators }}{{ $_ := set . "config" (include "kubebeast.texts" (.config | default dict) | fromJson) }}{{ end -}}
{{- $evaluators | toJson -}}
{{- end -}}

{{/* Components of the enabled evaluators, without duplicates, as a JSON array. */}}
{{- define "kubebeast.evaluators.components" -}}
{{- $components := list -}}
{{- range include "kubebeast.evaluators" . | fromJsonArray }}{{ $components = append $components .component }}{{ end -}}
{{- $components | uniq | toJson -}}
{{- end -}}

{{/* "true" if there is a volume that can be used on one node only, which is then the learner's node. */}}
{{- define "kubebeast.evaluator.sharesNode" -}}
{{- with .Values.learner -}}
{{- if not (or .storage.url (has "ReadWriteMany" .persistence.accessModes)) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/*
Values of a pod, as YAML: those of the evaluator, and the user and groups of the learner, because it reads the learner's files.
If it has to share the learner's node, also the affinity and the tolerations for this node. Arguments: dict "root" .
"evaluator" EVALUATOR.
*/}}
{{- define "kubebeast.evaluator.pod" -}}
{{- $learner := .root.Values.learner -}}
{{- $pod := merge (dict "podSecurityContext" $learner.podSecurityContext "lostNodeSeconds" $learner.lostNodeSeconds) .evaluator -}}
{{- if include "kubebeast.evaluator.sharesNode" .root -}}
{{- $labels := include "kubebeast.memberLabels" (dict "root" .root "component" "learner") | fromYaml -}}
{{- if include "kubebeast.learner.isJobSet" .root -}}
{{- $_ := set $labels "jobset.sigs.k8s.io/replicatedjob-name" "learner" -}}
{{- else if and (include "kubebeast.learner.isSeveral" .root) (not (include "kubebeast.learner.isJob" .root)) -}}
{{- $_ := set $labels "statefulset.kubernetes.io/pod-name" (printf "%s-0" (include "kubebeast.learner.fullname" .root)) -}}
{{- end -}}
{{- $selector := dict "matchLabels" $labels -}}
{{- $term := dict "labelSelector" $selector "topologyKey" "kubernetes.io/hostname" -}}
{{- $_ := set $pod "affinity" (dict "podAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term))) -}}
{{- $_ := set $pod "tolerations" (concat $learner.tolerations (.evaluator.tolerations | default list) | uniq) -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end -}}

{{/* The claim that holds the run. */}}
{{- define "kubebeast.evaluator.claim" -}}
{{- .Values.learner.persistence.existingClaim | default (printf "runs-%s-0" (include "kubebeast.learner.fullname" .)) -}}
{{- end -}}

{{/* Fails if the values give the evaluators no checkpoints or no image; renders nothing. */}}
{{- define "kubebeast.evaluator.check" -}}
{{- $groups := include "kubebeast.envservers" . | fromJsonArray -}}
{{- $evaluators := include "kubebeast.evaluators" . | fromJsonArray -}}
{{- range $evaluators -}}
{{- $key := .name | empty | ternary "evaluator" (printf "evaluators.%s" .name) -}}
{{- $persistence := $.Values.learner.persistence -}}
{{- if not $.Values.learner.enabled -}}
{{- fail (printf "%s.enabled requires learner.enabled: the evaluator plays the checkpoints of this release's learner" $key) -}}
{{- end -}}
{{- $url := $.Values.learner.storage.url -}}
{{- if not (or $persistence.enabled $url) -}}
{{- fail (printf "%s.enabled requires learner.persistence.enabled or learner.storage.url: without a claim or a bucket, no other pod can read the checkpoints" $key) -}}
{{- end -}}
{{- if and (not $url) (has "ReadWriteOncePod" $persistence.accessModes) (not $persistence.existingClaim) -}}
{{- fail (printf "%s.enabled: learner.persistence.accessModes contains ReadWriteOncePod, so no second pod can read the checkpoints" $key) -}}
{{- end -}}
{{- if not .image.repository -}}
{{- fail (printf "%s.enabled requires evaluator.image.repository: an image with the learner and the environments, e.g. from docker/learner.Dockerfile with --build-arg LEARNER_EXTRAS=envs,atari. The learner's own image has no environments" $key) -}}
{{- end -}}
{{- $fullname := .fullname -}}
{{- range $groups -}}
{{- if eq .fullname $fullname -}}
{{- fail (printf "%s.enabled: the group %q of env-servers has the same name as the evaluator's Deployment, %s" $key .name .fullname) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $config := .Values.learner.config | default dict -}}
{{- if and (eq "evaluation" ($config.best_by | default "")) (not $config.best_evaluator) (gt (len $evaluators) 1) (not .Values.evaluator.enabled) -}}
{{- fail "learner.config.best_by is evaluation, and there are several evaluators: set learner.config.best_evaluator to the name of one of them" -}}
{{- end -}}
{{- end -}}
