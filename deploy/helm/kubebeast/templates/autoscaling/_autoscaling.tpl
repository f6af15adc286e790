{{/*
Autoscaling of a group of env-servers, with either autoscaler.

The metric is the demand ratio: how many times the present fleet could be used until the busiest of learner, inference and CPUs
has no time left. A HorizontalPodAutoscaler requests replicas * ratio / target, so the fleet settles at ratio = target = 1 / (1
- targetStarvedRatio): the busiest is then idle for the targeted share of its time. The learner's share of waiting is not a
suitable metric: if inference is the limit, it stays high for any size of the fleet, and it stays at 0 if the fleet is far too
large.
*/}}

{{/* Fails if settings of a group (the argument) contradict each other. */}}
{{- define "kubebeast.autoscaling.check" -}}
{{- $where := printf "envservers: the autoscaling of the group %q" .name -}}
{{- $target := .autoscaling.targetStarvedRatio | float64 -}}
{{- if and .autoscaling.hpa.enabled .autoscaling.keda.enabled -}}
{{- fail (printf "%s has both hpa.enabled and keda.enabled: choose one" $where) -}}
{{- end -}}
{{- if lt (int64 .autoscaling.minReplicas) 1 -}}
{{- fail (printf "%s: minReplicas is %v, but the measurement needs at least 1" $where .autoscaling.minReplicas) -}}
{{- end -}}
{{- if gt (int64 .autoscaling.minReplicas) (int64 .autoscaling.maxReplicas) -}}
{{- fail (printf "%s: minReplicas is %v, above maxReplicas %v" $where .autoscaling.minReplicas .autoscaling.maxReplicas) -}}
{{- end -}}
{{- if or (lt $target 0.0) (ge $target 0.9) -}}
{{- fail (printf "%s: targetStarvedRatio is %v, but must be at least 0 and below 0.9" $where .autoscaling.targetStarvedRatio) -}}
{{- end -}}
{{- end -}}

{{/* API version of HorizontalPodAutoscaler: autoscaling/v2 exists since Kubernetes 1.23, v2beta2 until 1.25. */}}
{{- define "kubebeast.autoscaling.hpaApiVersion" -}}
{{- semverCompare ">=1.23.0-0" .Capabilities.KubeVersion.Version | ternary "autoscaling/v2" "autoscaling/v2beta2" -}}
{{- end -}}

{{/* Target of the demand ratio, in thousandths. Argument: a group. */}}
{{- define "kubebeast.autoscaling.targetMilli" -}}
{{- round (divf 1000 (subf 1 .autoscaling.targetStarvedRatio)) 0 | int64 -}}
{{- end -}}

{{/*
Speed at which a group (the argument) may change, as YAML. The steps of new pods appear in the metric after up to a minute.
Until then, the old ratio times the new number of pods would request far too many. So the fleet grows only if the demand has
lasted for longer than that, and at most doubles in a minute.
*/}}
{{- define "kubebeast.autoscaling.behavior" -}}
{{- $default := dict
  "scaleUp" (dict
    "stabilizationWindowSeconds" 90
    "policies" (list (dict "type" "Percent" "value" 100 "periodSeconds" 60)))
  "scaleDown" (dict
    "stabilizationWindowSeconds" 300
    "policies" (list (dict "type" "Percent" "value" 25 "periodSeconds" 300))) -}}
{{- .autoscaling.behavior | default $default | toYaml -}}
{{- end -}}

{{/* PromQL of the demand ratio of this release; rules/kubebeast.yaml records the same ratio for all releases. */}}
{{- define "kubebeast.autoscaling.query" -}}
{{- $matchers := printf "namespace=%q,service=%q" .Release.Namespace (include "kubebeast.learner.fullname" .) -}}
{{- .Files.Get "rules/demand.promql" | replace "%s" $matchers | trim -}}
{{- end -}}
